// The keyboard: components say which keys they answer to, and `?` lists them all.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface Command {
  keys: string; // "g", "?", "Alt+ArrowLeft"; several with a blank between
  about: string;
  run: (key: string) => void;
}

export const commands = signal<readonly Command[]>([]);
export const dialog = signal(false); // is open: only the keys that close it do something

// While the component is there. A later one comes before an earlier one with the same key.
export function useCommands(list: Command[]) {
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    const mine = list.map((c, i): Command => ({ ...c, run: (key) => latest.current[i]?.run(key) }));
    commands.value = [...commands.value, ...mine];
    return () => {
      commands.value = commands.value.filter((c) => !mine.includes(c));
    };
  }, []);
}

// What a focused control does with its keys comes before any command.
const typing = 'input:not([type=checkbox]):not([type=range]), textarea, select';
const keysOf: [control: string, keys: RegExp][] = [
  [typing, /./],
  ['button, a[href], summary, [role=button]', /^(Enter|Space)$/],
  ['input[type=checkbox]', /^Space$/],
  ['input[type=range]', /^(Arrow|Home|End|Page)/],
];

export function keyOf(e: KeyboardEvent): string {
  return (e.altKey ? 'Alt+' : '') + (e.key === ' ' ? 'Space' : e.key);
}

export function isOfControl(e: KeyboardEvent): boolean {
  const { target } = e;
  return target instanceof HTMLElement && keysOf.some(([control, keys]) => target.matches(control) && keys.test(keyOf(e)));
}

// What keys of the view at hand go to: its first table, or its picture.
export function focusView() {
  const pane = document.querySelector<HTMLElement>('.view .body, .view canvas, .view .river');
  if (pane) pane.focus({ preventScroll: true });
  else (document.activeElement as HTMLElement | null)?.blur();
}

export function listenToKeys() {
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.defaultPrevented) return;
    const key = keyOf(e);
    if (isOfControl(e)) {
      if (key === 'Escape') focusView();
      return;
    }
    const command = commands.value.findLast((c) => c.keys.split(' ').includes(key));
    if (!command || (dialog.value && key !== 'Escape' && key !== '?')) return;
    e.preventDefault();
    command.run(key);
  });
}
