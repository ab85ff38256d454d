import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';

/** Bytes of records that wait; further records are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
const RETRY_MS = 100;

/**
 * Where the log is written: standard output, whose reader may stop reading (a paused terminal, a stopped journald, a full
 * pipe), or whose disk may be full. Records are written by the thread that logs them, so that they are complete when the process
 * ends; what cannot be written waits, up to a limit, and further records are dropped and counted. Nothing blocks.
 *
 * `fd` must not block: a file, or a pipe, socket or terminal in non-blocking mode.
 */
export function createLogOutput(fd = standardOutput()) {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropped = 0;
  let unreported = 0;
  let report: (dropped: number) => void = () => {};
  let timer: NodeJS.Timeout | null = null;

  function enqueue(bytes: Buffer): void {
    waiting.push(bytes);
    waitingBytes += bytes.byteLength;
    if (timer !== null) return;
    timer = setInterval(retry, RETRY_MS).unref();
    if (waitingOutputs.size === 0) process.on('exit', retryAll);
    waitingOutputs.add(retry);
  }

  function stopRetrying(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
    waitingOutputs.delete(retry);
    if (waitingOutputs.size === 0) process.off('exit', retryAll);
  }

  function retry(): void {
    const rest = writeAll(fd, Buffer.concat(waiting, waitingBytes));
    waiting = rest.byteLength === 0 ? [] : [rest];
    waitingBytes = rest.byteLength;
    if (unreported > 0 && waitingBytes <= MAX_WAITING_BYTES / 2) {
      const count = unreported;
      unreported = 0;
      report(count);
    }
    if (waiting.length === 0) stopRetrying();
  }

  return {
    write: (record: string): void => {
      const bytes = Buffer.from(record);
      if (waiting.length === 0) {
        const rest = writeAll(fd, bytes);
        if (rest.byteLength > 0) enqueue(rest);
      } else if (waitingBytes + bytes.byteLength <= MAX_WAITING_BYTES) {
        enqueue(bytes);
      } else {
        dropped++;
        unreported++;
      }
    },
    /** Records dropped since the start. */
    dropped: (): number => dropped,
    /** Called with the number of records dropped since the last call, when there is space for records again. */
    onDropped: (call: (dropped: number) => void): void => {
      report = call;
    },
    /** Resolves when everything is written, or after `timeoutMs`. */
    flush: async (timeoutMs: number): Promise<void> => {
      const until = performance.now() + timeoutMs;
      while (waiting.length > 0 && performance.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS / 2));
        retry();
      }
    },
    /** Gives up what waits. Needed before the descriptor is closed: another file may get its number. */
    close: (): void => {
      stopRetrying();
      waiting = [];
      waitingBytes = 0;
    },
  };
}

export type LogOutput = ReturnType<typeof createLogOutput>;

/** Outputs with records that wait: these are written as far as possible when the process ends. */
const waitingOutputs = new Set<() => void>();

function retryAll(): void {
  for (const retry of waitingOutputs) retry();
}

/** Writes as much as possible; returns what is left. */
function writeAll(fd: number, bytes: Buffer): Buffer {
  let rest = bytes;
  try {
    while (rest.byteLength > 0) rest = rest.subarray(writeSync(fd, rest));
  } catch {
    // EAGAIN, a full disk, a reader that has gone: tried again with the next records. There is nowhere else to report it.
  }
  return rest;
}

/**
 * Standard output in non-blocking mode. Another descriptor of a pipe or terminal, whose mode is not shared with other
 * programs, where the system can open one; files do not block.
 */
function standardOutput(): number {
  // Opens it as a stream, which makes a pipe or socket non-blocking. A socket cannot be opened again.
  const { fd } = process.stdout;
  if (!isatty(fd) && !fstatSync(fd).isFIFO()) return fd;
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // Of another user, or no /proc.
    return fd;
  }
}
