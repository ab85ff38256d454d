import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useState } from 'preact/hooks';
import { ApiError, readDocument, request } from './api.ts';
import { followEvents } from './event-stream.ts';
import { addressOf, type DataOf, type Optional, type ParametersOf, type PathOf } from './operations.ts';
import { useMember } from './session.ts';

/** Data of the API; the last value remains while it is read again. */
export interface Data<T> {
  value: T | null;
  error: ApiError | null;
  reload(): void;
}

/** Reads with an operation of the API, again when its parameters change and after events of the account. Null: nothing. */
export function useOperation<P extends PathOf<'get'>>(
  path: P | null,
  ...parameters: Optional<ParametersOf<P>>
): Data<DataOf<P>> {
  const { accountId } = useMember();
  const live = useContext(LiveContext);
  return useConsoleData(operationPath(path, parameters), accountId, live);
}

/** Reads with an operation about the installation, which belongs to no account, again when its parameters change. */
export function useInstallation<P extends PathOf<'get'>>(
  path: P | null,
  ...parameters: Optional<ParametersOf<P>>
): Data<DataOf<P>> {
  return useConsoleData(operationPath(path, parameters));
}

function operationPath(path: string | null, [values]: [values?: object]): string | null {
  return path === null ? null : `/console/api${addressOf(path, values)}`;
}

/**
 * Reads what belongs to the console itself, such as its people, again when `liveTurn` changes. `account`: the account
 * that it is about. Path null: nothing is read.
 */
export function useConsoleData<T>(path: string | null, account?: string, liveTurn = 0): Data<T> {
  return useReading<T>(
    path === null ? null : `${account} ${path}`,
    (signal) => request<T>(path ?? '', { account, signal }),
    liveTurn,
  );
}

/** Reads a document that has no envelope and belongs to no account. */
export function useDocument<T>(path: string): Data<T> {
  return useReading<T>(path, (signal) => readDocument<T>(path, signal), 0);
}

/** Reads when `key` or `liveTurn` changes. */
function useReading<T>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<T>,
  liveTurn: number,
): Data<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ of: string; value: T | null; error: ApiError | null }>({
    of: '',
    value: null,
    error: null,
  });
  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    read(abort.signal).then(
      (value) => setState({ of: key, value, error: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setState((last) => ({ of: key, value: last.of === key ? last.value : null, error }));
      },
    );
    return () => abort.abort();
  }, [key, turn, liveTurn]);
  const reload = useCallback(() => setTurn((last) => last + 1), []);
  return state.of === key
    ? { value: state.value, error: state.error, reload }
    : { value: null, error: null, reload };
}

/** How often a page reads again what changes without an event of the account. */
const REFRESH_MS = 10_000;

/**
 * Reads again at an interval while the page is visible, and when it becomes visible after a missed turn: for what changes
 * without an event of the account. Null: does not.
 */
export function useRefresh(reload: () => void, intervalMs: number | null = REFRESH_MS): void {
  useEffect(() => {
    if (intervalMs === null) return undefined;
    let isMissed = false;
    const refresh = () => {
      isMissed = document.hidden;
      if (!isMissed) reload();
    };
    const show = () => {
      if (isMissed) refresh();
    };
    const timer = window.setInterval(refresh, intervalMs);
    document.addEventListener('visibilitychange', show);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener('visibilitychange', show);
    };
  }, [reload, intervalMs]);
}

const LiveContext = createContext(0);
/** Its value changes after events of the account. */
export const LiveProvider = LiveContext.Provider;

/** Pages read again at most this often while events arrive. */
const LIVE_INTERVAL_MS = 2000;

/** Follows the events of an account; returns a number that changes after events. */
export function useLive(accountId: string | null): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (accountId === null) return undefined;
    let timer: number | undefined;
    const leave = followEvents(accountId, () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        setCount((last) => last + 1);
      }, LIVE_INTERVAL_MS);
    });
    return () => {
      leave();
      window.clearTimeout(timer);
    };
  }, [accountId]);
  return count;
}
