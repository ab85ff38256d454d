import { SECOND } from '../../core/clock.ts';
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

export interface FairQueue<Job extends { origin: JobOrigin }> {
  /** False, and nothing queued, when the share of the caller or the subject is used up. */
  push(job: Job): boolean;
  /** Puts a job that `take` returned back at the front of its flow. Always succeeds. */
  putBack(job: Job): void;
  /** Takes the next job; undefined, and nothing taken, when there is none or `accepts` returns false for it. */
  take(accepts: (job: Job) => boolean): Job | undefined;
  /** Charges `ms` of work to the caller and the subject. */
  charge(origin: JobOrigin, ms: number): void;
  /** Removes and returns everything. */
  clear(): Job[];
}

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

/** `now` in ms, from any origin. */
export function createFairQueue<Job extends { origin: JobOrigin }>(now: () => number): FairQueue<Job> {
  const flows: Record<JobPriority, Map<string, Flow<Job>>> = {
    first: new Map(),
    normal: new Map(),
    last: new Map(),
  };
  const waiting = new Map<string, number>();
  const used = createLru<Use>(MAX_TRACKED);
  let halvedAt = now();
  let size = 0;
  let taken = 0;

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
    size += change;
    for (const key of keysOf(origin)) {
      const counter = `${origin.priority} ${key}`;
      const next = (waiting.get(counter) ?? 0) + change;
      if (next === 0) waiting.delete(counter);
      else waiting.set(counter, next);
    }
  }

  function flowOf(origin: JobOrigin): Flow<Job> {
    const key = JSON.stringify([origin.caller, origin.subject]);
    const known = flows[origin.priority].get(key);
    if (known !== undefined) return known;
    const [caller, subject] = keysOf(origin);
    const flow = { key, jobs: [], caller: useOf(caller), subject: useOf(subject) };
    flows[origin.priority].set(key, flow);
    return flow;
  }

  /** The flow that has used the least; of equal ones the first. */
  function nextFlow(): Flow<Job> | null {
    const order = (taken + 1) % LOWEST_PRIORITY_INTERVAL === 0 ? JOB_PRIORITIES.toReversed() : JOB_PRIORITIES;
    const priority = order.find((each) => flows[each].size > 0);
    if (priority === undefined) return null;
    let best: Flow<Job> | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const flow of flows[priority].values()) {
      const cost = flow.caller.ms + flow.subject.ms;
      if (cost >= least) continue;
      least = cost;
      best = flow;
    }
    return best;
  }

  return {
    push: (job) => {
      const { priority } = job.origin;
      const [caller, subject] = keysOf(job.origin);
      const { perCaller, perSubject } = MAX_WAITING[priority];
      const isFull =
        size >= MAX_WAITING_TOTAL ||
        (waiting.get(`${priority} ${caller}`) ?? 0) >= perCaller ||
        (waiting.get(`${priority} ${subject}`) ?? 0) >= perSubject;
      if (isFull) return false;
      flowOf(job.origin).jobs.push(job);
      countJob(job, 1);
      return true;
    },
    putBack: (job) => {
      flowOf(job.origin).jobs.unshift(job);
      countJob(job, 1);
    },
    take: (accepts) => {
      decay();
      const flow = nextFlow();
      const job = flow?.jobs[0];
      if (flow === null || job === undefined || !accepts(job)) return undefined;
      flow.jobs.shift();
      taken++;
      // Inserted last: the order of insertion decides between flows that have used the same.
      const { priority } = job.origin;
      flows[priority].delete(flow.key);
      if (flow.jobs.length > 0) flows[priority].set(flow.key, flow);
      countJob(job, -1);
      return job;
    },
    charge: (origin, ms) => {
      decay();
      for (const key of keysOf(origin)) useOf(key).ms += ms;
    },
    clear: () => {
      const jobs = JOB_PRIORITIES.flatMap((priority) =>
        [...flows[priority].values()].flatMap(({ jobs }) => jobs),
      );
      for (const priority of JOB_PRIORITIES) flows[priority].clear();
      waiting.clear();
      size = 0;
      return jobs;
    },
  };
}

/** Jobs of one caller about one subject, in the order of arrival. */
interface Flow<Job> {
  key: string;
  jobs: Job[];
  caller: Use;
  subject: Use;
}

interface Use {
  /** Time in the thread. */
  ms: number;
}

function keysOf({ caller, subject }: JobOrigin): [caller: string, subject: string] {
  return [`caller ${caller}`, `subject ${subject}`];
}
