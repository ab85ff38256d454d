import { useRefresh } from '../../data.ts';

/** What waits changes without an event of an account. */
const REFRESH_MS = 10_000;

/** Reads the data of a page about the queue again at an interval. */
export function useQueueRefresh(reload: () => void): void {
  useRefresh(reload, REFRESH_MS);
}
