// V7: shares against a virtual root are of what a function costs below it, so that none is above 100 %.
//
// Only call paths tell that, and the server that has them says so (`below`). From who called whom alone it is
//
//   all of a function's time, where every way to it leads through the root
//   at most min(its time, the root's) otherwise
import type { FunctionId, Graph, GraphNode } from '../data/types';
import { CallGraph, reachable } from './prune';

export function belowRoot(graph: Graph, root: FunctionId): Graph {
  const calls = new CallGraph(graph.nodes, graph.edges);
  const top = calls.nodes.get(root);
  if (!top || graph.below) return graph;
  const below = reachable(calls, [root], () => true);
  const starts = graph.nodes.filter((n) => n.id !== root && (n.root || !calls.into.has(n.id))).map((n) => n.id);
  const past = reachable(calls, starts, (id) => id !== root); // what other ways lead to
  const most = (time: number) => Math.min(time, top.total);
  const bounded = (n: GraphNode): GraphNode => ({ ...n, self: most(n.self), total: most(n.total), ...(n.id !== root && past.has(n.id) && { at_most: true }) });
  return {
    ...graph,
    functions: below.size,
    nodes: graph.nodes.filter((n) => below.has(n.id)).map(bounded),
    edges: graph.edges
      .filter((e) => below.has(e.caller) && below.has(e.callee))
      .map((e) => ({ ...e, total: most(e.total), ...(e.caller !== root && past.has(e.caller) && { at_most: true }) })),
  };
}
