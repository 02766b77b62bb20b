// Frames on a canvas. Only rows in sight are drawn, so that a recursion of any depth is.
import { shortName } from '../format';
import type { Palette } from './colours';
import type { Frame, Tree } from './tree';

export const rowSize = 19;
const character = 6.65; // pixels, of 11 px monospace

export interface Picture {
  tree: Tree;
  frames: Frame[];
  above: string[]; // over the root, each as wide as all
  rows: number; // of these
  icicle: boolean;
  width: number;
  height: number; // of all rows
  viewHeight: number;
  top: number; // of the view
  nameOf: (node: number) => string;
  imageOf: (node: number) => string;
  palette: Palette;
  hits: ((node: number) => boolean) | null;
  selected: number | null;
  current: number;
  comparing: boolean;
}

// The row at a height, from the root.
export function rowOf(p: Picture, y: number): number {
  return Math.floor((p.icicle ? y : p.height - y) / rowSize);
}

function yOf(p: Picture, row: number): number {
  return (p.icicle ? row * rowSize : p.height - (row + 1) * rowSize) - p.top;
}

export function draw(canvas: HTMLCanvasElement, p: Picture) {
  const dots = devicePixelRatio || 1;
  const width = Math.round(p.width * dots);
  const height = Math.round(p.viewHeight * dots);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = p.width + 'px';
    canvas.style.height = p.viewHeight + 'px';
  }
  const c = canvas.getContext('2d')!;
  c.setTransform(dots, 0, 0, dots, 0, 0);
  c.fillStyle = p.palette.background;
  c.fillRect(0, 0, p.width, p.viewHeight);
  c.font = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
  c.textBaseline = 'middle';
  p.above.forEach((name, i) => box(c, p, 0, yOf(p, i), p.width, p.palette.whole, p.palette.faint, '‹ ' + name));
  for (const f of p.frames) {
    const y = yOf(p, p.rows + f.level);
    if (y + rowSize < 0 || y > p.viewHeight) continue;
    frame(c, p, f, y);
  }
}

function frame(c: CanvasRenderingContext2D, p: Picture, f: Frame, y: number) {
  const { flame } = p.tree;
  const id = flame.function[f.node]!;
  const whole = f.node === 0 && flame.path.length === 0;
  const hit = p.hits?.(f.node) ?? false;
  const colour = hit ? p.palette.match
    : whole ? p.palette.whole
    : p.comparing && flame.before ? p.palette.changed(flame.total[f.node]!, flame.before[f.node]!)
    : p.palette.frame(p.imageOf(f.node), id);
  c.globalAlpha = p.hits && !hit && !whole ? 0.45 : 1;
  box(c, p, f.x, y, f.width, colour, p.palette.text, f.width > 3 * character ? p.nameOf(f.node) : '');
  c.globalAlpha = 1;
  if (id !== p.selected && f.node !== p.current) return;
  if (whole && f.node !== p.current) return;
  c.strokeStyle = p.palette.selected;
  c.lineWidth = f.node === p.current ? 2.5 : 1.5;
  c.strokeRect(f.x + 1, y + 1, Math.max(1, f.width - 2.5), rowSize - 2.5);
}

function box(c: CanvasRenderingContext2D, p: Picture, x: number, y: number, width: number, colour: string, ink: string, name: string) {
  c.fillStyle = colour;
  c.fillRect(x, y, Math.max(0.5, width - (width > 2 ? 0.75 : 0)), rowSize - 0.75);
  if (!name) return;
  const left = Math.max(0, x) + 4;
  const room = Math.floor((Math.min(p.width, x + width) - left - 3) / character);
  if (room < 2) return;
  c.fillStyle = ink;
  c.fillText(shortName(name, room), left, y + rowSize / 2);
}
