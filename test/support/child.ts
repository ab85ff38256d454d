import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

/** A program that a test starts, with everything it said; it never outlives the test process. */
export interface Child {
  /** Both streams together, as they came. */
  readonly output: string;
  readonly stdin: ChildProcessWithoutNullStreams['stdin'];
  readonly running: boolean;
  readonly exited: Promise<Exit>;
  /** Calls back with every line of stdout from now on. */
  onLine(call: (line: string) => void): void;
  readonly pid: number;
  /** Sends a signal that is not meant to end it. */
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and waits for the end. */
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
  const child = spawn(command, args, { ...options, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  }
  const killWithUs = () => child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      process.off('exit', killWithUs);
      resolve({ code, signal });
    });
  });
  // Whoever waits for it is told; a program that cannot be started must not end the test process as well.
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
