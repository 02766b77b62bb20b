// Graphviz, compiled to WebAssembly, where it holds up nobody.
import { Graphviz } from '@hpcc-js/wasm-graphviz';

const graphviz = Graphviz.load();

self.onmessage = async (e: MessageEvent<{ id: number; dot: string }>) => {
  const { id, dot } = e.data;
  try {
    self.postMessage({ id, plain: (await graphviz).layout(dot, 'plain', 'dot') });
  } catch (error) {
    self.postMessage({ id, error: String(error) });
  }
};
