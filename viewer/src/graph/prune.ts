// Which functions the graph shows (V5, V6).
//
//   shown = functions with a total of at least the filter, that some way leads to past no node whose children are hidden
//         ∪ all children of shown nodes that are open
//
// An arc is shown between shown functions, unless the caller hides its children. Where every caller of a shown function is
// folded away, a *folded* arc comes from the nearest callers that are shown: it tells where from, not how much.
import type { FunctionId, GraphEdge, GraphNode } from '../data/types';
import { isAbove } from './formulas';

export type NodeState = 'hidden' | 'some' | 'all'; // of a node's children
export const states: NodeState[] = ['hidden', 'some', 'all'];

export interface Shown {
  nodes: GraphNode[];
  edges: GraphEdge[];
  folded: { caller: FunctionId; callee: FunctionId }[];
  left: number; // functions above the filter that are too many to draw
}

export interface PruneOptions {
  whole: number; // what shares are measured against
  filter: number;
  stateOf: (id: FunctionId) => NodeState;
  root: FunctionId | null; // only what this calls
  most: number; // nodes to draw
  keep?: FunctionId | null; // drawn in any case
}

export class CallGraph {
  readonly nodes = new Map<FunctionId, GraphNode>();
  readonly out = new Map<FunctionId, GraphEdge[]>();
  readonly into = new Map<FunctionId, GraphEdge[]>();

  constructor(nodes: readonly GraphNode[], edges: readonly GraphEdge[]) {
    for (const node of nodes) this.nodes.set(node.id, node);
    for (const edge of edges) {
      if (edge.caller === edge.callee || !this.nodes.has(edge.caller) || !this.nodes.has(edge.callee)) continue;
      push(this.out, edge.caller, edge);
      push(this.into, edge.callee, edge);
    }
  }
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

// What was large before counts, too: what is gone is to be seen.
export function sizeOf(node: GraphNode): number {
  return Math.max(node.total, node.before?.total ?? 0);
}

// What some way leads to from `starts`; `through` says past which nodes.
export function reachable(graph: CallGraph, starts: Iterable<FunctionId>, through: (id: FunctionId) => boolean): Set<FunctionId> {
  const seen = new Set(starts);
  for (const id of seen) {
    if (!through(id)) continue;
    for (const edge of graph.out.get(id) ?? []) seen.add(edge.callee); // (a set takes what is added while it is walked)
  }
  return seen;
}

export function prune(graph: CallGraph, options: PruneOptions): Shown {
  const { whole, filter, stateOf, root } = options;
  const all = [...graph.nodes.values()];
  const ways = reachable(graph, startsOf(graph, root), (id) => stateOf(id) !== 'hidden');
  const above = all.filter((n) => ways.has(n.id) && (n.id === root || n.id === options.keep || isAbove(sizeOf(n), whole, filter)));
  above.sort((a, b) => rank(b, options) - rank(a, options));
  const shown = new Set(above.slice(0, options.most).map((n) => n.id));
  for (const id of shown) {
    if (stateOf(id) !== 'all') continue;
    for (const edge of graph.out.get(id) ?? []) shown.add(edge.callee);
  }
  const drawn = (edge: GraphEdge) => shown.has(edge.caller) && stateOf(edge.caller) !== 'hidden';
  const edges = [...shown].flatMap((id) => graph.into.get(id) ?? []).filter(drawn);
  return {
    nodes: all.filter((n) => shown.has(n.id)),
    edges,
    folded: foldedArcs(graph, shown, edges, stateOf),
    left: Math.max(0, above.length - options.most),
  };
}

function rank(node: GraphNode, options: PruneOptions): number {
  return node.id === options.root || node.id === options.keep ? Infinity : sizeOf(node);
}

// Where the river begins. What no root leads to (its callers are not known) begins by itself.
function startsOf(graph: CallGraph, root: FunctionId | null): FunctionId[] {
  if (root !== null) return [root];
  const starts = [...graph.nodes.values()].filter((n) => n.root || !graph.into.has(n.id)).map((n) => n.id);
  const seen = reachable(graph, starts, () => true);
  for (const id of graph.nodes.keys()) {
    if (seen.has(id)) continue;
    starts.push(id);
    for (const more of reachable(graph, [id], () => true)) seen.add(more);
  }
  return starts;
}

function foldedArcs(graph: CallGraph, shown: Set<FunctionId>, edges: GraphEdge[], stateOf: PruneOptions['stateOf']) {
  const reached = new Set(edges.map((e) => e.callee));
  const folded: Shown['folded'] = [];
  for (const callee of shown) {
    if (reached.has(callee)) continue;
    const above = new Set<FunctionId>([callee]);
    const callers = new Set<FunctionId>();
    for (const id of above)
      for (const edge of graph.into.get(id) ?? []) {
        if (!shown.has(edge.caller)) above.add(edge.caller);
        else if (edge.caller !== callee && stateOf(edge.caller) !== 'hidden') callers.add(edge.caller);
      }
    for (const caller of [...callers].slice(0, 3)) folded.push({ caller, callee });
  }
  return folded;
}
