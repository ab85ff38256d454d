import { type ChildProcess, fork } from 'node:child_process';

/**
 * Companions of a benchmark: its own programs in processes of their own, so that what they cost can be told
 * apart from what is measured. One question, one answer, over Node's IPC channel; when the channel breaks
 * (the benchmark is gone, however it went) the companion ends.
 */
export interface Companion<Question, Answer> {
  readonly pid: number;
  /** One at a time. Throws when the companion ends before it answered. */
  ask(question: Question): Promise<Answer>;
  /** Says something that wants no answer. */
  tell(question: Question): void;
  stop(): Promise<void>;
}

/** `program` answers by `answerParent`, with the types given here. */
export function startCompanion<Question extends object, Answer>(
  program: URL,
  args: readonly string[] = [],
): Companion<Question, Answer> {
  const child = fork(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`${program.pathname} ended: ${signal ?? code}`)));
  });
  // Whoever waits for an answer is told.
  ended.catch(() => {});
  if (child.pid === undefined) throw new Error(`${program.pathname} cannot be started`);
  return {
    pid: child.pid,
    ask: (question) => {
      const answer = new Promise<Answer>((resolve) => {
        // What `answerParent` of the program sends.
        child.once('message', (message) => resolve(message as Answer));
      });
      child.send(question);
      return Promise.race([answer, ended]);
    },
    // One that has ended hears nothing; whoever asks it something is told so.
    tell: (question) => void child.send(question, () => {}),
    stop: () => stopped(child),
  };
}

/**
 * The companion's end of it: answers every question, but for those to which `answer` returns null. What comes
 * is what the benchmark's `ask` and `tell` were given.
 */
export function answerParent(answer: (question: unknown) => object | null | Promise<object | null>): void {
  const reply = async (question: unknown) => {
    const said = await answer(question);
    if (said !== null) process.send?.(said);
  };
  process.on('message', (question) => void reply(question));
  process.on('disconnect', () => process.exit());
  // A key press for the benchmark reaches its whole process group; the benchmark ends its companions itself.
  process.on('SIGINT', () => {});
}

/** Epoch ms with fractions, from a clock that all processes of this machine share. */
export function epochNow(): number {
  return performance.timeOrigin + performance.now();
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}
