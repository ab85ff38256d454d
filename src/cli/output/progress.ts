import { SingleBar } from 'cli-progress';
import { formatBytes } from '../../store/migrate/upgrade.ts';

/** A bar for work on bytes that has several steps. */
export interface ByteBar {
  update(step: string, done: number, total: number): void;
  stop(): void;
}

/** One bar per step, on stderr if `shown`. The cursor stays visible, because an interrupt ends the process. */
export function createByteBar(shown: boolean): ByteBar {
  return createBar(shown, (done, total) => `${formatBytes(done)} of ${formatBytes(total)}`);
}

function createBar(shown: boolean, amount: (done: number, total: number) => string): ByteBar {
  const bar = new SingleBar({
    format: '{step} {bar} {percentage} %  {bytes}  {duration_formatted}, {eta_formatted} left',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: false,
    stream: process.stderr,
  });
  let current: string | null = null;
  return {
    update: (step, done, total) => {
      if (!shown || total === 0) return;
      const payload = { step: step.padEnd(7), bytes: amount(done, total) };
      if (step === current) return bar.update(done, payload);
      if (current !== null) bar.stop();
      current = step;
      bar.start(total, done, payload);
    },
    stop: () => {
      if (current !== null) bar.stop();
      current = null;
    },
  };
}

/** The same for work on a number of records. */
export function createCountBar(shown: boolean): ByteBar {
  return createBar(shown, (done, total) => `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`);
}
