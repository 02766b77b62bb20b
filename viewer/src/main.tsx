import { render } from 'preact';
import { App } from './app/App';
import { listenToKeys } from './app/keys';
import { views } from './app/views';
import { setSource, source } from './data/ask';
import { openSource, Told } from './data/source';
import type { Summary } from './data/types';
import { followAddress, get, remembered, summary, tune } from './state';
import './style.css';

const place = document.getElementById('app')!;

try {
  setSource(await openSource());
  summary.value = await source.ask<Summary>('summary');
  followAddress();
  listenToKeys();
  const last = remembered('view');
  if (!get('view') && views.some((v) => v.id === last && v.shown(summary.value))) tune({ view: last });
  render(<App />, place);
} catch (e) {
  render(
    <div class="failed whole" role="alert">
      {e instanceof Told ? e.message : `This page could not start: ${e}`}
    </div>,
    place,
  );
  console.error(e);
}
