// V3: annotated source and disassembly, with marks, heat, and a jump to the hottest line.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useAnswer, type Answer } from '../data/ask';
import type { Asm, AsmRow, Detail, FileSource, FunctionId, Source, SourceLine, SourceSection } from '../data/types';
import { baseName, hex, percent, plural, printable, shortName, withCommas } from '../format';
import { get, go, select, selected, summary, thread, tune } from '../state';
import { amount, Count, Share, Time } from '../table/figures';
import { Table, type Column } from '../table/Table';
import { Choice } from '../views/Choice';
import { With } from '../views/Waiting';
import { useCommands } from '../app/keys';
import { highlightLines } from './highlight';

interface Line extends SourceLine {
  html: string;
  heading?: string; // instead of a line
}

export function SourceView() {
  useCommands([{ keys: 'h', about: 'source: the hottest line, then the next', run: () => hotter.value++ }]);
  if (get('file')) return <WholeFile path={get('file')} />;
  if (selected.value === null) return <div class="hint">Select a function in another view, or press / to find one: its source and its code are shown here.</div>;
  return <OfFunction />;
}

function OfFunction() {
  const mode = get('code', 'both');
  const source = useAnswer<Source>(() => (selected.value === null ? null : { name: 'source', params: { id: selected.value, thread: thread.value } }));
  const bare = mode === 'both' && source.value?.sections.length === 0; // no lines: the code has all the room
  return (
    <section class="view code" aria-label="Source and disassembly">
      <div class="bar">
        <Choice label="What is shown" value={mode} options={[['source', 'Source'], ['both', 'Both'], ['asm', 'Disassembly']]} onChange={(code) => tune({ code })} />
        <Find />
        <Legend />
      </div>
      {bare && <p class="note">{noLines}</p>}
      <div class="columns">
        {mode !== 'asm' && !bare && <FunctionSource answer={source} />}
        {mode !== 'source' && <Disassembly />}
      </div>
    </section>
  );
}

const noLines = 'No lines are known of this function: it was compiled without -g.';

function Legend() {
  return summary.value.calls_known ? (
    <span class="faint legend">
      <b class="mark">|</b> ran, in one block <b class="mark">+</b> in several <b class="mark">#</b> never ran
    </span>
  ) : (
    <span class="faint legend">
      <b class="mark">|</b> was in samples, in one block <b class="mark">+</b> in several
    </span>
  );
}

// Lines and instructions with these letters stand out, and Enter goes from one to the next.
function Find() {
  return <input id="find-here" type="search" placeholder="Find here   f" aria-label="Find in source and disassembly" value={get('text')} onInput={(e) => tune({ text: e.currentTarget.value })} onKeyDown={(e) => e.key === 'Enter' && onwards.value++} />;
}

function FunctionSource({ answer }: { answer: Answer<Source> }) {
  const os = useAnswer<Detail>(() => (selected.value === null ? null : { name: 'function', params: { id: selected.value, thread: thread.value } })).value?.function.os_time ?? 0;
  const apart = os > 0 ? `without ${amount(os)} of its OS calls` : '';
  return (
    <With answer={answer} what="Reading the source">
      {(source) => <Listing label="Source" of="function" apart={apart} lines={linesOf(source.sections)} whole={source.self} notes={source.sections.filter((s) => s.state !== 'same')} />}
    </With>
  );
}

function WholeFile({ path }: { path: string }) {
  const answer = useAnswer<FileSource>(() => ({ name: 'file', params: { path: get('file'), thread: thread.value } }));
  return (
    <section class="view" aria-label="Source file">
      <div class="bar">
        <button onClick={() => go({ file: null })}>Back to the function</button>
        <b title={path}>{path}</b>
        <Find />
        <Legend />
      </div>
      <With answer={answer} what="Reading the file">
        {(file) => <Listing label="Source" of="run" lines={coloured(file.lines, file.file)} whole={summary.value.cycles} notes={file.state === 'same' ? [] : [file]} />}
      </With>
    </section>
  );
}

function coloured(lines: SourceLine[], file: string): Line[] {
  const html = highlightLines(lines.map((l) => l.text), file);
  return lines.map((line, i) => ({ ...line, html: html[i] ?? '' }));
}

function linesOf(sections: SourceSection[]): Line[] {
  const lines: Line[] = [];
  for (const s of sections) {
    if (sections.length > 1 || s.inlined)
      lines.push({ line: 0, mark: '', count: 0, self: 0, text: '', html: '', heading: s.inlined ? `inlined: ${shortName(s.inlined, 80)}  ${baseName(s.file)}` : s.file });
    // (Of a file that is missing, lines without code are nothing.)
    const shown = coloured(s.state === 'missing' ? s.lines.filter((l) => l.mark !== '' || l.text !== '') : s.lines, s.file);
    for (const [i, line] of shown.entries()) {
      if (i > 0 && line.line > shown[i - 1]!.line + 1 && s.state !== 'missing') lines.push({ line: 0, mark: '', count: 0, self: 0, text: '', html: '', heading: '⋮' });
      lines.push(line);
    }
  }
  return lines;
}

// One key for all listings in sight.
const hotter = signal(0);
const onwards = signal(0);

// The rows with the most time, the hottest first: `h` goes from one to the next.
function useHottest(costs: number[], texts: string[]) {
  const at = useSignal<{ index: number; rank: number } | null>(null);
  const order = useMemo(
    () => costs.map((cost, index) => ({ cost, index })).filter((l) => l.cost > 0).sort((a, b) => b.cost - a.cost).slice(0, 50),
    [costs],
  );
  const next = () => {
    if (order.length === 0) return;
    const rank = at.value ? (at.value.rank + 1) % order.length : 0;
    at.value = { index: order[rank]!.index, rank };
  };
  const asked = useRef(hotter.value);
  useEffect(() => {
    if (asked.current !== hotter.value) next();
    asked.current = hotter.value;
  }, [hotter.value]);
  const text = get('text').toLowerCase();
  const found = useMemo(() => new Set(text === '' ? [] : texts.flatMap((t, i) => (t.toLowerCase().includes(text) ? [i] : []))), [texts, text]);
  const searched = useRef(onwards.value);
  useEffect(() => {
    if (searched.current !== onwards.value && found.size > 0) {
      const all = [...found];
      at.value = { index: all.find((i) => i > (at.value?.index ?? -1)) ?? all[0]!, rank: -1 };
    }
    searched.current = onwards.value;
  }, [onwards.value]);
  return { at, next, any: order.length > 0, found };
}

function heat(self: number, whole: number) {
  return { '--warmth': whole > 0 ? Math.min(1, Math.sqrt(self / whole)) : 0 };
}

interface ListingProps {
  label: string;
  of: 'function' | 'run'; // what shares are of
  apart?: string; // what is in no line
  lines: Line[];
  whole: number;
  notes: { file: string; state: string; why: string }[];
}

function Listing({ label, of, apart = '', lines, whole, notes }: ListingProps) {
  const costs = useMemo(() => lines.map((l) => l.self), [lines]);
  const texts = useMemo(() => lines.map((l) => l.text), [lines]);
  const hottest = useHottest(costs, texts);
  const columns: Column<Line>[] = [
    { key: 'self', title: `Of ${of}`, about: of === 'run' ? 'share of the time of all code that ran' : 'share of the time of this function’s own code', width: '6.4em', right: true, cell: (l) => l.self > 0 && <Share of={l.self} whole={whole} /> },
    { key: 'count', title: summary.value.calls_known ? 'Count' : 'Samples', width: '6.8em', spare: 1, right: true, cell: (l) => l.mark && <Count of={l.count} /> },
    { key: 'mark', title: '', width: '1.6em', cell: (l) => <b class="mark">{l.mark}</b> },
    { key: 'line', title: 'Line', width: '4em', right: true, cell: (l) => <span class="faint">{l.line || ''}</span> },
    { key: 'text', title: 'Source', width: 'minmax(26em, 1fr)', cell: (l) => (l.heading ? <i class="heading">{printable(l.heading)}</i> : <>{l.text && <code dangerouslySetInnerHTML={{ __html: l.html }} style={heat(l.self, whole)} />}{l.calls?.map((c) => <Callee key={c.id} {...c} />)}</>) },
  ];
  return (
    <div class="listing">
      <FileNotes notes={notes} />
      <Jump label={label} hottest={hottest} apart={apart} />
      <Table label={label} columns={columns} count={lines.length} row={(i) => lines[i]} current={hottest.at.value?.index ?? null} onSelect={(_, i) => (hottest.at.value = { index: i, rank: -1 })} rowClass={(l, i) => (hottest.found.has(i) ? 'found ' : '') + (l.mark === '#' ? 'never' : '')} empty={noLines} />
    </div>
  );
}

// One line a state: of many files that are missing, one is told of.
function FileNotes({ notes }: { notes: { file: string; state: string; why: string }[] }) {
  const files = [...new Map(notes.map((n) => [n.file, n])).values()];
  return (
    <>
      {['changed', 'missing', 'unknown'].map((state) => {
        const [first, ...more] = files.filter((n) => n.state === state);
        return (
          first && (
            <p class={`note ${state}`} key={state} role="status" title={more.map((n) => n.file).join('\n')}>
              <b>{baseName(first.file)}</b> {first.why}
              {more.length > 0 && ` · the same of ${plural(more.length, 'other file')}`}
            </p>
          )
        );
      })}
    </>
  );
}

function Jump({ label, hottest, apart = '' }: { label: string; hottest: ReturnType<typeof useHottest>; apart?: string }) {
  return (
    <div class="bar">
      <b>{label}</b>
      <button onClick={hottest.next} disabled={!hottest.any}>
        Hottest line <kbd>h</kbd>
      </button>
      {get('text') && <span role="status">{plural(hottest.found.size, 'line')} found</span>}
      {apart && <span class="faint">{apart}</span>}
    </div>
  );
}

function Callee({ id, name, calls }: { id: FunctionId; name: string; calls: number }) {
  return (
    <a class="callee" href="#" onClick={(e) => (e.preventDefault(), e.stopPropagation(), select(id))}>
      → {shortName(name, 40)}{summary.value.calls_known && ` ×${withCommas(calls)}`}
    </a>
  );
}

function Disassembly() {
  const answer = useAnswer<Asm>(() => (selected.value === null ? null : { name: 'asm', params: { id: selected.value, thread: thread.value } }));
  return (
    <With answer={answer} what="Reading the code">
      {(asm) => <Code asm={asm} />}
    </With>
  );
}

function Code({ asm }: { asm: Asm }) {
  const costs = useMemo(() => asm.rows.map((r) => r.self), [asm]);
  const texts = useMemo(() => asm.rows.map((r) => `${hex(r.offset)} ${r.text} ${r.callees.map((c) => c.name).join(' ')}`), [asm]);
  const hottest = useHottest(costs, texts);
  const columns: (Column<AsmRow> | false)[] = [
    { key: 'self', title: 'Of function', about: 'share of the function’s own code, of the block that begins here', width: '6.4em', right: true, cell: (r) => r.self > 0 && <Share of={r.self} whole={asm.self} /> },
    { key: 'time', title: summary.value.unit, width: '5em', spare: 2, right: true, cell: (r) => r.self > 0 && <Time of={r.self} /> },
    summary.value.calls_known && { key: 'count', title: 'Count', width: '6.8em', spare: 1, right: true, cell: (r) => r.mark && <Count of={r.count} /> },
    { key: 'mark', title: '', width: '1.6em', cell: (r) => <b class="mark">{r.mark}</b> },
    { key: 'offset', title: 'Offset', width: '7.8em', right: true, cell: (r) => <span class="faint name" title={r.gap ? `${plural(r.gap, 'byte')} before this were not reached` : ''}>{r.gap > 0 && '⋮ '}{hex(r.offset)}</span> },
    { key: 'text', title: 'Code', width: 'minmax(20em, 1fr)', cell: (r) => <><code style={heat(r.self, asm.self)}>{r.text}</code>{r.callees.map((c) => <Callee key={c.id} {...c} />)}{r.source && <span class="faint place" title={percent(r.self / (asm.self || 1))}>{r.source}</span>}</> },
  ];
  return (
    <div class="listing">
      <Jump label="Disassembly" hottest={hottest} />
      <Table label="Disassembly" columns={columns.filter((c) => c !== false)} count={asm.rows.length} row={(i) => asm.rows[i]} current={hottest.at.value?.index ?? null} onSelect={(_, i) => (hottest.at.value = { index: i, rank: -1 })} rowClass={(r, i) => (hottest.found.has(i) ? 'found ' : '') + (r.count === 0 ? 'never ' : '') + (r.mark ? 'begins' : '')} empty="Its code is not in the profile." />
    </div>
  );
}
