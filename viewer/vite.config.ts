import { defineConfig } from 'vitest/config';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One file without any request: scripts, styles, the worker and Graphviz are inside.
export default defineConfig({
  plugins: [viteSingleFile()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: { target: 'es2022', chunkSizeWarningLimit: 2000, reportCompressedSize: false },
  worker: { format: 'iife' },
  test: { include: ['test/**/*.test.ts'] },
});
