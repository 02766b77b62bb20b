// The run: what ran, how it ended, and how good the data is.
import type { Sampling } from '../data/types';
import { commandLine, percent, plural, printable, seconds, threadsAndProcesses, withCommas, withUnit } from '../format';
import { summary } from '../state';
import { amount, inSeconds } from '../table/figures';
import { FactList, type Fact } from './FactList';

// As `weir report` has it: what was cut off, guessed, lost.
export function quality(s: Sampling): string {
  const part = (n: number, of: number) => (n ? percent(n / of) : 'none');
  return [
    plural(s.samples, 'sample'),
    ...(s.samples ? [`${part(s.truncated, s.samples)} cut off`] : []),
    ...(s.frames ? [`${part(s.frames_heuristic, s.frames)} of frames guessed`] : []),
    `${withCommas(s.lost)} lost`,
    ...(s.late ? [`${withCommas(s.late)} late`] : []),
    ...(s.no_room ? [`${withCommas(s.no_room)} without room for a call path`] : []),
    ...(s.verify ? [s.verify_differences ? `${withCommas(s.verify_differences)} differ when verified` : 'all the same when verified'] : []),
    ...(s.sees_kernel ? [] : ['time in the kernel is not seen']),
  ].join(', ');
}

function time(n: number): string {
  return amount(n) + inSeconds(n);
}

function withShare(n: number): string {
  return n ? `${time(n)}, ${percent(n / summary.value.total)}` : time(n);
}

// What was waited, and its share of the time of all threads, on the processor or off it.
function waiting(): string {
  const s = summary.value;
  const waited = s.waited / (s.os_units_per_second || 1);
  const share = s.processor_seconds === null ? '' : `, ${percent(waited / (waited + s.processor_seconds))} of the threads' time`;
  return `${seconds(waited)} in OS calls, off the processor${share}: ${s.with_waits ? 'in all times' : 'in no other time'}`;
}

function countedFacts(): Fact[] {
  const s = summary.value;
  return [
    ['Total', <b>{time(s.total)}</b>],
    ['Code', `${withShare(s.cycles)}${s.instructions ? `; ${withUnit(s.instructions)} instructions` : ''}`],
    ['OS calls', `${withShare(s.os_time)}${s.os_time && s.os_units_per_second > 0 ? ` · ${seconds(s.os_time / s.os_units_per_second)}` : ''}; ${plural(s.os_calls, 'call')}`],
    ...(s.waited ? [['Waited', waiting()] as Fact] : []),
    ['Functions', `${withCommas(s.functions_run)} of ${withCommas(s.functions_known)} ran`],
    ['Clock', s.clock === 'cycles' ? `cycles of ${s.cpu || 'the CPU'}, on ${s.host_cpu}` : s.clock],
  ];
}

function sampledFacts(by: Sampling): Fact[] {
  const s = summary.value;
  const each = by.rate > 0 ? `${withCommas(by.rate)} a second of ${by.event === 'cpu' ? 'CPU' : by.event} time` : `one for ${withCommas(by.period)} ${by.event}`;
  return [
    ['Total', <b>{time(s.total)}</b>],
    ['Taken', `${each} (${by.source})`],
    ['Quality', quality(by)],
    ['Frames', `${withCommas(by.frames)} (unwind: ${by.unwind})`],
    ['Functions', `${withCommas(s.functions_run)} in samples`],
    ['CPU', s.host_cpu],
  ];
}

export function Run() {
  const s = summary.value;
  const facts: Fact[] = [
    ['Command', <code>{commandLine(s.command)}</code>],
    ['In', s.directory],
    ['Ended', s.ended],
    ['Profile', s.file],
    ...(s.compared ? [['Compared with', <>{s.compared.file}: <code>{commandLine(s.compared.command)}</code></>] as Fact] : []),
    ['Kind', s.kind],
    ...(s.sampling ? sampledFacts(s.sampling) : countedFacts()),
    ['Call paths', s.paths_known ? withCommas(s.contexts) : s.sampling ? 'none' : 'not recorded'],
    ['Threads', threadsAndProcesses(s)],
    ...(s.processor_seconds === null ? [] : [['Processor', `${s.processor_seconds.toFixed(3)} s under Weir, probes included`] as Fact]),
    ...(s.sampling ? [] : [['Natively', 'processor time not known: weir sample or perf stat tells it'] as Fact]),
    ['Wall time', `${s.wall_seconds.toFixed(3)} s under Weir ${s.weir_version}`],
  ];
  return (
    <section class="view run" aria-label="The run">
      <FactList facts={facts} wide />
      <h3>Is the data whole?</h3>
      {s.sampling && (
        <p>
          It is samples: looks at where the program was, not counts. {quality(s.sampling)}.
          {s.sampling.samples > 0 && ` 19 times of 20 a share is right within ${percent(Math.min(1, 1 / Math.sqrt(s.sampling.samples)))} of the whole.`}
        </p>
      )}
      {!s.sampling && s.notes.length === 0 && <p>Yes: everything that ran was seen.</p>}
      {s.notes.length > 0 && <ul>{s.notes.map((n) => <li key={n}>{printable(n)}</li>)}</ul>}
      {s.pruned.length > 0 && (
        <>
          <h3>What this file leaves out</h3>
          <ul>{s.pruned.map((n) => <li key={n}>{n}</li>)}</ul>
        </>
      )}
    </section>
  );
}
