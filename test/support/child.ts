import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { findProgram } from './required-programs.ts';

/** A program that a test starts; the kernel kills it when the test process ends, however that ends. */
export interface Child {
  /** Everything written to stdout and stderr so far. */
  readonly output: string;
  readonly stdin: ChildProcessWithoutNullStreams['stdin'];
  readonly running: boolean;
  readonly exited: Promise<Exit>;
  /** Calls `call` with every further line of stdout. */
  onLine(call: (line: string) => void): void;
  readonly pid: number;
  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and waits until the program has exited. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export function startChild(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Child {
  // By the kernel: Vitest ends its workers by a signal that runs no handler of this process.
  const bound = ['--pdeathsig', 'KILL', '--', command, ...args];
  const child = spawn(findProgram('setpriv') ?? 'setpriv', bound, { ...options, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  }
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  // Callers that await it get the error; without one, a failed start must not be an unhandled rejection.
  exited.catch(() => {});
  return {
    get output() {
      return output;
    },
    stdin: child.stdin,
    get running() {
      return child.exitCode === null && child.signalCode === null;
    },
    exited,
    get pid() {
      if (child.pid === undefined) throw new Error('the program did not start');
      return child.pid;
    },
    signal: (signal) => void child.kill(signal),
    onLine: (call) => {
      let rest = '';
      child.stdout.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) call(line);
      });
    },
    kill: (signal) => {
      child.kill(signal);
      return exited;
    },
  };
}

/** Kills a process, which may have ended. */
export function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
