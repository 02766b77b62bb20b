// The views of the page, in the order of their tabs. A new kind of run adds its own here.
import type { FunctionalComponent } from 'preact';
import { SourceView } from '../code/SourceView';
import type { Summary } from '../data/types';
import { FlameView } from '../flame/FlameView';
import { GraphView } from '../graph/GraphView';
import { Functions } from '../views/Functions';
import { ChangesView, Coverage, OsCalls, Threads, Waits } from '../views/Lists';
import { Run } from '../views/Run';

export interface ViewOf {
  id: string;
  title: string;
  key: string; // goes there
  component: FunctionalComponent;
  shown: (s: Summary) => boolean;
}

export const views: ViewOf[] = [
  { id: 'functions', title: 'Functions', key: '1', component: Functions, shown: () => true },
  { id: 'graph', title: 'Graph', key: '2', component: GraphView, shown: () => true },
  { id: 'flame', title: 'Flame graph', key: '3', component: FlameView, shown: () => true },
  { id: 'source', title: 'Source', key: '4', component: SourceView, shown: () => true },
  { id: 'changes', title: 'Changes', key: '5', component: ChangesView, shown: (s) => s.compared !== null },
  { id: 'threads', title: 'Threads', key: '6', component: Threads, shown: () => true },
  { id: 'oscalls', title: 'OS calls', key: '7', component: OsCalls, shown: (s) => s.os_calls > 0 },
  { id: 'waits', title: 'Waits', key: '0', component: Waits, shown: (s) => s.waited > 0 },
  { id: 'coverage', title: 'Coverage', key: '8', component: Coverage, shown: (s) => s.blocks_known && s.calls_known },
  { id: 'run', title: 'Run', key: '9', component: Run, shown: () => true },
];
