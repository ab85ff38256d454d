/**
 * Reads that wait for a thread. Accounts take turns; the reads of one account stay in order. An account that has a thread
 * gets another one only while one more stays free, so that an account with slow reads never occupies all threads.
 */
export interface ReadQueue<Job extends { accountId: string }> {
  /**
   * Adds a job. Returns the job that the queue rejects for it: null, the job itself, or, when the queue is full, the newest
   * job of the account with the most jobs.
   */
  push(job: Job): Job | null;
  /** Takes the next job that may run while `idle` threads are idle, and counts it as running. */
  take(idle: number): Job | undefined;
  /** Reports that a job that was taken has ended. */
  ended(job: Job): void;
  /** Removes a waiting job; returns false when it is not waiting. */
  remove(job: Job): boolean;
  /** Removes and returns all waiting jobs. */
  clear(): Job[];
  readonly size: number;
}

export interface ReadQueueLimits {
  maxWaiting: number;
  maxWaitingPerAccount: number;
  /** Number of threads, idle or not. */
  threads: number;
}

/**
 * Begins empty. Has no timers: the pool bounds how long a job waits. `take` and `ended` must be balanced, as running
 * jobs count by account.
 */
export function createReadQueue<Job extends { accountId: string }>(limits: ReadQueueLimits): ReadQueue<Job> {
  /** Waiting jobs by account; the accounts are in the order of their turns. */
  const waiting = new Map<string, Job[]>();
  const running = new Map<string, number>();
  let size = 0;

  function mayRun(accountId: string, idle: number): boolean {
    const held = running.get(accountId) ?? 0;
    return held === 0 || (idle > 1 && limits.threads > 1);
  }

  /** Accounts without a thread come first. */
  function nextAccount(idle: number): string | undefined {
    let next: string | undefined;
    for (const accountId of waiting.keys()) {
      if (!running.has(accountId)) return accountId;
      if (next === undefined && mayRun(accountId, idle)) next = accountId;
    }
    return next;
  }

  function longest(): Job[] | undefined {
    let longest: Job[] | undefined;
    for (const jobs of waiting.values()) {
      if (longest === undefined || jobs.length > longest.length) longest = jobs;
    }
    return longest;
  }

  function remove(job: Job): boolean {
    const jobs = waiting.get(job.accountId);
    const at = jobs?.indexOf(job) ?? -1;
    if (jobs === undefined || at < 0) return false;
    jobs.splice(at, 1);
    if (jobs.length === 0) waiting.delete(job.accountId);
    size--;
    return true;
  }

  return {
    push: (job) => {
      const jobs = waiting.get(job.accountId) ?? [];
      if (jobs.length >= limits.maxWaitingPerAccount) return job;
      let displaced: Job | null = null;
      if (size >= limits.maxWaiting) {
        const last = longest();
        const newest = last?.at(-1);
        if (last === undefined || newest === undefined || last.length <= jobs.length + 1) return job;
        remove(newest);
        displaced = newest;
      }
      jobs.push(job);
      waiting.set(job.accountId, jobs);
      size++;
      return displaced;
    },
    take: (idle) => {
      const accountId = idle > 0 ? nextAccount(idle) : undefined;
      const jobs = accountId === undefined ? undefined : waiting.get(accountId);
      const job = jobs?.shift();
      if (accountId === undefined || jobs === undefined || job === undefined) return undefined;
      size--;
      // An account that is inserted again comes last.
      waiting.delete(accountId);
      if (jobs.length > 0) waiting.set(accountId, jobs);
      running.set(accountId, (running.get(accountId) ?? 0) + 1);
      return job;
    },
    ended: ({ accountId }) => {
      const left = (running.get(accountId) ?? 1) - 1;
      if (left > 0) running.set(accountId, left);
      else running.delete(accountId);
    },
    remove,
    clear: () => {
      const jobs = [...waiting.values()].flat();
      waiting.clear();
      size = 0;
      return jobs;
    },
    get size() {
      return size;
    },
  };
}
