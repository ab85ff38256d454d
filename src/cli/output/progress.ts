import { SingleBar } from 'cli-progress';
import { formatBytes } from '../../store/migrate/upgrade.ts';

/** A bar for each step of long work, on stderr. */
export interface StepBar {
  /** `item`: shown next to the bar. Nothing is drawn while `total` is 0. */
  update(step: string, done: number, total: number, item: string): void;
  stop(): void;
}

/** A bar that shows how much of the work is done. */
export interface AmountBar {
  update(step: string, done: number, total: number): void;
  stop(): void;
}

/** Draws only if `shown`. The cursor stays visible, because an interrupt ends the process. */
export function createStepBar(shown: boolean): StepBar {
  const bar = new SingleBar({
    format: '{step} {bar} {percentage} %  {item}  {duration_formatted}, {eta_formatted} left',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: false,
    stream: process.stderr,
  });
  let current: string | null = null;
  return {
    update: (step, done, total, item) => {
      if (!shown || total === 0) return;
      const payload = { step: step.padEnd(7), item };
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

/** For work on bytes. */
export function createByteBar(shown: boolean): AmountBar {
  return createAmountBar(shown, formatBytes);
}

/** For work on a number of records. */
export function createCountBar(shown: boolean): AmountBar {
  return createAmountBar(shown, (count) => count.toLocaleString('en'));
}

function createAmountBar(shown: boolean, format: (amount: number) => string): AmountBar {
  const bar = createStepBar(shown);
  return {
    update: (step, done, total) => bar.update(step, done, total, `${format(done)} of ${format(total)}`),
    stop: bar.stop,
  };
}
