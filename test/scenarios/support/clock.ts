import { setEnvironmentData } from 'node:worker_threads';
import type { Clock } from '../../../src/core/clock.ts';
import { builtThread } from '../../support/built-thread.ts';
import { eventually } from '../../support/eventually.ts';

/**
 * The time of a daemon and of its delivery workers: that of the system plus an offset that only `advance` increases. Waits
 * of minutes and days pass immediately, and every timeout has its real length.
 */
export interface ScenarioClock {
  clock: Clock;
  monotonic: Clock;
  /** The program of the delivery worker with these clocks. It trusts `authority` in addition to the built-in authorities. */
  workerScript: URL;
  /** Increases the time. Resolves when the worker has checked its timeouts at the new time. */
  advance(ms: number): Promise<void>;
}

const DATA = 'postrider-scenario-clock';
/** How often the worker checks its timeouts, ms: each step of the clock waits for one check. */
const TICK_MS = 20;

/**
 * Creates the clock of a family. `authority`: a certificate in PEM. Must be called before the daemon starts its workers, which receive the clock as
 * environment data.
 */
export function createScenarioClock(authority: string): ScenarioClock {
  // 0: the offset in ms; 1: the offset that the worker has read last.
  const shared = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  setEnvironmentData(DATA, { shared, authority });
  const offset = () => Number(Atomics.load(shared, 0));
  return {
    clock: { now: () => Date.now() + offset() },
    monotonic: { now: () => performance.now() + offset() },
    workerScript: workerScript(),
    advance: async (ms) => {
      const target = Atomics.add(shared, 0, BigInt(Math.ceil(ms))) + BigInt(Math.ceil(ms));
      await eventually('the worker to see the time', () => Atomics.load(shared, 1) >= target, {
        everyMs: TICK_MS / 4,
      });
    },
  };
}

/** Replaces the clocks, the interval of the checks and the trusted authorities, then loads the worker's program. */
function workerScript(): URL {
  const main = builtThread('delivery/worker/main.ts').href;
  const code = `
    import { syncBuiltinESMExports } from 'node:module';
    import tls from 'node:tls';
    import { getEnvironmentData } from 'node:worker_threads';
    const { shared, authority } = getEnvironmentData(${JSON.stringify(DATA)});
    const offset = () => Number(Atomics.load(shared, 0));
    const date = Date.now;
    Date.now = () => date() + offset();
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
