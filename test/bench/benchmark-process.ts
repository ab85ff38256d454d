import { type ChildProcess, fork } from 'node:child_process';

/**
 * A program of the benchmark in a separate process, so that its CPU time can be subtracted from the measurement. It
 * answers one request at a time over Node's IPC channel and exits when the channel closes.
 */
export interface BenchmarkProcess<Request, Response> {
  readonly pid: number;
  /** One at a time. Throws when the process exits before it responds. */
  request(message: Request): Promise<Response>;
  /** Sends a message without a response. */
  notify(message: Request): void;
  stop(): Promise<void>;
}

/** `program` calls `serveParent` with a handler of the given types. */
export function startBenchmarkProcess<Request extends object, Response>(
  program: URL,
  args: readonly string[] = [],
): BenchmarkProcess<Request, Response> {
  const child = fork(program, args, {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const exited = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`${program.pathname} exited: ${signal ?? code}`)));
  });
  // Requests get the error; without one, the exit must not be an unhandled rejection.
  exited.catch(() => {});
  if (child.pid === undefined) throw new Error(`${program.pathname} cannot be started`);
  return {
    pid: child.pid,
    request: (message) => {
      const response = new Promise<Response>((resolve) => {
        // Sound: `serveParent` of the program sends this type.
        child.once('message', (received) => resolve(received as Response));
      });
      child.send(message);
      return Promise.race([response, exited]);
    },
    // An error is ignored: the next request reports that the process has exited.
    notify: (message) => void child.send(message, () => {}),
    stop: () => stopChild(child),
  };
}

/** The child's side: `handle` returns the response to a request, or null for a notification. */
export function serveParent(handle: (message: unknown) => object | null | Promise<object | null>): void {
  const respond = async (message: unknown) => {
    const response = await handle(message);
    if (response !== null) process.send?.(response);
  };
  process.on('message', (message) => void respond(message));
  process.on('disconnect', () => process.exit());
  // Ctrl-C reaches the whole process group; the benchmark stops its processes itself.
  process.on('SIGINT', () => {});
}

/** Epoch ms with fractions, from a clock that all processes of the machine share. */
export function epochNow(): number {
  return performance.timeOrigin + performance.now();
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}
