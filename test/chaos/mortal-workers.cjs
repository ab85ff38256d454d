// Preloaded into the daemon with `node --require`: while the file named by CHAOS_MORTAL_WORKERS exists, every
// delivery worker and mail parser thread dies after a random time. Each death adds a byte to the file.
const { appendFileSync, existsSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

const MORTAL = /delivery\/worker|smtp\/parser\/thread/;
const MIN_LIFETIME_MS = 100;
const MAX_LIFETIME_MS = 2500;

function scheduleDeath(file) {
  setTimeout(
    () => {
      // The thread's program is known here only after the preload.
      if (!MORTAL.test(process.argv[1] ?? '')) return;
      if (!existsSync(file)) {
        scheduleDeath(file);
        return;
      }
      appendFileSync(file, '.');
      if (Math.random() < 0.5) process.exit(1);
      throw new Error('this worker dies in a chaos scenario');
    },
    MIN_LIFETIME_MS + Math.random() * (MAX_LIFETIME_MS - MIN_LIFETIME_MS),
  ).unref();
}

if (!isMainThread && process.env.CHAOS_MORTAL_WORKERS) scheduleDeath(process.env.CHAOS_MORTAL_WORKERS);
