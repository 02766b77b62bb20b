// Which functions and arcs are shown (V5, V6), on the program of the seed's tables and on graphs that are hard.
import { describe, expect, it } from 'vitest';
import type { GraphEdge, GraphNode } from '../src/data/types';
import { CallGraph, prune, type NodeState } from '../src/graph/prune';

function graph(totals: Record<number, number>, arcs: [number, number, number][], roots = [0]): CallGraph {
  const nodes = Object.entries(totals).map(([id, total]) => ({
    id: +id, name: 'f' + id, total, self: 0, calls: 1, root: roots.includes(+id),
    children: new Set(arcs.filter(([a, b]) => a === +id && b !== +id).map(([, b]) => b)).size,
  })) as unknown as GraphNode[];
  return new CallGraph(nodes, arcs.map(([caller, callee, total]): GraphEdge => ({ caller, callee, total, calls: 1 })));
}

// start → main → A → B, C → D
const seed = graph({ 0: 101100, 1: 101000, 2: 100000, 3: 50000, 4: 40000, 5: 40000 },
  [[0, 1, 101000], [1, 2, 100000], [2, 3, 50000], [2, 4, 40000], [3, 5, 30000], [4, 5, 10000]]);

function shown(g: CallGraph, filter: number, states: Record<number, NodeState> = {}, root: number | null = null, whole = 101100, most = 100) {
  const result = prune(g, { whole, filter, root, most, stateOf: (id) => states[id] ?? 'some' });
  return {
    ids: result.nodes.map((n) => n.id).sort((a, b) => a - b),
    arcs: result.edges.map((e) => `${e.caller}>${e.callee}`).sort(),
    folded: result.folded.map((e) => `${e.caller}>${e.callee}`),
    left: result.left,
  };
}

describe('pruning', () => {
  it('shows all at 0 %, and those above the filter', () => {
    expect(shown(seed, 0).ids).toEqual([0, 1, 2, 3, 4, 5]);
    expect(shown(seed, 0).arcs).toEqual(['0>1', '1>2', '2>3', '2>4', '3>5', '4>5']);
    expect(shown(seed, 0.45).ids).toEqual([0, 1, 2, 3]);
    expect(shown(seed, 50000 / 101100).ids).toEqual([0, 1, 2, 3]); // "at least equal"
  });

  it('hides the children of a node, unless another way leads to them', () => {
    expect(shown(seed, 0, { 2: 'hidden' }).ids).toEqual([0, 1, 2]);
    expect(shown(seed, 0, { 3: 'hidden' }).ids).toEqual([0, 1, 2, 3, 4, 5]);
    expect(shown(seed, 0, { 3: 'hidden' }).arcs).not.toContain('3>5');
  });

  it('shows all children of an open node, whatever the filter', () => {
    expect(shown(seed, 0.45, { 2: 'all' }).ids).toEqual([0, 1, 2, 3, 4]);
    expect(shown(seed, 0.45, { 2: 'all', 4: 'all' }).ids).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('measures against the virtual root, and shows what it calls', () => {
    expect(shown(seed, 0, {}, 3).ids).toEqual([3, 5]);
    expect(shown(seed, 0.9, {}, 3, 50000).ids).toEqual([3]);
  });

  it('draws recursion as no arc, and cycles once', () => {
    const g = graph({ 0: 10, 1: 9, 2: 8 }, [[0, 1, 9], [1, 1, 5], [1, 2, 8], [2, 1, 4]]);
    expect(shown(g, 0, {}, null, 10).arcs).toEqual(['0>1', '1>2', '2>1']);
  });

  it('tells where a function comes from whose callers are all folded', () => {
    const g = graph({ 0: 100, 1: 4, 2: 4, 3: 8 }, [[0, 1, 4], [0, 2, 4], [1, 3, 4], [2, 3, 4]]);
    expect(shown(g, 0.05, {}, null, 100)).toMatchObject({ ids: [0, 3], arcs: [], folded: ['0>3'] });
  });

  it('draws the largest of too many', () => {
    expect(shown(seed, 0, {}, null, 101100, 3)).toMatchObject({ ids: [0, 1, 2], left: 3 });
  });

  it('shows functions that no root leads to', () => {
    const g = graph({ 0: 10, 7: 5, 8: 4 }, [[7, 8, 4], [8, 7, 3]]);
    expect(shown(g, 0, {}, null, 15).ids).toEqual([0, 7, 8]);
  });
});
