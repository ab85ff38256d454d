import { createFairQueue } from '../../core/concurrency/fair-queue.ts';
import { createTally } from '../../core/concurrency/tally.ts';

export interface ReadQueueLimits {
  maxWaiting: number;
  maxWaitingPerAccount: number;
  /** Number of threads, idle or not. */
  threads: number;
}

/**
 * Reads that wait for a thread. Accounts take turns; the reads of one account stay in order. An account that has a thread
 * gets another one only while one more stays free, so that an account with slow reads never occupies all threads.
 *
 * Begins empty. Has no timers: the pool bounds how long a job waits. `take` and `ended` must be balanced, as running
 * jobs count by account.
 */
export function createReadQueue<Job extends { accountId: string }>(limits: ReadQueueLimits) {
  const waiting = createFairQueue<Job>();
  const running = createTally();

  /** Removes the newest job of the account with the most jobs, if it has more than one account with `count` jobs. */
  function displaceFor(count: number): Job | null {
    let longest: readonly Job[] = [];
    for (const [, jobs] of waiting.entries()) if (jobs.length > longest.length) longest = jobs;
    const newest = longest.at(-1);
    if (newest === undefined || longest.length <= count) return null;
    waiting.remove(newest.accountId, newest);
    return newest;
  }

  return {
    /**
     * Adds a job. Returns the job that the queue rejects for it: null, the job itself, or, when the queue is full, the newest
     * job of the account with the most jobs.
     */
    push: (job: Job): Job | null => {
      const count = waiting.countOf(job.accountId);
      if (count >= limits.maxWaitingPerAccount) return job;
      const isFull = waiting.size >= limits.maxWaiting;
      const displaced = isFull ? displaceFor(count + 1) : null;
      if (isFull && displaced === null) return job;
      waiting.push(job.accountId, job);
      return displaced;
    },
    /**
     * Takes the next job that may run while `idle` threads are idle, and counts it as running. Accounts without a thread
     * come first.
     */
    take: (idle: number): Job | undefined => {
      if (idle <= 0) return undefined;
      const hasMore = idle > 1 && limits.threads > 1;
      const next = waiting.take((accountId) => (running.of(accountId) === 0 ? 0 : hasMore ? 1 : null));
      if (next !== undefined) running.add(next.owner, 1);
      return next?.item;
    },
    /** Reports that a job that was taken has ended. */
    ended: ({ accountId }: Job): void => running.add(accountId, -1),
    /** Removes a waiting job; returns false when it is not waiting. */
    remove: (job: Job): boolean => waiting.remove(job.accountId, job),
    /** Removes and returns all waiting jobs. */
    clear: waiting.clear,
    get size(): number {
      return waiting.size;
    },
  };
}
