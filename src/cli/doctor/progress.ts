import type { Progress } from '../../doctor/run.ts';

/** One line on a terminal that shows how many checks have ended. */
export interface ProgressLine {
  update(progress: Progress): void;
  /** Removes the line. */
  clear(): void;
}

const CLEAR_LINE = '\r\u001b[K';

/** Writes nothing unless the stream is a terminal. */
export function createProgressLine(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>): ProgressLine {
  let isShown = false;
  return {
    update: ({ done, total, title }) => {
      if (!stream.isTTY) return;
      stream.write(`${CLEAR_LINE}Checked ${done} of ${total}: ${title}`);
      isShown = true;
    },
    clear: () => {
      if (isShown) stream.write(CLEAR_LINE);
      isShown = false;
    },
  };
}
