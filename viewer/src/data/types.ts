// The answers of `weir view`, as docs/view.md has them. Names are those of `weir report --format json`.

export type FunctionId = number;

export interface Summary {
  kind: string; // "exact profile", "sampled profile"
  unit: string; // of every time: "cycles", "instructions", "samples"
  calls_known: boolean; // false: calls were not counted, and their columns are not shown
  paths_known: boolean; // the profile has call paths
  blocks_known: boolean; // it has the code of what ran, with counts
  file: string;
  command: string[];
  directory: string;
  cpu: string;
  host_cpu: string;
  clock: string;
  weir_version: string;
  wall_seconds: number;
  units_per_second: number; // 0: times are no seconds: cycles of a model, instructions, events
  os_units_per_second: number; // the same of times in OS calls, which are measured
  processor_seconds: number | null; // user and system time of the program, under Weir
  ended: string;
  complete: boolean;
  total: number; // code and OS calls, and what was waited if `with_waits`
  cycles: number;
  os_time: number;
  waited: number; // in OS calls, off the processor
  with_waits: boolean;
  instructions: number;
  functions_known: number;
  functions_run: number;
  threads: number;
  processes: number;
  programs: number; // that they ran
  contexts: number;
  os_calls: number;
  notes: string[];
  compared: Compared | null;
  pruned: string[]; // what an exported file leaves out
  sampling?: Sampling;
}

export interface Sampling {
  event: string; // "cpu", "wall", or what was counted
  source: string;
  rate: number;
  period: number;
  unwind: string;
  samples: number;
  lost: number; // due, and not taken
  truncated: number; // cut off
  frames: number;
  frames_heuristic: number; // guessed
  late: number;
  no_room: number; // without room for their call path
  verify: boolean;
  verify_differences: number;
  sees_kernel: boolean;
}

export interface Compared {
  file: string;
  command: string[];
  total: number;
  cycles: number;
  os_time: number;
  paths_known: boolean;
  threads: number[]; // of this run that have a counterpart there
}

// What the run before, which it is compared with, says of the same thing.
export interface Before {
  calls: number | null; // null: samples do not tell
  self: number;
  total: number;
  name?: string; // where it had another
  image?: string; // where it was in another
}

export interface FunctionRow {
  id: FunctionId;
  name: string;
  image: string;
  file: string | null;
  line: number | null;
  offset: number;
  size: number;
  calls: number | null; // null: samples do not tell
  self: number;
  total: number;
  self_min: number | null;
  self_max: number | null;
  os_calls: number | null;
  os_time: number | null;
  os_time_total: number | null;
  waited: number | null;
  waited_total: number | null;
  recursive: boolean;
  is_estimate: boolean; // the total: of what was inlined in a circle of calls
  before?: Before | null; // null: it did not run then
}

export interface FunctionPage {
  count: number; // of all rows that match
  first: number; // of `rows`
  rows: FunctionRow[];
  position: number | null; // of the function that was looked for
}

export interface CallRow {
  id: FunctionId | null; // of the other function; null: [start]
  name: string;
  calls: number | null;
  total: number;
  share: number; // of this function's total
  sites: Site[];
  before?: number | null; // its total
}

export interface Site {
  place: string;
  kind: string;
  calls: number | null; // samples do not tell
  total: number;
}

export interface OsRow {
  name: string;
  number: number;
  class: string;
  calls: number;
  errors: number;
  waited: number;
  time: number;
}

export interface Detail {
  function: FunctionRow;
  callers: CallRow[];
  more_callers: number; // that are not listed
  callees: CallRow[];
  more_callees: number;
  os_calls: OsRow[];
}

export interface GraphNode extends FunctionRow {
  children: number; // that it ever called, but itself
  root: boolean; // the kernel began here, or nobody is known to have called it
  at_most?: boolean; // below the root that was asked for: it may be less
}

export interface GraphEdge {
  caller: FunctionId;
  callee: FunctionId;
  calls: number | null;
  total: number;
  before?: number;
  at_most?: boolean;
}

// What is added up from call paths, whose table may have been full.
export interface OnPaths {
  missing_calls?: number; // are on no path: their time stands at their callers
  made_calls?: number; // of so many
}

export interface Graph extends OnPaths {
  nodes: GraphNode[]; // the largest totals first
  edges: GraphEdge[];
  functions: number; // of the run, or below the root; `nodes` may be fewer
  below?: boolean; // figures are those below the root that was asked for
}

// A tree as columns, a parent before its children. Node 0 is what was asked for.
export interface Flame extends OnPaths {
  path: FunctionId[]; // from the top to node 0; empty: node 0 is the whole run
  parent: number[];
  function: FunctionId[];
  total: number[];
  self: number[];
  calls: number[];
  before?: number[];
  cut: number; // branches that are too small to be seen
  names: Record<string, [name: string, image: string]>;
}

export interface SourceLine {
  line: number;
  mark: '' | '|' | '+' | '#';
  count: number;
  self: number;
  text: string;
  calls?: { id: FunctionId; name: string; calls: number }[];
}

export interface SourceSection {
  file: string;
  inlined: string | null; // the function that was inlined here
  state: 'same' | 'changed' | 'missing' | 'unknown'; // of the file, by its hash at the time of the run
  why: string; // in words
  lines: SourceLine[]; // without code lines of other functions
}

export interface Source {
  self: number;
  sections: SourceSection[];
}

export interface AsmRow {
  offset: number;
  mark: '' | '|' | '#';
  count: number;
  self: number; // of the block, at its first instruction
  text: string;
  callees: { id: FunctionId; name: string; calls: number }[];
  source: string;
  gap: number; // bytes before this one that were not reached
}

export interface Asm {
  self: number;
  rows: AsmRow[];
}

export interface ThreadRow {
  id: number;
  pid: number;
  tid: number;
  name: string;
  cycles: number;
  os_time: number;
  waited: number;
  instructions: number;
  functions: number;
  ended: string;
  command: string;
  started: number;
  finished: number;
}

export interface OsTable {
  oscalls: (OsRow & { by: { id: FunctionId; name: string; calls: number; time: number; waited: number }[] })[];
}

export interface CoverageRow {
  image: string;
  file: string | null;
  functions: number;
  functions_run: number;
  blocks: number;
  blocks_run: number;
  lines: number;
  lines_run: number;
}

export interface Changes {
  worse: FunctionRow[];
  better: FunctionRow[];
  added: FunctionRow[];
  removed: FunctionRow[];
  renamed: FunctionRow[]; // or moved, and otherwise the same
}

export interface FileSource {
  file: string;
  state: SourceSection['state'];
  why: string;
  lines: SourceLine[];
}
