import { render } from 'preact';
import { App } from './app/App';
import { listenToKeys } from './app/keys';
import { views } from './app/views';
import { setSource, source } from './data/ask';
import { openSource, Told } from './data/source';
import type { FunctionPage, Summary } from './data/types';
import { followAddress, get, remembered, summary, tune } from './state';
import './style.css';

const place = document.getElementById('app')!;

try {
  setSource(await openSource());
  summary.value = await source.ask<Summary>('summary');
  followAddress();
  listenToKeys();
  // The view is in every address: a link opens for others what it shows here.
  const last = views.find((v) => v.id === remembered('view') && v.shown(summary.value)) ?? views[0]!;
  if (!get('view')) tune({ view: last.id });
  if (!get('fn')) {
    // The function with the most self time: nobody starts with an empty page.
    const top = await source.ask<FunctionPage>('functions', { sort: 'self', offset: 0, limit: 1 });
    if (top.rows[0]) tune({ fn: String(top.rows[0].id) });
  }
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
