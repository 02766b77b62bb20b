// Where the frames of a flame graph stand. Widths are times; a frame's children stand side by side from its left edge.
import type { Flame, FunctionId } from '../data/types';

export interface Tree {
  flame: Flame;
  size: number[]; // of each node: its time, or that of the run before
  x: number[]; // where it begins, in the same unit
  depth: number[];
  end: number[]; // the first node behind its descendants
}

export interface Frame {
  node: number; // -1 - i: the i-th function above node 0 of the picture
  x: number; // pixels
  width: number;
  level: number; // from the root
}

// Nodes come in the order of a walk: a parent, then each child with all below it.
export function treeOf(flame: Flame, byBefore: boolean): Tree {
  const size = byBefore && flame.before ? flame.before : flame.total;
  const n = flame.parent.length;
  const x = new Array<number>(n).fill(0);
  const depth = new Array<number>(n).fill(0);
  const end = Array.from({ length: n }, (_, i) => i + 1);
  const next = new Array<number>(n).fill(0); // where a node's next child begins
  for (let i = 1; i < n; i++) {
    const p = flame.parent[i]!;
    depth[i] = depth[p]! + 1;
    x[i] = next[p]!;
    next[i] = x[i]!;
    next[p] = x[i]! + size[i]!;
  }
  for (let i = n - 1; i > 0; i--) end[flame.parent[i]!] = Math.max(end[flame.parent[i]!]!, end[i]!);
  return { flame, size, x, depth, end };
}

// The node that a path of functions leads to from node 0, or -1.
export function find(tree: Tree, path: FunctionId[]): number {
  let at = 0;
  for (const id of path) {
    let child = -1;
    for (let i = at + 1; i < tree.end[at]!; i = tree.end[i]!) if (tree.flame.function[i] === id) child = i;
    if (child < 0) return -1;
    at = child;
  }
  return at;
}

// The path of functions to a node, from the top of the run.
export function pathTo(tree: Tree, node: number): FunctionId[] {
  const path: FunctionId[] = [];
  for (let i = node; i > 0; i = tree.flame.parent[i]!) path.push(tree.flame.function[i]!);
  return [...tree.flame.path, ...path.reverse()];
}

// A function with all that it calls, and upwards who called it: its outermost calls in a flame graph from the start, merged.
export function callersOf(flame: Flame, id: FunctionId): Flame {
  interface Branch {
    function: FunctionId;
    total: number;
    self: number; // what began here
    before: number;
    callers: Map<FunctionId, Branch>;
  }
  const branch = (of: FunctionId): Branch => ({ function: of, total: 0, self: 0, before: 0, callers: new Map() });
  const root = branch(id);
  const within: boolean[] = []; // a call of the function
  flame.function.forEach((f, i) => {
    const outer = i > 0 && within[flame.parent[i]!]!;
    within[i] = outer || f === id;
    if (f !== id || outer) return;
    let at = root;
    for (let node = i; ; ) {
      at.total += flame.total[i]!;
      at.before += flame.before?.[i] ?? 0;
      node = flame.parent[node]!;
      if (node <= 0) break;
      const caller = flame.function[node]!;
      if (!at.callers.has(caller)) at.callers.set(caller, branch(caller));
      at = at.callers.get(caller)!;
    }
    at.self += flame.total[i]!;
  });
  const result: Flame = { ...flame, path: [id], parent: [], function: [], total: [], self: [], calls: [], ...(flame.before && { before: [] }) };
  const walk: [Branch, number][] = [[root, 0]];
  for (let next = walk.pop(); next; next = walk.pop()) {
    const [b, parent] = next;
    const place = result.parent.push(parent) - 1;
    result.function.push(b.function);
    result.total.push(b.total);
    result.self.push(b.self);
    result.calls.push(0);
    result.before?.push(b.before);
    for (const caller of [...b.callers.values()].sort((x, y) => x.total - y.total)) walk.push([caller, place]);
  }
  return result;
}

// The frames of `root` and below it that are at least `least` pixels wide, in `width` pixels.
export function framesOf(tree: Tree, root: number, width: number, least: number): Frame[] {
  const whole = tree.size[root]!;
  const frames: Frame[] = [];
  if (!(whole > 0)) return frames;
  const scale = width / whole;
  for (let i = root; i < tree.end[root]!; ) {
    const w = tree.size[i]! * scale;
    if (w < least) {
      i = tree.end[i]!; // nothing below it is wider
      continue;
    }
    frames.push({ node: i, x: (tree.x[i]! - tree.x[root]!) * scale, width: w, level: tree.depth[i]! - tree.depth[root]! });
    i++;
  }
  return frames;
}

// The time of what matches; a match within a match is not counted twice.
export function matched(tree: Tree, root: number, matches: (node: number) => boolean): number {
  let sum = 0;
  for (let i = root; i < tree.end[root]!; ) {
    if (matches(i)) {
      sum += tree.size[i]!;
      i = tree.end[i]!;
    } else i++;
  }
  return sum;
}
