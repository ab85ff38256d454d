import { openSync, readSync } from 'node:fs';
import { createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';

/*
 * Loaded into the measured daemon (NODE_OPTIONS=--import): measures the delays of its event loop and slow SQL
 * statements. Serves the Unix socket that BENCH_PROBE_SOCKET names: one word per connection, answered with JSON.
 *
 * The delay is that of a timer. `ownMs` excludes the time in which the thread waited for a CPU (proc(5), schedstat),
 * which other processes cause, including those of the benchmark.
 */
const BEAT_MS = 5;
const SLOW_STATEMENT_MS = 5;
const STATEMENTS_REPORTED = 10;
const socket = process.env.BENCH_PROBE_SOCKET;

let longest = { delayMs: 0, ownMs: 0 };
/** Slow executions by statement; times exclude waits for a CPU. */
let statements = new Map();

const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const buffer = Buffer.alloc(128);

/** Time that the main thread has waited for a CPU, in ms. */
function cpuWait() {
  return Number(buffer.latin1Slice(0, readSync(schedstat, buffer, 0, buffer.length, 0)).split(' ')[1]) / 1e6;
}

function measureDelays() {
  let due = performance.now() + BEAT_MS;
  let waited = cpuWait();
  const beat = () => {
    const delayMs = performance.now() - due;
    const now = cpuWait();
    // The wait may include time before the timer was due.
    const ownMs = Math.max(0, delayMs - (now - waited));
    if (delayMs > longest.delayMs) longest = { ...longest, delayMs };
    if (ownMs > longest.ownMs) longest = { ...longest, ownMs };
    waited = now;
    due = performance.now() + BEAT_MS;
    setTimeout(beat, BEAT_MS).unref();
  };
  setTimeout(beat, BEAT_MS).unref();
}

function measureStatements() {
  const { prepare } = Sqlite.prototype;
  Sqlite.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql);
    for (const name of ['run', 'get', 'all']) {
      const execute = statement[name].bind(statement);
      statement[name] = (...values) => {
        const waited = cpuWait();
        const began = performance.now();
        try {
          return execute(...values);
        } finally {
          const ms = performance.now() - began - (cpuWait() - waited);
          if (ms >= SLOW_STATEMENT_MS) {
            const known = statements.get(sql) ?? { longestMs: 0, times: 0, totalMs: 0 };
            known.longestMs = Math.max(known.longestMs, ms);
            known.times++;
            known.totalMs += ms;
            statements.set(sql, known);
          }
        }
      };
    }
    return statement;
  };
}

const MEASUREMENTS = {
  /** The longest delay since the last call. */
  delay: () => {
    const delay = longest;
    longest = { delayMs: 0, ownMs: 0 };
    return delay;
  },
  /** The slowest statements since the last call. */
  statements: () => {
    const slowest = Array.from(statements, ([sql, found]) => ({ sql: sql.replaceAll(/\s+/g, ' ').trim(), ...found }))
      .sort((one, two) => two.longestMs - one.longestMs)
      .slice(0, STATEMENTS_REPORTED);
    statements = new Map();
    return slowest;
  },
};

// Worker threads and other commands load it, too.
if (socket !== undefined && isMainThread && process.argv.includes('serve')) {
  measureDelays();
  if (process.env.BENCH_PROBE_STATEMENTS === '1') measureStatements();
  const server = createServer((connection) => {
    connection.on('error', () => connection.destroy());
    connection.once('data', (name) => {
      connection.end(JSON.stringify(MEASUREMENTS[name.toString('latin1').trim()]?.() ?? null));
    });
  });
  server.listen(socket);
  server.unref();
}
