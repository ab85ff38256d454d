import { LRUCache } from 'lru-cache';
import { SECOND } from '../../core/clock.ts';

/**
 * A queue in which nobody waits behind another sender's backlog. Each job names the caller it comes from and
 * the subject it is about; both are charged for the time that their jobs take, and the job whose caller and
 * subject have used least recently is next. A newcomer is therefore served after the job in hand, whatever
 * waits.
 */
export interface Turn {
  /** first: proven to concern a message of ours. normal: mail to a mailbox. last: reports, the costliest to read. */
  priority: Priority;
  /** Network or account that the job comes from. */
  caller: string;
  /** Token or mailbox that the job is addressed to. */
  subject: string;
}

export const PRIORITIES = ['first', 'normal', 'last'] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface FairQueue<Job extends { turn: Turn }> {
  /** False, and nothing queued, when this caller's or subject's share is used up. */
  push(job: Job): boolean;
  /** Returns a job that was taken to the front of its place. Always succeeds. */
  putBack(job: Job): void;
  /** The next job; undefined, and nothing taken, when there is none or `accepts` says no to it. */
  take(accepts: (job: Job) => boolean): Job | undefined;
  /** Counts `ms` of work against the caller and the subject. */
  charge(turn: Turn, ms: number): void;
  /** Removes and returns everything. */
  clear(): Job[];
}

/** Most jobs that wait at once, of one priority each. A message has one recipient, so few mails are about it. */
const MAX_WAITING: Record<Priority, { perCaller: number; perSubject: number }> = {
  first: { perCaller: 500, perSubject: 8 },
  normal: { perCaller: 500, perSubject: 500 },
  last: { perCaller: 30, perSubject: 100 },
};
const MAX_WAITING_IN_ALL = 5000;
/** Every so many turns the lowest priority that waits is served, so that it is slowed down and not starved. */
const TURNS_TO_LAST = 16;
/** Use of the thread is forgotten by half in this time. */
const HALF_LIFE_MS = 30 * SECOND;
const NEGLIGIBLE_MS = 0.01;
const MAX_REMEMBERED = 20_000;

/** `now` in ms, from any origin. */
export function createFairQueue<Job extends { turn: Turn }>(now: () => number): FairQueue<Job> {
  const flows: Record<Priority, Map<string, Flow<Job>>> = {
    first: new Map(),
    normal: new Map(),
    last: new Map(),
  };
  const waiting = new Map<string, number>();
  const used = new LRUCache<string, Use>({ max: MAX_REMEMBERED });
  let halvedAt = now();
  let size = 0;
  let turns = 0;

  function useOf(key: string): Use {
    const use = used.get(key) ?? { ms: 0 };
    used.set(key, use);
    return use;
  }

  function forget(): void {
    const halves = Math.floor((now() - halvedAt) / HALF_LIFE_MS);
    if (halves < 1) return;
    halvedAt += halves * HALF_LIFE_MS;
    for (const use of used.values()) {
      use.ms /= 2 ** halves;
      if (use.ms < NEGLIGIBLE_MS) use.ms = 0;
    }
  }

  function countJob({ turn }: Job, change: 1 | -1): void {
    size += change;
    for (const key of keysOf(turn)) {
      const count = `${turn.priority} ${key}`;
      const next = (waiting.get(count) ?? 0) + change;
      if (next === 0) waiting.delete(count);
      else waiting.set(count, next);
    }
  }

  function flowOf(turn: Turn): Flow<Job> {
    const key = JSON.stringify([turn.caller, turn.subject]);
    const known = flows[turn.priority].get(key);
    if (known !== undefined) return known;
    const [caller, subject] = keysOf(turn);
    const flow = { key, jobs: [], caller: useOf(caller), subject: useOf(subject) };
    flows[turn.priority].set(key, flow);
    return flow;
  }

  /** The flow that has used least; of equal ones the first. */
  function nextFlow(): Flow<Job> | null {
    const order = (turns + 1) % TURNS_TO_LAST === 0 ? PRIORITIES.toReversed() : PRIORITIES;
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
      const { priority } = job.turn;
      const [caller, subject] = keysOf(job.turn);
      const { perCaller, perSubject } = MAX_WAITING[priority];
      const isFull =
        size >= MAX_WAITING_IN_ALL ||
        (waiting.get(`${priority} ${caller}`) ?? 0) >= perCaller ||
        (waiting.get(`${priority} ${subject}`) ?? 0) >= perSubject;
      if (isFull) return false;
      flowOf(job.turn).jobs.push(job);
      countJob(job, 1);
      return true;
    },
    putBack: (job) => {
      flowOf(job.turn).jobs.unshift(job);
      countJob(job, 1);
    },
    take: (accepts) => {
      forget();
      const flow = nextFlow();
      const job = flow?.jobs[0];
      if (flow === null || job === undefined || !accepts(job)) return undefined;
      flow.jobs.shift();
      turns++;
      // Last in the order of insertion, which decides between flows that have used the same.
      const { priority } = job.turn;
      flows[priority].delete(flow.key);
      if (flow.jobs.length > 0) flows[priority].set(flow.key, flow);
      countJob(job, -1);
      return job;
    },
    charge: (turn, ms) => {
      forget();
      for (const key of keysOf(turn)) useOf(key).ms += ms;
    },
    clear: () => {
      const jobs = PRIORITIES.flatMap((priority) =>
        [...flows[priority].values()].flatMap(({ jobs }) => jobs),
      );
      for (const priority of PRIORITIES) flows[priority].clear();
      waiting.clear();
      size = 0;
      return jobs;
    },
  };
}

/** Jobs of one caller about one subject, in their order. */
interface Flow<Job> {
  key: string;
  jobs: Job[];
  caller: Use;
  subject: Use;
}

/** Of the thread, in ms. */
interface Use {
  ms: number;
}

function keysOf({ caller, subject }: Turn): [caller: string, subject: string] {
  return [`caller ${caller}`, `subject ${subject}`];
}
