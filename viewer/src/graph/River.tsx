// The part of the graph inside the frame, with names. Drag to move, Ctrl and wheel to zoom.
import type { Signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useCommands } from '../app/keys';
import type { FunctionId, GraphEdge, GraphNode } from '../data/types';
import { percent, plural, printable, withUnit } from '../format';
import { comparing, get, moveTo, select, selected } from '../state';
import { amount } from '../table/figures';
import { atMost } from '../views/columns';
import { arcWidth, type Weighting } from './formulas';
import { firstFrame, type Frame } from './frame';
import type { Drawn } from './GraphView';
import { foundIn, MarkPath } from './GraphView';
import { labelOf, placesOf } from './label';
import type { Arc, Box } from './layout';
import type { NodeState } from './prune';

export function pathOf(points: [number, number][]): string {
  const [first, ...rest] = points;
  if (!first) return '';
  return `M${first[0]} ${first[1]} C${rest.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(' ')}`;
}

interface Props {
  drawn: Drawn;
  stateOf: (id: FunctionId) => NodeState;
  weighting: Weighting;
  frame: Signal<Frame>;
  root: FunctionId | null;
}

export function River({ drawn, stateOf, weighting, frame, root }: Props) {
  const { layout, shown, whole } = drawn;
  const pane = useRef<HTMLDivElement>(null);
  const hold = useRef<{ x: number; y: number; frame: Frame; moved: boolean } | null>(null);
  const nodes = useMemo(() => new Map(shown.nodes.map((n) => [n.id, n])), [shown]);
  const edges = useMemo(() => new Map(shown.edges.map((e) => [`${e.caller} ${e.callee}`, e])), [shown]);
  const found = new Set(foundIn(shown).map((n) => n.id));
  const smallest = useMemo(() => Math.min(1, ...shown.edges.map((e) => e.total / whole).filter((s) => s > 0)), [shown, whole]);

  const resize = () => {
    const box = pane.current?.getBoundingClientRect();
    if (box) frame.value = { ...frame.value, width: box.width, height: box.height };
  };
  useEffect(() => {
    const observer = new ResizeObserver(resize);
    observer.observe(pane.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    resize();
    frame.value = firstFrame(layout, frame.value, firstBox(drawn), selected.value === null ? undefined : layout.boxes.get(selected.value));
  }, [layout]);
  useEffect(() => {
    const b = selected.value === null ? undefined : layout.boxes.get(selected.value);
    if (b && !inside(b, frame.value)) centre(b, frame.value.scale);
  }, [selected.value]);

  function centre(b: Box, scale: number) {
    const f = frame.value;
    frame.value = { ...f, scale, x: b.x - f.width / scale / 2, y: b.y - f.height / scale / 2 };
  }
  function zoom(by: number, at?: { x: number; y: number }) {
    const f = frame.value;
    const scale = clampScale(f.scale * by, 0.05, 4);
    const p = at ?? { x: f.width / 2, y: f.height / 2 };
    frame.value = { ...f, scale, x: f.x + p.x / f.scale - p.x / scale, y: f.y + p.y / f.scale - p.y / scale };
  }
  function fit() {
    const f = frame.value;
    const scale = Math.min(2, f.width / (layout.width + 20), f.height / (layout.height + 20));
    frame.value = { ...f, scale, x: (layout.width - f.width / scale) / 2, y: (layout.height - f.height / scale) / 2 };
  }
  useCommands([
    { keys: 'z', about: 'graph: zoom in', run: () => zoom(1.25) },
    { keys: 'x', about: 'graph: zoom out', run: () => zoom(0.8) },
    { keys: '0', about: 'graph: all of it', run: fit },
    { keys: 'ArrowLeft ArrowRight ArrowUp ArrowDown', about: 'graph: to the caller, callee, neighbour', run: (key) => moveTo(next(drawn.flow === 'down' ? turned[key]! : key, drawn)) },
    { keys: 'Enter', about: 'graph: the source of the selected function', run: () => selected.value !== null && select(selected.value, { view: 'source' }) },
  ]);

  const f = frame.value;
  const at = selected.value;
  return (
    <div
      class="river"
      ref={pane}
      tabIndex={-1}
      onWheel={(e) => {
        e.preventDefault();
        const box = pane.current!.getBoundingClientRect();
        if (e.ctrlKey || e.metaKey) zoom(Math.exp(-e.deltaY / 300), { x: e.clientX - box.left, y: e.clientY - box.top });
        else frame.value = { ...f, x: f.x + (e.shiftKey ? e.deltaY : e.deltaX) / f.scale, y: f.y + (e.shiftKey ? 0 : e.deltaY) / f.scale };
      }}
      onPointerDown={(e) => (hold.current = { x: e.clientX, y: e.clientY, frame: f, moved: false })}
      onPointerMove={(e) => {
        const h = hold.current;
        if (!h || e.buttons === 0) return;
        if (!h.moved && Math.hypot(e.clientX - h.x, e.clientY - h.y) < 4) return;
        h.moved = true;
        frame.value = { ...f, x: h.frame.x - (e.clientX - h.x) / f.scale, y: h.frame.y - (e.clientY - h.y) / f.scale };
      }}
    >
      <svg id="river" viewBox={`${f.x} ${f.y} ${f.width / f.scale} ${f.height / f.scale}`} role="group" aria-label="Functions and calls">
        <defs>
          {['arc', 'lit', 'worse', 'better', 'same', 'same-lit'].map((kind) => (
            <marker key={kind} id={`head-${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0 0 L8 4 L0 8 Z" class={`head ${kind}`} />
            </marker>
          ))}
        </defs>
        {layout.arcs.map((a) => (
          <ArcPath key={`${a.caller} ${a.callee}`} arc={a} edge={edges.get(`${a.caller} ${a.callee}`)} nodes={nodes} weighting={weighting} whole={whole} smallest={smallest} lit={at !== null && (a.caller === at || a.callee === at)} />
        ))}
        {[...layout.boxes.values()].map((b) => {
          const node = nodes.get(b.id);
          return node && <NodeBox key={b.id} box={b} node={node} drawn={drawn} state={stateOf(b.id)} isRoot={b.id === root} isFound={found.has(b.id)} onSelect={() => hold.current?.moved || select(b.id)} />;
        })}
      </svg>
      <div class="zoom">
        <button aria-label="Zoom in" title="Zoom in   z" onClick={() => zoom(1.25)}>+</button>
        <button aria-label="Zoom out" title="Zoom out   x" onClick={() => zoom(0.8)}>−</button>
        <button aria-label="All of it" title="All of it   0" onClick={fit}>⤢</button>
      </div>
    </div>
  );
}

function clampScale(scale: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, scale));
}

function inside(b: Box, f: Frame): boolean {
  return b.x - b.width / 2 >= f.x && b.x + b.width / 2 <= f.x + f.width / f.scale && b.y - b.height / 2 >= f.y && b.y + b.height / 2 <= f.y + f.height / f.scale;
}

function firstBox({ layout, shown }: Drawn): Box | undefined {
  const largest = shown.nodes.reduce<GraphNode | undefined>((a, n) => (n.root && (!a || n.total > a.total) ? n : a), undefined) ?? shown.nodes[0];
  return largest && layout.boxes.get(largest.id);
}

// Where the river flows down, its callers are above.
const turned: Record<string, string> = { ArrowUp: 'ArrowLeft', ArrowDown: 'ArrowRight', ArrowLeft: 'ArrowUp', ArrowRight: 'ArrowDown' };

// Where an arrow key leads in a river that flows to the right: to the largest caller or callee, to the next box above or below.
function next(key: string, drawn: Drawn): FunctionId | null {
  const { shown, layout } = drawn;
  const here = selected.value === null ? undefined : layout.boxes.get(selected.value);
  if (!here) return firstBox(drawn)?.id ?? null;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const back = key === 'ArrowLeft';
    const arcs = shown.edges.filter((e) => (back ? e.callee : e.caller) === here.id).sort((a, b) => b.total - a.total);
    return arcs[0] ? (back ? arcs[0].caller : arcs[0].callee) : here.id;
  }
  const onwards = key === 'ArrowDown' ? 1 : -1;
  const [along, across] = drawn.flow === 'down' ? (['y', 'x'] as const) : (['x', 'y'] as const);
  const same = [...layout.boxes.values()].filter((b) => Math.abs(b[along] - here[along]) < 30 && (b[across] - here[across]) * onwards > 1);
  same.sort((a, b) => (a[across] - b[across]) * onwards);
  return same[0]?.id ?? here.id;
}

type Change = '' | 'same' | 'worse' | 'better'; // '': nothing is compared

function changeOf(now: number, before: number | undefined): Change {
  if (!comparing.value) return '';
  if (before === undefined || now === before) return 'same';
  return now > before ? 'worse' : 'better';
}

// How strongly a change is shown: by its share of what there was.
function strengthOf(change: Change, now: number, before: number | undefined) {
  if (change !== 'worse' && change !== 'better') return undefined;
  return { strokeOpacity: Math.min(1, 0.35 + Math.abs(now - before!) / Math.max(now, before!, 1)) };
}

function ArcPath({ arc, edge, nodes, weighting, whole, smallest, lit }: { arc: Arc; edge: GraphEdge | undefined; nodes: Map<FunctionId, GraphNode>; weighting: Weighting; whole: number; smallest: number; lit: boolean }) {
  const names = `${nodes.get(arc.caller)?.name.slice(0, 200)} → ${nodes.get(arc.callee)?.name.slice(0, 200)}`;
  if (!edge)
    return (
      <path d={pathOf(arc.points)} class="arc folded">
        <title>{printable(names)}: by way of functions below the filter</title>
      </path>
    );
  const change = changeOf(edge.total, edge.before);
  const strength = strengthOf(change, edge.total, edge.before);
  const kind = strength ? change : change ? (lit ? 'same-lit' : 'same') : lit ? 'lit' : 'arc';
  return (
    <path d={pathOf(arc.points)} class={`arc ${lit ? 'lit' : ''} ${change}`} stroke-width={arcWidth(weighting, edge.total / whole, smallest)} style={strength} marker-end={`url(#head-${kind})`} data-arc={`${arc.caller} ${arc.callee}`}>
      <title>
        {printable(names)}
        {edge.calls !== null ? `\n${plural(edge.calls, 'call')}` : ''}
        {`\n${atMost(edge)}${amount(edge.total)}, ${percent(edge.total / whole)}`}
        {strength ? `\nbefore: ${withUnit(edge.before!)}` : ''}
      </title>
    </path>
  );
}

function NodeBox({ box, node, drawn, state, isRoot, isFound, onSelect }: { box: Box; node: GraphNode; drawn: Drawn; state: NodeState; isRoot: boolean; isFound: boolean; onSelect: () => void }) {
  const label = labelOf(node, drawn);
  const places = placesOf(label);
  const left = box.x - box.width / 2;
  const top = box.y - box.height / 2;
  const at = selected.value === node.id;
  const before = node.before === null ? 0 : node.before?.total;
  const change = changeOf(node.total, before);
  const warmth = Math.min(1, Math.sqrt(node.self / drawn.whole));
  return (
    <g class={`node ${at ? 'at' : ''} ${isRoot ? 'is-root' : ''} ${warmth > 0.15 ? 'warm' : ''} ${isFound ? 'found' : ''} ${change}`} role="button" aria-label={`${node.name.slice(0, 300)}, ${percent(node.total / drawn.whole)}`} aria-pressed={at} data-function={node.id} onClick={onSelect} onDblClick={() => select(node.id, { view: 'source' })} transform={`translate(${left} ${top})`}>
      <title>{`${printable(node.name.slice(0, 1000))}\nself ${withUnit(node.self)} (${percent(node.self / drawn.whole)}), total ${atMost(node)}${withUnit(node.total)} (${percent(node.total / drawn.whole)})${get('root') ? ' of the root' : ''}${node.at_most ? '\nIt is called elsewhere too: call paths would tell how much of it is below the root.' : ''}`}</title>
      <rect width={box.width} height={box.height} rx={5} class="node-box" style={at ? undefined : strengthOf(change, node.total, before)} />
      <rect width={box.width} height={box.height} rx={5} class="node-heat" style={{ opacity: warmth }} />
      {node.recursive && (
        <path class="recursive" d={`M8 -1 Q${box.width / 2} -11 ${box.width - 8} -1`}>
          <title>recursive</title>
        </path>
      )}
      <text y={box.height / 2 + 4}>
        {label.left && <tspan x={places.left} class="datum">{label.left}</tspan>}
        <tspan x={places.name}>{label.name}</tspan>
        {label.right && <tspan x={places.right} class="datum">{label.right}</tspan>}
      </text>
      {node.children > 0 && (
        <g transform={`translate(${places.mark} ${box.height / 2 - 5})`} class={`state-${state}`}>
          <MarkPath state={state} />
        </g>
      )}
    </g>
  );
}
