// The whole skeleton, with a box around the part that the detail pane shows. The box can be dragged; a click brings it there.
import type { Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { selected } from '../state';
import type { Drawn } from './GraphView';
import type { Frame } from './frame';
import { pathOf } from './River';

export function Overview({ drawn, frame }: { drawn: Drawn; frame: Signal<Frame> }) {
  const svg = useRef<SVGSVGElement>(null);
  const { layout, shown } = drawn;
  const at = selected.value;
  const lit = new Set<number>();
  if (at !== null) {
    lit.add(at);
    for (const e of shown.edges) {
      if (e.caller === at) lit.add(e.callee);
      if (e.callee === at) lit.add(e.caller);
    }
  }
  const move = (e: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    const scale = Math.min(box.width / layout.width, box.height / layout.height);
    const x = (e.clientX - box.left - (box.width - layout.width * scale) / 2) / scale;
    const y = (e.clientY - box.top - (box.height - layout.height * scale) / 2) / scale;
    const f = frame.value;
    frame.value = { ...f, x: x - f.width / f.scale / 2, y: y - f.height / f.scale / 2 };
  };
  const f = frame.value;
  const big = Math.max(layout.width, layout.height) / 240;
  return (
    <svg
      ref={svg}
      viewBox={`0 0 ${layout.width} ${layout.height}`}
      role="img"
      aria-label={`Overview of ${shown.nodes.length} functions; drag the box to move the detail`}
      onPointerDown={(e) => {
        e.currentTarget.setPointerCapture(e.pointerId);
        move(e);
      }}
      onPointerMove={(e) => e.currentTarget.hasPointerCapture(e.pointerId) && move(e)}
    >
      {layout.arcs.map((a) => (
        <path key={`${a.caller} ${a.callee}`} d={pathOf(a.points)} class={at !== null && (a.caller === at || a.callee === at) ? 'skeleton lit' : 'skeleton'} stroke-width={big} />
      ))}
      {[...layout.boxes.values()].map((b) => (
        <rect key={b.id} x={b.x - b.width / 2} y={b.y - b.height / 2} width={b.width} height={b.height} rx={4} class={b.id === at ? 'skeleton-node at' : lit.has(b.id) ? 'skeleton-node lit' : 'skeleton-node'} stroke-width={big} />
      ))}
      <rect class="box" x={f.x} y={f.y} width={f.width / f.scale} height={f.height / f.scale} stroke-width={big * 2} />
    </svg>
  );
}
