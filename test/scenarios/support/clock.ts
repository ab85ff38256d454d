import { setEnvironmentData } from 'node:worker_threads';
import type { Clock } from '../../../src/core/clock.ts';
import { builtThread } from '../../support/built-thread.ts';
import { eventually } from '../../support/eventually.ts';

/**
 * The time of a daemon and of its delivery workers: that of the system plus a lead that only `advance` changes. Waits of
 * minutes and days pass immediately, and every timeout keeps its real length.
 */
export interface ScenarioClock {
  clock: Clock;
  monotonic: Clock;
  /** The delivery worker's program with these clocks. It trusts `authority` in addition to the built-in certificates. */
  workerScript: URL;
  /** Moves the time forward. Resolves when the worker has checked its timeouts at the new time. */
  advance(ms: number): Promise<void>;
}

const DATA = 'postrider-scenario-clock';
/** How often the worker checks its timeouts, ms: each step of the clock waits for one check. */
const TICK_MS = 20;

/** `authority`: a certificate in PEM. Call it before the daemon is started, which passes the data on to its workers. */
export function createScenarioClock(authority: string): ScenarioClock {
  // 0: the lead in ms; 1: the lead that the worker saw last.
  const shared = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  setEnvironmentData(DATA, { shared, authority });
  const lead = () => Number(Atomics.load(shared, 0));
  return {
    clock: { now: () => Date.now() + lead() },
    monotonic: { now: () => performance.now() + lead() },
    workerScript: workerScript(),
    advance: async (ms) => {
      const target = Atomics.add(shared, 0, BigInt(Math.ceil(ms))) + BigInt(Math.ceil(ms));
      await eventually('the worker to see the time', () => Atomics.load(shared, 1) >= target, {
        everyMs: TICK_MS / 4,
      });
    },
  };
}

/** The clocks, its interval and the trusted authority are set before the worker's program is loaded. */
function workerScript(): URL {
  const main = builtThread('delivery/worker/main.ts').href;
  const code = `
    import { syncBuiltinESMExports } from 'node:module';
    import tls from 'node:tls';
    import { getEnvironmentData } from 'node:worker_threads';
    const { shared, authority } = getEnvironmentData(${JSON.stringify(DATA)});
    const lead = () => Number(Atomics.load(shared, 0));
    const date = Date.now;
    Date.now = () => date() + lead();
    const monotonic = performance.now.bind(performance);
    performance.now = () => {
      const ms = Atomics.load(shared, 0);
      Atomics.store(shared, 1, ms);
      return monotonic() + Number(ms);
    };
    const { createSecureContext } = tls;
    tls.createSecureContext = (options) =>
      createSecureContext({ ca: [...tls.rootCertificates, authority], ...options });
    syncBuiltinESMExports();
    const { setInterval } = globalThis;
    globalThis.setInterval = (run, ms, ...more) => setInterval(run, Math.min(ms, ${TICK_MS}), ...more);
    await import(${JSON.stringify(main)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
