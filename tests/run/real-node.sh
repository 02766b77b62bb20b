# Node, a JIT with many threads: a script with promises, workers, regular expressions and a child.
. "$(dirname "$0")/lib.sh"
need node
cat >"$T/all.js" <<'J'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads'), { execSync } = require('child_process'), crypto = require('crypto'), zlib = require('zlib');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e5; i++) s = (s * 31 + i * workerData) % 1000003; parentPort.postMessage(s); return; }
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
(async () => {
  console.log(fib(22), [3, 1, 2].sort().join(), 'a1b22c333'.replace(/\d+/g, d => d * 2), 2n ** 100n);
  console.log(crypto.createHash('sha256').update('x'.repeat(100000)).digest('hex'), zlib.gunzipSync(zlib.gzipSync('text'.repeat(5000))).length);
  const m = new Map(); for (let i = 0; i < 50000; i++) m.set('k' + i % 997, { i }); console.log(m.size, JSON.stringify(m.get('k5')));
  console.log(await Promise.all([1, 2].map(workerData => new Promise(r => new Worker(__filename, { workerData }).on('message', r)))));
  console.log(execSync('echo child').toString().trim()); try { null.x; } catch (e) { console.log(e.message); }
  const f = new Float64Array(1000).map((_, i) => Math.sin(i)); console.log(f.reduce((a, b) => a + b).toFixed(12)); process.exitCode = 6;
})();
J
same node --version
STATUS=6 same node "$T/all.js"
