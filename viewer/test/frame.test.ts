import { describe, expect, it } from 'vitest';
import { firstFrame } from '../src/graph/frame';

const pane = { x: 0, y: 0, width: 600, height: 600, scale: 1 };
const box = (x: number, y: number) => ({ id: 1, x, y, width: 100, height: 20 });

describe('the first frame of the graph', () => {
  const seen = (f: typeof pane, b: ReturnType<typeof box>) => b.x - 50 >= f.x && b.x + 50 <= f.x + f.width / f.scale && b.y - 10 >= f.y && b.y + 10 <= f.y + f.height / f.scale;
  it('has all of a small one, in its middle', () => {
    const f = firstFrame({ width: 400, height: 300 }, pane, box(200, 10), undefined);
    expect([f.x, f.y]).toEqual([(400 - 600 / 1.15) / 2, (300 - 600 / 1.15) / 2]);
    expect(f.scale).toBe(1.15);
  });
  it('begins where the river does, with names that can be read', () => {
    const f = firstFrame({ width: 900, height: 1500 }, pane, box(450, 10), box(500, 400));
    expect(f.scale).toBe(1);
    expect([seen(f, box(450, 10)), seen(f, box(500, 400))]).toEqual([true, true]);
  });
  it('goes only as far as the selected function', () => {
    const f = firstFrame({ width: 900, height: 1500 }, pane, box(450, 10), box(840, 1000));
    expect(seen(f, box(840, 1000))).toBe(true);
    expect(f.y).toBe(1000 + 10 + 24 - 600);
    expect(f.x + 600).toBeLessThanOrEqual(900 + 12);
  });
});
