// Preloaded into the daemon with `node --require`: while the file named by CHAOS_MORTAL_WORKERS exists, every
// delivery worker and mail parser thread dies after a random time. Each death adds a byte to the file.
const { appendFileSync, existsSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

const MORTAL = /delivery\/worker|smtp\/parser\/thread/;
const SHORTEST_MS = 100;
const LONGEST_MS = 2500;

function live(file) {
  setTimeout(
    () => {
      // The thread's program is known here only after the preload.
      if (!MORTAL.test(process.argv[1] ?? '')) return;
      if (!existsSync(file)) {
        live(file);
        return;
      }
      appendFileSync(file, '.');
      if (Math.random() < 0.5) process.exit(1);
      throw new Error('this worker dies in a chaos scenario');
    },
    SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS),
  ).unref();
}

if (!isMainThread && process.env.CHAOS_MORTAL_WORKERS) live(process.env.CHAOS_MORTAL_WORKERS);
