// From a pruned graph to places: dot in, Graphviz's "plain" out (https://graphviz.org/docs/outputs/plain/). In pixels, y down.
import type { FunctionId } from '../data/types';
import type { Shown } from './prune';

export interface Box {
  id: FunctionId;
  x: number; // its middle
  y: number;
  width: number;
  height: number;
}

export interface Arc {
  caller: FunctionId;
  callee: FunctionId;
  points: [x: number, y: number][]; // of a Bézier curve: 1 + 3n
}

export interface Layout {
  width: number;
  height: number;
  boxes: Map<FunctionId, Box>;
  arcs: Arc[];
}

export const nodeHeight = 22;
const inch = 72;

// Widths of arcs are ours, but they need room: heavy ones are kept short and straight.
export type Flow = 'down' | 'right';
export function toDot(shown: Shown, flow: Flow, widthOf: (id: FunctionId) => number, shareOf: (total: number) => number): string {
  const spacing = flow === 'down' ? 'rankdir=TB; nodesep=0.18; ranksep=0.32;' : 'rankdir=LR; nodesep=0.12; ranksep=0.6;';
  const lines = ['digraph river {', `${spacing} splines=true; node [shape=box fixedsize=true];`];
  for (const n of shown.nodes) lines.push(`${n.id} [width=${(widthOf(n.id) / inch).toFixed(3)} height=${(nodeHeight / inch).toFixed(3)}];`);
  for (const e of shown.edges) lines.push(`${e.caller} -> ${e.callee} [weight=${1 + Math.round(20 * Math.min(1, shareOf(e.total)))} arrowhead=none];`);
  for (const e of shown.folded) lines.push(`${e.caller} -> ${e.callee} [arrowhead=none];`);
  lines.push('}');
  return lines.join('\n');
}

// Functions without an arc would make one endless row: they stand below the others, in rows, the first ones first.
const gap = 14;
export function apart(shown: Shown): { river: Shown; lone: FunctionId[] } {
  const bound = new Set([...shown.edges, ...shown.folded].flatMap((e) => [e.caller, e.callee]));
  const lone = shown.nodes.filter((n) => !bound.has(n.id));
  if (lone.length < 5) return { river: shown, lone: [] };
  return { river: { ...shown, nodes: shown.nodes.filter((n) => bound.has(n.id)) }, lone: lone.sort((a, b) => b.total - a.total).map((n) => n.id) };
}

export function withLone(layout: Layout, lone: FunctionId[], widthOf: (id: FunctionId) => number): Layout {
  if (lone.length === 0) return layout;
  const area = lone.reduce((sum, id) => sum + (widthOf(id) + gap) * (nodeHeight + gap), 0);
  const room = Math.max(layout.width, Math.sqrt(area * 1.4), ...lone.map(widthOf));
  const boxes = new Map(layout.boxes);
  let x = 0;
  let y = layout.height > 0 ? layout.height + 2 * gap : 0;
  let width = layout.width;
  for (const id of lone) {
    const w = widthOf(id);
    if (x > 0 && x + w > room) [x, y] = [0, y + nodeHeight + gap];
    boxes.set(id, { id, x: x + w / 2, y: y + nodeHeight / 2, width: w, height: nodeHeight });
    x += w + gap;
    width = Math.max(width, x - gap);
  }
  return { ...layout, width, height: y + nodeHeight, boxes };
}

export function parsePlain(plain: string): Layout {
  const layout: Layout = { width: 0, height: 0, boxes: new Map(), arcs: [] };
  for (const line of plain.split('\n')) {
    const words = line.split(' ');
    const number = (i: number) => Number(words[i]) * inch;
    if (words[0] === 'graph') {
      layout.width = number(2);
      layout.height = number(3);
    } else if (words[0] === 'node') {
      const id = Number(words[1]);
      layout.boxes.set(id, { id, x: number(2), y: layout.height - number(3), width: number(4), height: number(5) });
    } else if (words[0] === 'edge') {
      const count = Number(words[3]);
      const points = Array.from({ length: count }, (_, i): [number, number] => [number(4 + 2 * i), layout.height - number(5 + 2 * i)]);
      layout.arcs.push({ caller: Number(words[1]), callee: Number(words[2]), points });
    }
  }
  return layout;
}

// One worker; a layout that nobody waits for any more is given up.
export class LayoutWorker {
  private worker: Worker | null = null;
  private last = 0;
  private give: ((e: Error) => void) | null = null;

  constructor(private make: () => Worker) {}

  run(dot: string): Promise<Layout> {
    if (this.give) {
      this.give(new GivenUp());
      this.worker?.terminate();
      this.worker = null;
    }
    const worker = (this.worker ??= this.make());
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.give = reject;
      worker.onmessage = (e: MessageEvent<{ id: number; plain?: string; error?: string }>) => {
        if (e.data.id !== id) return;
        this.give = null;
        if (e.data.plain !== undefined) resolve(parsePlain(e.data.plain));
        else reject(new Error(e.data.error));
      };
      worker.onerror = (e) => {
        this.give = null;
        this.worker = null;
        reject(new Error(e.message || 'the worker ended'));
      };
      worker.postMessage({ id, dot });
    });
  }
}

export class GivenUp extends Error {}
