// The frame around every view.
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { source, useAnswer } from '../data/ask';
import type { Detail as DetailAnswer, ThreadRow } from '../data/types';
import { baseName, commandLine, cut, percent, plural, printable, shortName } from '../format';
import { comparing, go, remember, remembered, selected, summary, thread, view } from '../state';
import { amount, inSeconds } from '../table/figures';
import { Detail } from '../views/Detail';
import { quality } from '../views/Run';
import { Help } from './Help';
import { dialog as help, useCommands } from './keys';
import { Search } from './Search';
import { views } from './views';

const theme = signal(remembered('theme') ?? 'auto');
const dock = signal(remembered('dock') !== 'closed');

function nextTheme() {
  const order = ['auto', 'light', 'dark'];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
  remember('theme', theme.value);
}

function toggleDock() {
  dock.value = !dock.value;
  remember('dock', dock.value ? 'open' : 'closed');
}

function show(id: string) {
  remember('view', id);
  go({ view: id });
}

export function App() {
  const shown = views.filter((v) => v.shown(summary.value));
  const current = shown.find((v) => v.id === view.value) ?? shown[0]!;
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme.value;
  }, [theme.value]);
  useEffect(() => {
    document.title = `${baseName(summary.value.command[0] ?? '') || 'Weir'} · ${current.title} · Weir`;
  }, [current]);
  useCommands([
    ...shown.map((v) => ({ keys: v.key, about: v.title, run: () => show(v.id) })),
    { keys: '/', about: 'go to a function', run: () => document.getElementById('search')?.focus() },
    { keys: 'f', about: 'filter or find in this view', run: () => document.getElementById('find-here')?.focus() },
    { keys: '[ Alt+ArrowLeft', about: 'back', run: () => history.back() },
    { keys: '] Alt+ArrowRight', about: 'forward', run: () => history.forward() },
    { keys: 'd', about: 'function detail: show or hide', run: toggleDock },
    { keys: 't', about: 'theme: light, dark, as the system', run: nextTheme },
    { keys: '?', about: 'these keys', run: () => (help.value = !help.value) },
    { keys: 'Escape', about: 'select nothing; close this', run: () => (help.value ? (help.value = false) : go({ fn: null })) },
  ]);
  const View = current.component;
  const docked = dock.value && current.id !== 'run';
  return (
    <div class="app">
      <Top current={current.id} tabs={shown} />
      <Notes />
      <main class={docked ? 'docked' : ''}>
        <View key={current.id} />
        {docked && <Detail />}
      </main>
      <Status />
      {help.value && <Help onClose={() => (help.value = false)} />}
    </div>
  );
}

function Top({ current, tabs }: { current: string; tabs: typeof views }) {
  const s = summary.value;
  const command = commandLine(s.command);
  return (
    <header>
      <div class="run-line">
        <b class="logo" aria-label="Weir">≋ weir</b>
        <span class="command" title={`${command}\nin ${s.directory}`}>{shortName(command, 120)}</span>
        <span class="faint">
          {amount(s.total)}
          {inSeconds(s.total)}
        </span>
        {!/^(exit 0|unknown)$/.test(s.ended) && <button class="ended" title="How the run ended" onClick={() => show('run')}>{s.ended}</button>}
        <span class="space" />
        <button class="icon" aria-label="Back" title="Back   [" onClick={() => history.back()}>←</button>
        <button class="icon" aria-label="Forward" title="Forward   ]" onClick={() => history.forward()}>→</button>
        <button class="icon" aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}   t`} onClick={nextTheme}>{theme.value === 'dark' ? '☾' : theme.value === 'light' ? '☀' : '◐'}</button>
        <button class="icon" aria-label="Keys" title="Keys   ?" onClick={() => (help.value = true)}>?</button>
      </div>
      <nav aria-label="Views">
        {tabs.map((v) => (
          <button key={v.id} aria-current={v.id === current ? 'page' : undefined} onClick={() => show(v.id)} title={`${v.title}   ${v.key}`} data-title={v.title}>
            {v.title}
          </button>
        ))}
        <span class="space" />
        {source.live && <ThreadChoice />}
        <Search />
      </nav>
    </header>
  );
}

function ThreadChoice() {
  const answer = useAnswer<{ threads: ThreadRow[] }>(() => (summary.value.threads > 1 || summary.value.programs > 1 || thread.value ? { name: 'threads' } : null));
  const threads = answer.value?.threads ?? [];
  if (threads.length < 2) return null;
  return (
    <select aria-label="Thread" value={thread.value} onChange={(e) => go({ thread: e.currentTarget.value })} class={thread.value ? 'set' : ''}>
      <option value="">All {threads.length} threads</option>
      {threads.slice(0, 500).map((t) => (
        <option key={t.id} value={String(t.id)}>
          {printable(t.name) || 'thread'} {t.tid || ''} · {percent((t.cycles + t.os_time) / (summary.value.total || 1))}
        </option>
      ))}
    </select>
  );
}

// What everybody should know before they read a figure.
function Notes() {
  const s = summary.value;
  const changed = useSignal(false);
  const refused = useSignal('');
  const threads = useAnswer<{ threads: ThreadRow[] }>(() => (thread.value ? { name: 'threads' } : null));
  const only = threads.value?.threads.find((t) => String(t.id) === thread.value);
  useEffect(() => {
    if (!source.live) return;
    const timer = setInterval(async () => {
      if (document.hidden) return;
      try {
        changed.value = (await source.ask<{ changed: boolean }>('status')).changed;
      } catch {
        /* the next question will tell */
      }
    }, 2000);
    return () => clearInterval(timer);
  }, []);
  const reload = async () => {
    try {
      await source.ask('reload');
    } catch (e) {
      return void (refused.value = e instanceof Error ? e.message : String(e));
    }
    location.hash = new URLSearchParams({ view: view.value }).toString();
    location.reload();
  };
  return (
    <>
      {changed.value && (
        <div class="banner" role="alert">
          {refused.value ? `The new profile cannot be shown: ${refused.value}` : 'The profile was written anew. This page shows the old one.'} <button onClick={reload}>{refused.value ? 'Try again' : 'Show the new one'}</button>
        </div>
      )}
      {s.pruned.length > 0 && (
        <div class="banner quiet" role="note">
          {s.pruned[0]} {s.pruned.length > 1 && <a href="#" onClick={(e) => (e.preventDefault(), show('run'))}>{plural(s.pruned.length - 1, 'more note')}</a>}
        </div>
      )}
      {thread.value && (
        <div class="banner quiet" role="note">
          Only thread {only ? `${printable(only.name)} ${only.tid || '(others)'}` : '…'}: shares are of the whole program{s.compared && (comparing.value ? '; compared with the thread of its name in the run before' : '; nothing is compared, as the run before has no thread, or several, of its name')}. <button onClick={() => go({ thread: null })}>All threads</button>
        </div>
      )}
    </>
  );
}

function Status() {
  const answer = useAnswer<DetailAnswer>(() =>
    selected.value === null ? null : { name: 'function', params: { id: selected.value, thread: thread.value } });
  const s = summary.value;
  const name = answer.value?.function.name;
  return (
    <footer>
      <span class="full-name name" aria-live="polite">{selected.value === null ? 'Nothing is selected' : printable(name ?? answer.error ?? '')}</span>
      <span class="space" />
      <button class={s.notes.length ? 'quality warn' : 'quality'} onClick={() => show('run')} title={s.notes.slice(0, 20).join('\n')}>
        {s.sampling ? `data: ${quality(s.sampling)}` : s.notes.length === 0 ? 'data: complete' : `data: ${cut(s.notes[0]!, 60)}${s.notes.length > 1 ? `; ${s.notes.length - 1} more` : ''}`}
      </button>
    </footer>
  );
}
