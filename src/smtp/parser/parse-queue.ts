import { SECOND } from '../../core/clock.ts';
import { createFairQueue } from '../../core/concurrency/fair-queue.ts';
import { createTally } from '../../core/concurrency/tally.ts';
import { createLru } from '../../core/lru.ts';

/*
 * A queue in which no sender waits behind another sender's backlog. Each job has a caller that it comes from and a
 * subject that it is about; both are charged for the time of their jobs, and the job whose caller and subject have used
 * the least time recently is next. A new caller is therefore served after the job in progress, whatever waits.
 */

/** Where a job comes from, which decides when it runs. */
export interface JobOrigin {
  /** first: proven to concern one of our messages. normal: mail to a mailbox. last: reports, the costliest to parse. */
  priority: JobPriority;
  /** Network or account that the job comes from. */
  caller: string;
  /** Token or mailbox that the job is addressed to. */
  subject: string;
}

export const JOB_PRIORITIES = ['first', 'normal', 'last'] as const;
export type JobPriority = (typeof JOB_PRIORITIES)[number];

/** Maximum number of waiting jobs of each priority. A message has one recipient, so few mails are about it. */
const MAX_WAITING: Record<JobPriority, { perCaller: number; perSubject: number }> = {
  first: { perCaller: 500, perSubject: 8 },
  normal: { perCaller: 500, perSubject: 500 },
  last: { perCaller: 30, perSubject: 100 },
};
const MAX_WAITING_TOTAL = 5000;
/** Every 16th job is of the lowest priority that waits, so that it is slowed down and not starved. */
const LOWEST_PRIORITY_INTERVAL = 16;
/** Half-life of the time charged to a caller or subject. */
const HALF_LIFE_MS = 30 * SECOND;
const NEGLIGIBLE_MS = 0.01;
const MAX_TRACKED = 20_000;

/** Time in the thread. */
interface Use {
  ms: number;
}

/** A job with what its caller and its subject have used. */
interface Entry<Job> {
  job: Job;
  uses: readonly [caller: Use, subject: Use];
}

/** `now` in ms, from any origin. */
export function createParseQueue<Job extends { origin: JobOrigin }>(now: () => number) {
  /** By priority; the jobs of one caller about one subject have one owner. */
  const queues = {
    first: createFairQueue<Entry<Job>>(),
    normal: createFairQueue<Entry<Job>>(),
    last: createFairQueue<Entry<Job>>(),
  };
  /** Waiting jobs by priority and caller, and by priority and subject. */
  const waiting = createTally();
  const used = createLru<Use>(MAX_TRACKED);
  let halvedAt = now();
  let taken = 0;

  const size = () => queues.first.size + queues.normal.size + queues.last.size;

  function useOf(key: string): Use {
    const use = used.get(key) ?? { ms: 0 };
    used.set(key, use);
    return use;
  }

  function decay(): void {
    const halves = Math.floor((now() - halvedAt) / HALF_LIFE_MS);
    if (halves < 1) return;
    halvedAt += halves * HALF_LIFE_MS;
    for (const use of used.values()) {
      use.ms /= 2 ** halves;
      if (use.ms < NEGLIGIBLE_MS) use.ms = 0;
    }
  }

  function countJob({ origin }: Job, change: 1 | -1): void {
    for (const key of keysOf(origin)) waiting.add(`${origin.priority} ${key}`, change);
  }

  function entryOf(job: Job): Entry<Job> {
    const [caller, subject] = keysOf(job.origin);
    return { job, uses: [useOf(caller), useOf(subject)] };
  }

  /** The priority that is next; undefined: no job waits. */
  function nextPriority(): JobPriority | undefined {
    const order = (taken + 1) % LOWEST_PRIORITY_INTERVAL === 0 ? JOB_PRIORITIES.toReversed() : JOB_PRIORITIES;
    return order.find((each) => queues[each].size > 0);
  }

  return {
    /** False, and nothing queued, when the share of the caller or the subject is used up. */
    push: (job: Job): boolean => {
      const { priority } = job.origin;
      const [caller, subject] = keysOf(job.origin);
      const { perCaller, perSubject } = MAX_WAITING[priority];
      const isFull =
        size() >= MAX_WAITING_TOTAL ||
        waiting.of(`${priority} ${caller}`) >= perCaller ||
        waiting.of(`${priority} ${subject}`) >= perSubject;
      if (isFull) return false;
      queues[priority].push(ownerOf(job.origin), entryOf(job));
      countJob(job, 1);
      return true;
    },
    /** Puts a job that `take` returned back before those of its caller about its subject. Always succeeds. */
    putBack: (job: Job): void => {
      queues[job.origin.priority].putBack(ownerOf(job.origin), entryOf(job));
      countJob(job, 1);
    },
    /** Takes the next job; undefined, and nothing taken, when there is none or `accepts` returns false for it. */
    take: (accepts: (job: Job) => boolean): Job | undefined => {
      decay();
      const priority = nextPriority();
      if (priority === undefined) return undefined;
      const queue = queues[priority];
      // Of those that have used the least, the one that was served the longest time ago.
      const owner = queue.next((_, [first]) =>
        first === undefined ? null : first.uses[0].ms + first.uses[1].ms,
      );
      const job = owner === undefined ? undefined : queue.first(owner)?.job;
      if (owner === undefined || job === undefined || !accepts(job)) return undefined;
      queue.takeOf(owner);
      taken++;
      countJob(job, -1);
      return job;
    },
    /** Charges `ms` of work to the caller and the subject. */
    charge: (origin: JobOrigin, ms: number): void => {
      decay();
      for (const key of keysOf(origin)) useOf(key).ms += ms;
    },
    /** Removes and returns everything. */
    clear: (): Job[] => {
      waiting.clear();
      return JOB_PRIORITIES.flatMap((priority) => queues[priority].clear().map(({ job }) => job));
    },
  };
}

function ownerOf({ caller, subject }: JobOrigin): string {
  return JSON.stringify([caller, subject]);
}

function keysOf({ caller, subject }: JobOrigin): [caller: string, subject: string] {
  return [`caller ${caller}`, `subject ${subject}`];
}
