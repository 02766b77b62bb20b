import { describe, expect, it } from 'vitest';
import type { Flame } from '../src/data/types';
import { callersOf, find, framesOf, matched, pathTo, treeOf } from '../src/flame/tree';

// all 100 → main(1) 100 → A(2) 60 → C(4) 20
//                       → B(3) 30 → C(4) 30 → C(4) 10
const flame: Flame = {
  path: [], parent: [0, 0, 1, 2, 1, 4, 5], function: [-1, 1, 2, 4, 3, 4, 4], total: [100, 100, 60, 20, 30, 30, 10],
  self: [0, 10, 40, 20, 0, 20, 10], calls: [0, 1, 1, 1, 1, 1, 1], before: [80, 80, 60, 20, 10, 10, 0], cut: 0, names: {},
};

describe('flame graphs', () => {
  const tree = treeOf(flame, false);
  it('put children side by side from the left edge of their parent', () => {
    expect(tree.x).toEqual([0, 0, 0, 0, 60, 60, 60]);
    expect(tree.depth).toEqual([0, 1, 2, 3, 2, 3, 4]);
    expect(tree.end).toEqual([7, 7, 4, 4, 7, 7, 7]);
  });
  it('scale the frames to the width, and leave out what cannot be seen', () => {
    expect(framesOf(tree, 0, 1000, 0).find((f) => f.node === 5)).toEqual({ node: 5, x: 600, width: 300, level: 3 });
    expect(framesOf(tree, 0, 1000, 150).map((f) => f.node)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(framesOf(tree, 4, 300, 0).map((f) => [f.node, f.x, f.width, f.level])).toEqual([[4, 0, 300, 0], [5, 0, 300, 1], [6, 0, 100, 2]]);
    expect(framesOf(treeOf({ ...flame, total: flame.total.map(() => 0) }, false), 0, 1000, 0)).toEqual([]);
  });
  it('find a node by its path, and the path of a node', () => {
    for (let i = 0; i < 7; i++) expect(find(tree, pathTo(tree, i))).toBe(i);
    expect(pathTo(tree, 6)).toEqual([1, 3, 4, 4]);
    expect(find(tree, [1, 9])).toBe(-1);
  });
  it('count a match within a match once', () => {
    expect(matched(tree, 0, (n) => flame.function[n] === 4)).toBe(50);
    expect(matched(tree, 4, (n) => flame.function[n] === 4)).toBe(30);
  });
  it('can be as wide as the run before', () => {
    expect(treeOf(flame, true).x).toEqual([0, 0, 0, 0, 60, 60, 60]);
    expect(framesOf(treeOf(flame, true), 0, 800, 0).find((f) => f.node === 4)!.width).toBe(100);
  });
  it('of the callers of a function have all that it calls, and no call within a call', () => {
    const up = callersOf(flame, 4);
    expect([up.path, up.function, up.total, up.before, up.self]).toEqual([[4], [4, 3, 1, 2, 1], [50, 30, 30, 20, 20], [30, 10, 10, 20, 20], [0, 0, 30, 0, 20]]);
    expect(treeOf(up, false).end[0]).toBe(5);
  });
});
