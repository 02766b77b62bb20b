// The whole skeleton, with a box around the part that the detail pane shows. The box is dragged from where it is grasped; a click beside it brings it there.
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
  const grasp = useRef({ x: 0, y: 0 }); // where in the box
  const place = (e: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    const scale = Math.min(box.width / layout.width, box.height / layout.height);
    return {
      x: (e.clientX - box.left - (box.width - layout.width * scale) / 2) / scale,
      y: (e.clientY - box.top - (box.height - layout.height * scale) / 2) / scale,
    };
  };
  const take = (e: PointerEvent) => {
    const { x, y } = place(e);
    const f = frame.value;
    const [width, height] = [f.width / f.scale, f.height / f.scale];
    const within = x >= f.x && x <= f.x + width && y >= f.y && y <= f.y + height;
    grasp.current = within ? { x: x - f.x, y: y - f.y } : { x: width / 2, y: height / 2 };
    move(e);
  };
  const move = (e: PointerEvent) => {
    const { x, y } = place(e);
    frame.value = { ...frame.value, x: x - grasp.current.x, y: y - grasp.current.y };
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
        take(e);
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
