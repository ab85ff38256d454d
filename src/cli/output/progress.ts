import { SingleBar } from 'cli-progress';
import { formatBytes } from '../../store/migrate/upgrade.ts';

/** A bar on stderr for each step of long work. Draws only if `shown`. The cursor stays visible, because an interrupt ends the process. */
export function createStepBar(shown: boolean) {
  const bar = new SingleBar({
    format: '{step} {bar} {percentage} %  {item}  {duration_formatted}, {eta_formatted} left',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: false,
    stream: process.stderr,
  });
  let current: string | null = null;
  return {
    /** `item`: shown next to the bar. Nothing is drawn while `total` is 0. */
    update: (step: string, done: number, total: number, item: string): void => {
      if (!shown || total === 0) return;
      const payload = { step: step.padEnd(7), item };
      if (step === current) return bar.update(done, payload);
      if (current !== null) bar.stop();
      current = step;
      bar.start(total, done, payload);
    },
    stop: (): void => {
      if (current !== null) bar.stop();
      current = null;
    },
  };
}

/** For work on bytes. */
export function createByteBar(shown: boolean) {
  return createAmountBar(shown, formatBytes);
}

/** For work on a number of records. */
export function createCountBar(shown: boolean) {
  return createAmountBar(shown, (count) => count.toLocaleString('en'));
}

/** A bar that shows how much of the work is done. */
function createAmountBar(shown: boolean, format: (amount: number) => string) {
  const bar = createStepBar(shown);
  return {
    update: (step: string, done: number, total: number): void =>
      bar.update(step, done, total, `${format(done)} of ${format(total)}`),
    stop: bar.stop,
  };
}
