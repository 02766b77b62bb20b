// V4 to V7: the call graph as a river of time. An overview with a box that can be dragged, the part inside the box with names, and
// what decides which functions are drawn and how wide their arcs are.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useCommands } from '../app/keys';
import { ask, source, useAnswer } from '../data/ask';
import type { FunctionId, Graph, GraphNode } from '../data/types';
import { plural, shortName, shortPercent, withCommas } from '../format';
import { comparing, get, go, moveTo, selected, summary, thread, tune } from '../state';
import { data, nothingRan, type Datum } from '../views/columns';
import { MissingCalls } from '../views/MissingCalls';
import { Failed, Waiting, With } from '../views/Waiting';
import { countAbove, filterSteps, initialFilter, isAbove, type Weighting } from './formulas';
import { apart, GivenUp, LayoutWorker, toDot, withLone, type Flow, type Layout } from './layout';
import LayoutCode from './layout.worker?worker&inline';
import { Overview } from './Overview';
import { labelOf, widthOf } from './label';
import { CallGraph, prune, sizeOf, states, type NodeState, type Shown } from './prune';
import type { Frame } from './frame';
import { River } from './River';
import { belowRoot } from './root';
import { saveSvg } from './save';

const worker = new LayoutWorker(() => new LayoutCode());
const mostDrawn = 300; // Graphviz takes half a second for as many

export interface Drawn {
  shown: Shown;
  layout: Layout;
  whole: number;
  left: Datum;
  right: Datum;
  length: number;
  flow: Flow;
}

export function GraphView() {
  const root = get('root') === '' ? null : Number(get('root'));
  const answer = useAnswer<Graph>(() => ({ name: 'graph', params: { thread: thread.value, root: source.live ? get('root') : '' } }));
  return (
    <section class="view graph" aria-label="Call graph">
      <With answer={answer} what="Reading who called whom">
        {(base) => <Controlled base={base} root={root} />}
      </With>
    </section>
  );
}

// Node states in the address: "12h.40a".
function parseStates(text: string): Map<FunctionId, NodeState> {
  const result = new Map<FunctionId, NodeState>();
  for (const part of text.split('.').filter(Boolean)) result.set(parseInt(part, 10), part.endsWith('h') ? 'hidden' : 'all');
  return result;
}
function formatStates(map: Map<FunctionId, NodeState>): string {
  return [...map].filter(([, s]) => s !== 'some').map(([id, s]) => id + (s === 'hidden' ? 'h' : 'a')).join('.');
}

// The graph that was sent, with what open nodes and the selected function need beyond it.
function useCompleted(base: Graph, open: Map<FunctionId, NodeState>, root: FunctionId | null): CallGraph {
  const wanted = [...open].filter(([, s]) => s === 'all').map(([id]) => id);
  const known = useMemo(() => new Set(base.nodes.map((n) => n.id)), [base]);
  if (selected.value !== null && !known.has(selected.value)) wanted.push(selected.value);
  const complete = base.nodes.length === base.functions;
  const more = complete ? [] : wanted.map((id) => ask<Graph>('neighbours', { of: id, thread: thread.value, root }).value.value).filter((g) => g !== undefined);
  return useMemo(() => {
    const nodes = new Map<FunctionId, GraphNode>();
    for (const n of [base, ...more].flatMap((g) => g.nodes)) if (!nodes.has(n.id)) nodes.set(n.id, n);
    const edges = new Map([base, ...more].flatMap((g) => g.edges).map((e) => [`${e.caller} ${e.callee}`, e]));
    const all = { ...base, nodes: [...nodes.values()], edges: [...edges.values()] };
    const seen = root === null ? all : belowRoot(all, root);
    return new CallGraph(seen.nodes, seen.edges);
  }, [base, more.length, wanted.join(), root]);
}

function Controlled({ base: sent, root }: { base: Graph; root: FunctionId | null }) {
  const open = useMemo(() => parseStates(get('states')), [get('states')]);
  const graph = useCompleted(sent, open, root);
  const base = useMemo(() => {
    const below = root === null ? sent : belowRoot(sent, root);
    return source.live ? { ...below, functions: sent.functions } : below;
  }, [sent, root]);
  const rootNode = root === null ? undefined : graph.nodes.get(root);
  const whole = (rootNode ? rootNode.total : summary.value.total) || 1;
  const totals = useMemo(() => base.nodes.map(sizeOf).sort((a, b) => b - a), [base]);
  const opening = initialFilter(totals, whole);
  // (Where rounding up goes past every function, all are drawn that can be.)
  const asked = get('min') === '' ? NaN : Number(get('min'));
  const filter = asked >= 0 ? asked : countAbove(totals, whole, opening) > 0 ? opening : 0;
  const weighting = get('weight', 'log') as Weighting;
  const length = Number(get('length', '28'));
  const stateOf = (id: FunctionId): NodeState => open.get(id) ?? 'some';
  const shown = useMemo(
    () => prune(graph, { whole, filter, root: rootNode ? root : null, most: mostDrawn, keep: selected.value, stateOf }),
    [graph, whole, filter, root, open, selected.value],
  );
  // Smaller functions than all that were sent may be above the filter too.
  const unsent = source.live ? base.functions - base.nodes.length : 0;
  const more = unsent > 0 && filter > 0 && isAbove(totals.at(-1) ?? 0, whole, filter) ? '+' : '';
  const above = withCommas(filter === 0 ? base.nodes.length + unsent : countAbove(totals, whole, filter));
  const left = shown.left + (filter === 0 ? unsent : 0);
  const choices = data();
  const datum = (key: string, otherwise: string) => choices.find((d) => d.key === get(key, otherwise)) ?? choices[0]!;
  const leftData = get('left') === 'none' ? choices[0]! : datum('left', comparing.value ? 'change' : '');
  const rightData = get('right') === 'none' ? choices[0]! : datum('right', 'totalp');

  const flow = get('flow', 'down') as Flow;
  const drawn = useLayout(shown, whole, leftData, rightData, length, flow);
  const frame = useSignal<Frame>({ x: 0, y: 0, width: 1, height: 1, scale: 1 });
  const step = (by: number) => {
    const id = selected.value;
    const node = id === null ? undefined : graph.nodes.get(id);
    if (!node || node.children === 0) return;
    const next = states[Math.min(2, Math.max(0, states.indexOf(stateOf(node.id)) + by))]!;
    tune({ states: formatStates(new Map([...open, [node.id, next]])) });
  };
  const filterStep = (by: number) => {
    const at = filterSteps.findIndex((s) => s >= filter - 1e-9);
    tune({ min: String(filterSteps[Math.min(filterSteps.length - 1, Math.max(0, at + by))]) });
  };
  useCommands([
    { keys: 'c -', about: 'collapse: show fewer children of the selected function', run: () => step(-1) },
    { keys: 's +', about: 'show subtree: more children', run: () => step(1) },
    { keys: 'r', about: 'the selected function is the virtual root, or no more', run: () => selected.value !== null && go({ root: get('root') === String(selected.value) ? null : String(selected.value) }) },
    { keys: ',', about: 'time filter: show more functions', run: () => filterStep(-1) },
    { keys: '.', about: 'time filter: show fewer', run: () => filterStep(1) },
    { keys: 'o', about: 'the river flows down, or to the right', run: () => tune({ flow: flow === 'down' ? 'right' : null }) },
    { keys: 'w', about: 'arc widths: none, linear, logarithmic, adaptive', run: () => tune({ weight: weightings[(weightings.findIndex(([k]) => k === weighting) + 1) % 4]![0] }) },
  ]);
  const canStep = selected.value !== null && (graph.nodes.get(selected.value)?.children ?? 0) > 0;
  return (
    <>
      <div class="controls">
        <OverviewPane drawn={drawn.value} frame={frame} />
        <Find shown={shown} />
        <TimeFilter filter={filter} shown={shown} above={above + more} />
        <div class="pair">
          <button onClick={() => step(-1)} disabled={!canStep} title="Fewer children of the selected function   c">Collapse</button>
          <button onClick={() => step(1)} disabled={!canStep} title="More children   s">Show subtree</button>
        </div>
        <label>
          Arcs
          <select value={weighting} onChange={(e) => tune({ weight: e.currentTarget.value })}>
            {weightings.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
        </label>
        <label>
          Flow
          <select value={flow} onChange={(e) => tune({ flow: e.currentTarget.value })}>
            <option value="down">down</option>
            <option value="right">to the right</option>
          </select>
        </label>
        <label>
          Left data <DatumChoice name="left" value={leftData.key} choices={choices} />
        </label>
        <label>
          Right data <DatumChoice name="right" value={rightData.key} choices={choices} />
        </label>
        <label>
          Name length
          <input type="number" min={4} max={200} value={length} onInput={(e) => +e.currentTarget.value >= 4 && tune({ length: e.currentTarget.value })} />
        </label>
        <label>
          Root
          {rootNode ? (
            <button onClick={() => go({ root: null })} title={`Shares are of ${rootNode.name}; click for the whole program   r`}>{shortName(rootNode.name, 18)} ✕</button>
          ) : (
            <span class="faint">the program</span>
          )}
        </label>
        <button disabled={!drawn.value} onClick={() => drawn.value && saveSvg()}>Save as SVG</button>
        <Marks />
      </div>
      <div class="river-pane" aria-busy={drawn.since !== undefined || (drawn.value && drawn.value.shown !== shown)}>
        <MissingCalls of={sent} />
        {drawn.error && <Failed>{drawn.error}</Failed>}
        {drawn.value ? <River drawn={drawn.value} stateOf={stateOf} weighting={weighting} frame={frame} root={root} /> : !drawn.error && <Waiting since={drawn.since} what={`Laying out ${plural(shown.nodes.length, 'function')}`} />}
        {shown.nodes.length === 0 && <div class="hint">{base.functions ? 'No function is above the filter.' : nothingRan()}</div>}
        <div class="caption faint">
          <span>
            {plural(shown.nodes.length, 'function')} of {withCommas(base.functions)}, {plural(shown.edges.length, 'arc')}
            {left > 0 && ` · ${withCommas(left)}${more} more above the filter: raise it, or choose a root`}
            {summary.value.pruned.length > 0 && base.nodes.length < base.functions && ' · smaller ones are not in this file'}
          </span>
          {comparing.value && <span class="changed"><i class="worse" /> grew <i class="better" /> shrank since the run before</span>}
        </div>
      </div>
    </>
  );
}

const weightings: [Weighting, string][] = [['none', 'all alike'], ['linear', 'linear'], ['log', 'logarithmic'], ['adaptive', 'adaptive']];

function useLayout(shown: Shown, whole: number, left: Datum, right: Datum, length: number, flow: Flow) {
  const state = useSignal<{ value?: Drawn; error?: string; since?: number }>({ since: performance.now() });
  useEffect(() => {
    if (shown.nodes.length === 0) return void (state.value = {});
    state.value = { ...(state.value.value && { value: state.value.value }), since: performance.now() };
    const labels = new Map(shown.nodes.map((n) => [n.id, widthOf(labelOf(n, { whole, left, right, length }))]));
    const width = (id: FunctionId) => labels.get(id) ?? 40;
    const { river, lone } = apart(shown);
    worker.run(toDot(river, flow, width, (total) => total / whole)).then(
      (layout) => (state.value = { value: { shown, layout: withLone(layout, lone, width), whole, left, right, length, flow } }),
      (e) => !(e instanceof GivenUp) && (state.value = { error: `The graph could not be laid out (${e}). A higher time filter makes it smaller.` }),
    );
  }, [shown, whole, left.key, right.key, length, flow]);
  return state.value;
}

// The functions drawn whose names have these letters: they stand out, and Enter goes from one to the next.
export function foundIn(shown: Shown): GraphNode[] {
  const text = get('find').toLowerCase();
  return text === '' ? [] : shown.nodes.filter((n) => n.name.toLowerCase().includes(text));
}

function Find({ shown }: { shown: Shown }) {
  const found = foundIn(shown);
  const next = () => {
    const at = found.findIndex((n) => n.id === selected.value);
    if (found.length > 0) moveTo(found[(at + 1) % found.length]!.id);
  };
  return (
    <div class="find">
      <input id="find-here" type="search" placeholder="Find here   f" aria-label="Find in the graph" value={get('find')} onInput={(e) => tune({ find: e.currentTarget.value })} onKeyDown={(e) => e.key === 'Enter' && next()} />
      {get('find') && <span class="faint" role="status">{withCommas(found.length)}</span>}
    </div>
  );
}

function OverviewPane({ drawn, frame }: { drawn: Drawn | undefined; frame: Signal<Frame> }) {
  return <div class="overview">{drawn && <Overview drawn={drawn} frame={frame} />}</div>;
}

function TimeFilter({ filter, shown, above }: { filter: number; shown: Shown; above: string }) {
  const drag = useRef(0);
  const at = Math.max(0, filterSteps.findIndex((s) => s >= filter - 1e-9));
  const set = (index: number) => {
    clearTimeout(drag.current);
    const value = String(filterSteps[index] ?? 0);
    drag.current = setTimeout(() => tune({ min: value }), 60) as unknown as number;
  };
  return (
    <div class="filter">
      <label for="min">
        Time filter <b>≥ {shortPercent(filter)}</b>
        <span class="faint">{above} {above === '1' ? 'function' : 'functions'}</span>
      </label>
      <input id="min" type="range" min={0} max={filterSteps.length - 1} step={1} value={at} aria-valuetext={`${shortPercent(filter)}, ${shown.nodes.length} functions`} onInput={(e) => set(+e.currentTarget.value)} />
      <input type="number" min={0} max={20} step={0.1} value={+(filter * 100).toFixed(2)} aria-label="Time filter in percent" onChange={(e) => tune({ min: String(Math.min(20, Math.max(0, +e.currentTarget.value)) / 100) })} />
    </div>
  );
}

function DatumChoice({ name, value, choices }: { name: string; value: string; choices: Datum[] }) {
  return (
    <select value={value} onChange={(e) => tune({ [name]: e.currentTarget.value || 'none' })}>
      {choices.map((d) => (
        <option key={d.key} value={d.key}>
          {d.title}
        </option>
      ))}
    </select>
  );
}

function Marks() {
  return (
    <p class="marks faint">
      <Mark state="hidden" /> children hidden <Mark state="some" /> above the filter <Mark state="all" /> all shown
    </p>
  );
}

export function Mark({ state }: { state: NodeState }) {
  return (
    <svg class="mark-glyph" width="9" height="10" viewBox="0 0 9 10" aria-hidden="true">
      <MarkPath state={state} />
    </svg>
  );
}

// An arrowhead: filled, half filled, open.
export function MarkPath({ state }: { state: NodeState }) {
  return (
    <>
      <path d="M1 1 L8 5 L1 9 Z" class={state === 'hidden' ? 'mark-shape filled' : 'mark-shape'} />
      {state === 'some' && <path d="M1 5 L8 5 L1 9 Z" class="mark-shape filled" />}
    </>
  );
}

