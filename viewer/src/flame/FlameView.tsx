// V8: flame graph and icicle, from the callers down or reversed, with search and zoom, on a canvas of ours.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { useCommands } from '../app/keys';
import { source, useAnswer } from '../data/ask';
import { matcher } from '../data/source';
import type { Flame, FunctionId, FunctionPage, FunctionRow } from '../data/types';
import { baseName, commandLine, percent, plural, printable, shortName, withCommas, withUnit } from '../format';
import { comparing, get, go, moveTo, select, selected, summary, thread, tune } from '../state';
import { amount } from '../table/figures';
import { Choice } from '../views/Choice';
import { nothingRan } from '../views/columns';
import { MissingCalls } from '../views/MissingCalls';
import { Failed, Waiting } from '../views/Waiting';
import { isDark, mostImages, paletteOf, type Palette } from './colours';
import { draw, rowOf, rowSize, type Picture } from './draw';
import { callersOf, find, framesOf, matched, pathTo, treeOf, type Frame } from './tree';

// With `of` in the address: who called that function, upwards. A file has only the graph of all, from which it is made.
export function FlameView() {
  const { paths_known, contexts, sampling } = summary.value;
  const of = get('of');
  const inverted = of !== '' || get('inverted') === '1';
  const params = () => ({ thread: thread.value, of: source.live ? get('of') : '', inverted: get('of') === '' && get('inverted') === '1' });
  const sent = useAnswer<Flame>(() => (paths_known ? { name: 'flame', params: params() } : null));
  const part = useAnswer<Flame>(() => (paths_known && get('zoom') && source.live ? { name: 'flame', params: { ...params(), root: get('zoom') } } : null));
  const whole = useMemo(() => (sent.value && of && !source.live ? callersOf(sent.value, Number(of)) : sent.value), [sent.value, of]);
  if (!paths_known)
    return (
      <section class="view" aria-label="Flame graph">
        <div class="hint">{sampling ? nothingRan() : <NoPaths />}</div>
      </section>
    );
  const mine = (flame: Flame | undefined) => flame && (flame.path.join('.') === get('zoom') ? flame : undefined);
  return (
    <section class="view flame" aria-label="Flame graph">
      {sent.error ? (
        <Failed>
          {sent.error} {of && <button onClick={() => go({ of: null, zoom: null })}>All of it</button>}
        </Failed>
      ) : whole && whole.path.join('.') === of ? (
        <Chart whole={whole} part={mine(part.value)} inverted={inverted} />
      ) : (
        <Waiting since={sent.since} what={`Reading ${withCommas(contexts)} call paths`} />
      )}
    </section>
  );
}

function NoPaths() {
  return (
    <>
      <p>This profile holds who called whom, but no call paths; guessing them from callers would be wrong.</p>
      <p>
        To see a flame graph, profile again with: <code>weir profile --paths=full -- {commandLine(summary.value.command)}</code>
      </p>
    </>
  );
}

function Chart({ whole, part, inverted }: { whole: Flame; part: Flame | undefined; inverted: boolean }) {
  const of = get('of');
  const flame = part ?? whole;
  const unknown = comparing.value && !summary.value.compared!.paths_known;
  const coloured = comparing.value && !unknown;
  const byBefore = coloured && get('by') === 'before';
  const tree = useMemo(() => treeOf(flame, byBefore), [flame, byBefore]);
  const path = (get('zoom') || of).split('.').filter(Boolean).map(Number);
  const found = part ? 0 : find(tree, path.slice(flame.path.length));
  const root = Math.max(0, found);
  const above = found < 0 ? [] : path.slice(0, -1); // functions over the root
  const icicle = get('shape', 'flame') === 'icicle';
  const search = get('search');
  const matches = useMemo(() => safeMatcher(search), [search]);
  const names = { ...whole.names, ...flame.names };
  const nameOf = (id: FunctionId) => names[id]?.[0] ?? '?';
  const hits = useMemo(() => (search ? (node: number) => node > 0 && matches(nameOf(flame.function[node]!)) : null), [search, flame]);
  const share = hits ? matched(tree, root, hits) / (tree.size[root] || 1) : 0;

  const pane = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSignal({ width: 800, height: 400, top: 0 });
  const hover = useSignal<{ frame: Frame; x: number; y: number } | null>(null);
  const current = useSignal<number>(-1);
  const theme = useSignal(0);
  const largest = useAnswer<FunctionPage>(() => ({ name: 'functions', params: { sort: 'self', offset: 0, limit: 200 } }));
  const images = useMemo(() => imagesByTime(largest.value?.rows ?? []), [largest.value]);
  const frames = useMemo(() => framesOf(tree, root, size.value.width, 0.4), [tree, root, size.value.width]);
  const depth = frames.reduce((d, f) => Math.max(d, f.level), 0) + 1 + (path.length > 0 ? above.length + 1 : 0);
  const height = Math.max(size.value.height, depth * rowSize);
  const nothing = !(tree.size[root]! > 0);

  useLayoutEffect(() => {
    const measure = () => {
      const p = pane.current;
      if (p) size.value = { width: Math.max(100, p.clientWidth), height: p.clientHeight, top: p.scrollTop };
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(pane.current!);
    const repaint = () => theme.value++;
    const themes = new MutationObserver(repaint);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', repaint);
    return () => {
      observer.disconnect();
      themes.disconnect();
      system.removeEventListener('change', repaint);
    };
  }, []);
  // A flame grows upwards: its root is at the bottom.
  useLayoutEffect(() => {
    pane.current!.scrollTop = icicle ? 0 : height;
  }, [icicle, root, tree, height]);

  const rows = above.length + (path.length > 0 ? 1 : 0); // of functions over the root, with "all"
  const picture: Picture = {
    tree, frames, rows, icicle, height, width: size.value.width, viewHeight: size.value.height, top: size.value.top,
    above: path.length > 0 ? ['all', ...above.map(nameOf)] : [],
    nameOf: (node) => (node === 0 && tree.flame.path.length === 0 ? 'all' : printable(nameOf(flame.function[node]!))),
    imageOf: (node) => names[flame.function[node]!]?.[1] ?? '',
    palette: paletteOf(isDark(), images),
    hits, selected: selected.value, current: current.value, comparing: coloured,
  };
  useLayoutEffect(() => draw(canvas.current!, picture));
  // What was pointed at were frames of another picture.
  useLayoutEffect(() => {
    hover.value = null;
    current.value = -1;
  }, [tree, root]);

  const zoom = (to: FunctionId[]) => go({ zoom: to.join('.') || null, ...(to.length === 0 && { of: null }) });
  const zoomTo = (node: number) => zoom(pathTo(tree, node));
  const hit = (e: MouseEvent): Frame | null => {
    const box = canvas.current!.getBoundingClientRect();
    const row = rowOf(picture, e.clientY - box.top + size.value.top);
    const x = e.clientX - box.left;
    if (row < rows) return { node: -1 - row, x: 0, width: size.value.width, level: 0 };
    return frames.find((f) => f.level === row - rows && x >= f.x && x < f.x + f.width) ?? null;
  };
  const pick = (node: number, to: (id: FunctionId | null) => void) => {
    current.value = node;
    if (node > 0 || tree.flame.path.length > 0) to(flame.function[node] ?? null);
  };
  const click = (e: MouseEvent) => {
    const f = hit(e);
    if (!f) return;
    if (f.node < 0) zoom(path.slice(0, -1 - f.node));
    else pick(f.node, select);
  };
  const move = (key: string) => pick(neighbour(tree, frames, root, current.value, icicle ? key : flipped[key]!), moveTo);
  const up = () => path.length > 0 && zoom(path.slice(0, -1));
  useCommands([
    { keys: 'i', about: 'flame graph or icicle', run: () => tune({ shape: icicle ? null : 'icicle' }) },
    { keys: 'v', about: 'reversed: from the leaves to their callers', run: () => tune({ inverted: inverted ? null : '1', zoom: null, of: null }) },
    { keys: 'ArrowLeft ArrowRight ArrowUp ArrowDown', about: 'flame graph: to the next frame', run: move },
    { keys: 'z Enter', about: 'flame graph: zoom to the frame', run: () => current.value > 0 && zoomTo(current.value) },
    { keys: 'u Backspace', about: 'flame graph: zoom out by one', run: up },
    { keys: '0', about: 'flame graph: all of it', run: () => zoom([]) },
  ]);
  const about = useComputed(() => describe(hover.value?.frame.node ?? current.value));
  function describe(node: number): string {
    if (node < 0 || node >= tree.size.length) return '';
    const now = flame.total[node]!;
    const before = flame.before?.[node];
    return [
      picture.nameOf(node),
      `total ${amount(now)}, ${percent(now / (summary.value.total || 1))}`,
      ...(inverted ? [] : [`self ${withUnit(flame.self[node]!)}`]),
      ...(summary.value.calls_known && !inverted ? [plural(flame.calls[node]!, 'call')] : []),
      ...(before !== undefined ? [`before ${withUnit(before)}`] : []),
      baseName(picture.imageOf(node)),
    ].join(' · ');
  }
  return (
    <>
      <div class="bar">
        <Choice label="Shape" value={icicle ? 'icicle' : 'flame'} options={[['flame', 'Flame'], ['icicle', 'Icicle']]} onChange={(v) => tune({ shape: v === 'flame' ? null : v })} />
        <Choice label="Direction" value={inverted ? '1' : ''} options={[['', 'From the start'], ['1', 'Reversed']]} onChange={(v) => tune({ inverted: v, zoom: null, of: null })} />
        {coloured && <Choice label="Widths" value={get('by')} options={[['', 'Now'], ['before', 'Before']]} onChange={(v) => tune({ by: v })} />}
        <input id="find-here" type="search" placeholder="Search   f" aria-label="Search in the flame graph" value={search} onInput={(e) => tune({ search: e.currentTarget.value })} />
        {search && <span role="status" class="matched">{share > 0 ? `${percent(share)} matches` : 'no match'}</span>}
        {path.length > 0 && <button onClick={() => zoom([])}>All of it <kbd>0</kbd></button>}
        {of && <span>Callers of <b class="name">{shortName(nameOf(Number(of)), 40)}</b>, with all that it calls</span>}
        <span class="space" />
        {flame.cut > 0 && <span class="faint">{plural(flame.cut, 'branch', 'branches')} too small to see</span>}
      </div>
      <MissingCalls of={flame} />
      <div class="caption">
        <span role="status" aria-live="polite">{about.value || (unknown ? 'The run before has no call paths: nothing is compared here. ' : '') + 'Click selects, double click zooms.'}</span>
        {coloured ? <Swatches of={changes(picture.palette)} /> : <Swatches of={imagesIn(names, images, picture.palette)} />}
      </div>
      <div class="flame-pane" ref={pane} onScroll={(e) => (size.value = { ...size.value, top: e.currentTarget.scrollTop })}>
        <div style={{ height: height + 'px' }}>
          <canvas ref={canvas} tabIndex={0} role="img" aria-label={`Flame graph of ${plural(frames.length, 'frame')}. ${about.value}`} onClick={click} onDblClick={(e) => { const f = hit(e); if (f && f.node > 0) zoomTo(f.node); }} onMouseMove={(e) => { const f = hit(e); hover.value = f && { frame: f, x: e.clientX, y: e.clientY }; }} onMouseLeave={() => (hover.value = null)} />
        </div>
        {!nothing && frames.length <= 1 && flame.cut > 0 && <div class="hint">None of the {plural(flame.cut, 'branch', 'branches')} is large enough to be seen: each has less than 1/4000 of this time. A search of the functions finds them.</div>}
        {nothing && <div class="hint">{byBefore ? 'This path took no time before.' : 'No time was spent here.'}</div>}
      </div>
      {hover.value && hover.value.frame.node >= 0 && <Tip text={describe(hover.value.frame.node)} x={hover.value.x} y={hover.value.y} />}
    </>
  );
}

const flipped: Record<string, string> = { ArrowUp: 'ArrowDown', ArrowDown: 'ArrowUp', ArrowLeft: 'ArrowLeft', ArrowRight: 'ArrowRight' };

// In an icicle: down to the widest child, up to the parent, left and right on the same level.
function neighbour(tree: ReturnType<typeof treeOf>, frames: Frame[], root: number, at: number, key: string): number {
  const here = frames.find((f) => f.node === at);
  if (!here) return root;
  if (key === 'ArrowUp') return at === root ? root : tree.flame.parent[at]!;
  if (key === 'ArrowDown') {
    const children = frames.filter((f) => f.level === here.level + 1 && tree.flame.parent[f.node] === at);
    return children.reduce((a, f) => (f.width > a.width ? f : a), children[0] ?? here).node;
  }
  const level = frames.filter((f) => f.level === here.level);
  const index = level.findIndex((f) => f.node === at) + (key === 'ArrowRight' ? 1 : -1);
  return level[Math.min(level.length - 1, Math.max(0, index))]!.node;
}

function safeMatcher(text: string): (name: string) => boolean {
  try {
    return matcher(text, /[\\^$*+?()[\]{}|]/.test(text));
  } catch {
    return matcher(text, false);
  }
}

// The same in every graph of a run, so that an image keeps its colour.
function imagesByTime(functions: FunctionRow[]): string[] {
  const time = new Map<string, number>();
  for (const f of functions) time.set(f.image, (time.get(f.image) ?? 0) + f.self);
  return [...time].sort((a, b) => b[1] - a[1]).map(([image]) => image);
}

type Swatch = [title: string, colour: string];

function imagesIn(names: Flame['names'], images: string[], palette: Palette): Swatch[] {
  const here = new Set(Object.values(names).map(([, image]) => image));
  const known = images.slice(0, mostImages).filter((i) => here.has(i));
  const others = here.size - known.length;
  return [...known.map((i): Swatch => [baseName(i), palette.frame(i, 4)]), ...(others > 0 ? [['others', palette.frame('', 4)] as Swatch] : [])];
}

function changes(palette: Palette): Swatch[] {
  return [['grew since the run before', palette.changed(2, 1)], ['shrank', palette.changed(1, 2)]];
}

function Swatches({ of }: { of: Swatch[] }) {
  return (
    <span class="swatches">
      {of.map(([title, colour]) => (
        <span key={title}>
          <i style={{ background: colour }} /> {title}
        </span>
      ))}
    </span>
  );
}

function Tip({ text, x, y }: { text: string; x: number; y: number }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const b = box.current!;
    const width = b.offsetWidth;
    b.style.left = Math.max(4, Math.min(innerWidth - width - 8, x + 12)) + 'px';
    b.style.top = (y + 18 + b.offsetHeight > innerHeight ? y - b.offsetHeight - 8 : y + 18) + 'px';
  });
  const [name, ...facts] = text.split(' · ');
  return (
    <div class="tip" ref={box} aria-hidden="true">
      <b class="name">{shortName(name ?? '', 300)}</b>
      {facts.map((f) => <div key={f}>{f}</div>)}
    </div>
  );
}
