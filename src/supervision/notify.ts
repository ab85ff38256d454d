import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';

/** Variables of sd_notify(3), such as `READY`, with their values. */
export type Notification = Readonly<Record<string, string>>;

export interface NotifierOptions {
  /** `$NOTIFY_SOCKET`: a path, or `@` and a name in the abstract namespace. */
  socket: string;
  log: Log;
  /** Where `systemd-notify` is searched. Default: `$PATH`. */
  path?: string | undefined;
  /** Time limit of a message, ms. */
  timeoutMs?: number;
}

/**
 * Splits a line at tabs only, and expands nothing: a line is the arguments of one call. Prints its errors and then its
 * exit status, both to stdout so that their order is kept.
 */
const SCRIPT = `exec 2>&1
set -f
IFS='	'
while read -r line; do
  systemd-notify $line
  echo "status $?"
done`;
/** systemd-notify itself waits 5 s for the service manager, which does not read messages while it reloads units. */
const TIMEOUT_MS = 20 * SECOND;
/** Messages that wait for the service manager; further ones fail. */
const MAX_WAITING = 16;
const MAX_ERROR_CHARS = 500;

interface Waiting {
  line: string;
  resolve: (received: boolean) => void;
}

/**
 * Sends messages to the service manager over `$NOTIFY_SOCKET` (sd_notify(3)).
 *
 * The socket is an AF_UNIX datagram socket, which Node cannot open, so `systemd-notify` sends the messages. Starting a
 * program from a Node process copies its page tables while the event loop waits: 7 ms at 45 MB of memory, 50 to 340 ms
 * at 1 GB. The first message, while the process is small, therefore starts one shell, which starts `systemd-notify` for
 * every line that it reads. The shell ends when its input does, that is with the process.
 *
 * Starts the shell with the first `send`; another one follows if it ends or exceeds `timeoutMs` (default: 20 s). While
 * 16 messages wait, and after `close`, a message is not sent and resolves with false.
 */
export function createNotifier({ socket, log, path, timeoutMs = TIMEOUT_MS }: NotifierOptions) {
  const waiting: Waiting[] = [];
  let shell: ChildProcess | null = null;
  let timeout: NodeJS.Timeout | null = null;
  let closed = false;
  let lastError: string | null = null;

  function startShell(): ChildProcess {
    const env = { PATH: path ?? process.env['PATH'], NOTIFY_SOCKET: socket };
    const child: ChildProcess = spawn('/bin/sh', ['-c', SCRIPT], { env, stdio: 'pipe' });
    let errors = '';
    const onEnd = (reason: string) => {
      if (shell !== child) return;
      shell = null;
      finish(reason);
    };
    child.on('error', (error) => onEnd(`/bin/sh cannot be started: ${error.message}`));
    child.on('close', (code, signal) => onEnd(`the shell ended (${signal ?? code})${errors}`));
    // The shell has ended; its `close` event reports that.
    child.stdin?.on('error', () => {});
    // Without descriptors for its pipes the process has none, and `error` follows.
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const status = /^status (\d+)$/.exec(line)?.[1];
        if (status === undefined) {
          errors = `${errors} ${line}`.slice(-MAX_ERROR_CHARS);
        } else {
          if (shell === child)
            finish(status === '0' ? null : `systemd-notify exited with ${status}:${errors}`);
          errors = '';
        }
      });
    return child;
  }

  function sendFirst(): void {
    const [first] = waiting;
    if (first === undefined) return;
    shell ??= startShell();
    shell.stdin?.write(first.line);
    timeout = setTimeout(() => {
      shell?.kill('SIGKILL');
      shell = null;
      finish(`the service manager did not respond within ${timeoutMs / SECOND} s`);
    }, timeoutMs);
  }

  /** Settles the first message. A failure is logged once, until a message succeeds or fails for another reason. */
  function finish(error: string | null): void {
    if (timeout !== null) clearTimeout(timeout);
    timeout = null;
    const first = waiting.shift();
    if (first === undefined) return;
    if (error !== null && error !== lastError && !closed)
      log.error(
        { reason: error },
        'service manager not notified; systemd-notify (package systemd) is required',
      );
    lastError = error;
    first.resolve(error === null);
    if (!closed) sendFirst();
  }

  return {
    /**
     * Sends variables as one message, after all earlier ones. Resolves with whether the service manager received it; never
     * rejects. Failures are logged.
     */
    send: (message: Notification): Promise<boolean> =>
      new Promise((resolve) => {
        if (closed || waiting.length >= MAX_WAITING) return resolve(false);
        waiting.push({ line: lineOf(message), resolve });
        if (waiting.length === 1) sendFirst();
      }),
    /** Ends the shell. Messages that are still waiting are not sent. */
    close: (): void => {
      closed = true;
      shell?.stdin?.end();
      shell?.kill();
      while (waiting.length > 0) finish('closed');
    },
  };
}

export type SystemdNotifier = ReturnType<typeof createNotifier>;

/** Control characters would end the line or the argument, or add a variable. */
function lineOf(message: Notification): string {
  const fields = Object.entries(message).map(
    ([name, value]) => `${name}=${value.replaceAll(/\p{Cc}+/gu, ' ')}`,
  );
  return `${fields.join('\t')}\n`;
}
