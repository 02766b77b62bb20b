import { useLayoutEffect, useRef } from 'preact/hooks';
import { commands } from './keys';

const inTables = [
  ['↑ ↓ j k', 'the row before, after'],
  ['PgUp PgDn Home End', 'a page; the first, the last'],
  ['Enter', 'open: the source of a function, the file of a row'],
];

export function Help({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = box.current!;
    dialog.showModal();
    dialog.focus(); // not its only button, which is at its end
    return () => {
      dialog.close();
      before?.focus();
    };
  }, []);
  const shown = (keys: string) => keys.split(' ').map((k) => <kbd key={k}>{names[k] ?? k}</kbd>);
  return (
    <dialog class="help" aria-label="Keys" tabIndex={-1} ref={box} onClose={onClose} onClick={(e) => e.target === box.current && onClose()}>
      <div>
        <h2>Keys</h2>
        <dl>
          {commands.value.map((c) => (
            <div key={c.keys + c.about}>
              <dt>{shown(c.keys)}</dt>
              <dd>{c.about}</dd>
            </div>
          ))}
        </dl>
        <h3>In tables</h3>
        <dl>
          {inTables.map(([keys, about]) => (
            <div key={keys}>
              <dt>{shown(keys!)}</dt>
              <dd>{about}</dd>
            </div>
          ))}
        </dl>
        <button onClick={onClose}>Close</button>
      </div>
    </dialog>
  );
}

const names: Record<string, string> = {
  ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', 'Alt+ArrowLeft': 'Alt ←', 'Alt+ArrowRight': 'Alt →', Escape: 'Esc',
};
