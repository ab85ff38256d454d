import { Histogram, type Registry } from 'prom-client';

/**
 * Measures how late timers of the event loop are; returns a function that ends the measurement. The default metrics of
 * prom-client measure the same, but are reset by each scrape, so two readers of the metrics would disturb each other.
 */
export function measureEventLoopDelay(
  registry: Registry,
  now: () => number = () => performance.now(),
): () => void {
  const delays = new Histogram({
    name: 'postrider_event_loop_delay_seconds',
    help: 'Delay of a timer of the event loop, measured ten times per second.',
    buckets: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5],
    registers: [registry],
  });
  let due = now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const at = now();
    delays.observe(Math.max(0, at - due) / 1000);
    due = at + INTERVAL_MS;
  }, INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

const INTERVAL_MS = 100;
