// Which functions and arcs are shown (V5, V6), on the program of the seed's tables and on graphs that are hard.
import { describe, expect, it } from 'vitest';
import type { GraphEdge, GraphNode } from '../src/data/types';
import { apart, withLone } from '../src/graph/layout';
import { CallGraph, prune, type NodeState } from '../src/graph/prune';
import { belowRoot } from '../src/graph/root';

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

  it('shows what was large before, and is gone', () => {
    const gone = graph({ 0: 100, 1: 1 }, [[0, 1, 1]]);
    gone.nodes.get(1)!.before = { calls: 1, self: 50, total: 50 };
    expect(shown(gone, 0.2, {}, null, 100).ids).toEqual([0, 1]);
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

describe('a virtual root', () => {
  // start(0) → main(1) → A(2) → C(4); main → B(3) → C; C → main of another thread (5) → A
  const whole = { nodes: graph({ 0: 1000, 1: 900, 2: 300, 3: 500, 4: 600, 5: 700 }, []).nodes, edges: [[0, 1], [1, 2], [1, 3], [2, 4], [3, 4], [4, 5], [5, 2]] };
  const all = { nodes: [...whole.nodes.values()], edges: whole.edges.map(([caller, callee]) => ({ caller: caller!, callee: callee!, total: 600, calls: 1 })), functions: 6 };
  it('has shares of 100 % at most, and says which are bounds', () => {
    const below = belowRoot(all, 2);
    expect(below.functions).toBe(3);
    expect(below.nodes.map((n) => [n.id, n.total, n.at_most ?? false])).toEqual([[2, 300, false], [4, 300, true], [5, 300, true]]);
    expect(below.edges.map((e) => [e.caller, e.callee, e.total, e.at_most ?? false])).toEqual([[2, 4, 300, false], [4, 5, 300, true], [5, 2, 300, true]]);
  });
  it('leaves what only it leads to as it is, and what the server has measured', () => {
    expect(belowRoot(all, 1).nodes.map((n) => [n.total, n.at_most])).toEqual([[900, undefined], [300, undefined], [500, undefined], [600, undefined], [700, undefined]]);
    expect(belowRoot({ ...all, below: true }, 2).nodes).toHaveLength(6);
  });
});

describe('functions without an arc', () => {
  it('stand in rows below the river', () => {
    const nodes = [...graph(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [i, 100 - i])), []).nodes.values()];
    const edges = [{ caller: 0, callee: 1, total: 1, calls: 1 }];
    const { river, lone } = apart({ nodes, edges, folded: [], left: 0 });
    expect([river.nodes.map((n) => n.id), lone.length, lone[0]]).toEqual([[0, 1], 38, 2]);
    const layout = withLone({ width: 100, height: 70, boxes: new Map(), arcs: [] }, lone, () => 90);
    const places = [...layout.boxes.values()];
    expect(places).toHaveLength(38);
    expect(Math.min(...places.map((b) => b.y - b.height / 2))).toBeGreaterThan(70);
    expect(layout.width / layout.height).toBeLessThan(3);
    expect(Math.max(...places.map((b) => b.x + b.width / 2))).toBeLessThanOrEqual(layout.width);
  });
});
