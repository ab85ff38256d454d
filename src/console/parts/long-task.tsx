import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api.ts';
import { useUnsavedWarning } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

/**
 * Work of many requests. What remains of it is stored for the tab, so that a person can continue it after a reload, after
 * leaving the page, and after a failure. A request whose response did not arrive is repeated.
 */
export interface LongTask<Work> {
  /** Null: there is none. */
  state: TaskState<Work> | null;
  status: 'running' | 'stopped' | 'finished';
  /** What stopped it; null: the person, or a reload. */
  error: ApiError | null;
  start(first: Pick<TaskState<Work>, 'title' | 'work' | 'total'>): void;
  continue(): void;
  /** Ends it after the current request. */
  stop(): void;
  /** Discards what remains. */
  discard(): void;
}

interface TaskState<Work> {
  /** The name of the task, for the person. */
  title: string;
  /** What remains, JSON. */
  work: Work;
  done: number;
  /** Null: not known. */
  total: number | null;
  /** How many of those that are done were not changed. */
  skipped: number;
  /** The items that were refused, with the reason: the first `MAX_LISTED`. */
  refused: string[];
  /** How many were refused after those. */
  unlisted: number;
}

/** What one request did. */
interface Portion<Work> {
  /** Null: nothing remains. */
  rest: Work | null;
  done: number;
  skipped?: number;
  refused?: string[];
}

const PREFIX = 'postrider-task ';
/** Pause when the limit on requests is reached. */
const PAUSE_MS = 1000;
/** Refused items that are listed and stored; the storage of a tab is limited. */
const MAX_LISTED = 50;

/** Waits before a request that exceeded the limit on requests is repeated. */
export function limitPause(): Promise<void> {
  return new Promise((resolve) => window.setTimeout(resolve, PAUSE_MS));
}

/** The tasks that send requests. */
const running = new Set<AbortController>();
const DISCARDED = 'discarded';

/** Stops all tasks and removes what remains of them, when the person signs out. */
export function discardTasks(): void {
  for (const task of running) task.abort(DISCARDED);
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}

/** The task `name` of the page. `step` sends the next request; `onEnd` is called when the task ends or stops. */
export function useLongTask<Work>(
  name: string,
  step: (work: Work) => Promise<Portion<Work>>,
  onEnd: () => void,
): LongTask<Work> {
  const { t } = useTexts();
  const { person, accountId } = useMember();
  const key = `${PREFIX}${person.id} ${accountId} ${name}`;
  const [state, setState] = useState<TaskState<Work> | null>(() => stored<Work>(key));
  const [status, setStatus] = useState<LongTask<Work>['status']>('stopped');
  const [error, setError] = useState<ApiError | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  useUnsavedWarning(status === 'running', t('task.leave'));

  const run = async (first: TaskState<Work>) => {
    const controller = new AbortController();
    const { signal } = controller;
    abort.current = controller;
    running.add(controller);
    setError(null);
    setStatus('running');
    let current = first;
    const end = (how: 'stopped' | 'finished') => {
      running.delete(controller);
      setStatus(how);
      onEnd();
    };
    while (!signal.aborted) {
      sessionStorage.setItem(key, JSON.stringify(current));
      setState(current);
      const result = await step(current.work).catch((failure: unknown) => {
        if (failure instanceof ApiError) return failure;
        throw failure;
      });
      if (!(result instanceof ApiError)) {
        const { rest, done, skipped = 0, refused = [] } = result;
        current = {
          ...current,
          work: rest ?? current.work,
          done: current.done + done,
          skipped: current.skipped + skipped,
          ...withRefused(current, refused),
        };
        if (rest === null) {
          sessionStorage.removeItem(key);
          setState(current);
          return end('finished');
        }
      } else if (result.status === 429) {
        await limitPause();
      } else {
        setError(result);
        return end('stopped');
      }
    }
    if (signal.reason !== DISCARDED) sessionStorage.setItem(key, JSON.stringify(current));
    setState(current);
    return end('stopped');
  };
  return {
    state,
    status,
    error,
    start: (first) => void run({ ...first, done: 0, skipped: 0, refused: [], unlisted: 0 }),
    continue: () => {
      if (state !== null) void run(state);
    },
    stop: () => abort.current?.abort(),
    discard: () => {
      sessionStorage.removeItem(key);
      setState(null);
    },
  };
}

function withRefused<Work>(
  { refused, unlisted }: TaskState<Work>,
  added: string[],
): Pick<TaskState<Work>, 'refused' | 'unlisted'> {
  const all = [...refused, ...added];
  return { refused: all.slice(0, MAX_LISTED), unlisted: unlisted + Math.max(all.length - MAX_LISTED, 0) };
}

function stored<Work>(key: string): TaskState<Work> | null {
  const text = sessionStorage.getItem(key);
  // Sound: only `useLongTask` with the same name writes it.
  return text === null ? null : (JSON.parse(text) as TaskState<Work>);
}

/**
 * Whether a request was refused because of its item, so that the next one can succeed. Otherwise the connection, the
 * session or the server is the reason.
 */
export function isRefused(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 404, 409, 422].includes(error.status);
}

interface TaskProgressProps {
  task: LongTask<unknown>;
  /** What is done of a task without a total, 0 to 1. */
  share?: number;
  /** The result of a finished task. Default: the numbers of all and of the refused. */
  result?: ComponentChildren;
}

/** The progress of a task, with its controls. */
export function TaskProgress({ task, share, result }: TaskProgressProps) {
  const { t, errorText } = useTexts();
  const { state, status, error } = task;
  if (state === null) return null;
  const { title, done, total, skipped, refused, unlisted } = state;
  const numbers =
    total === null
      ? t('task.done', { done })
      : t('task.progress', { done, total: Math.max(done, total), refused: skipped });
  const notes = refused.length > 0 && (
    <ul>
      {refused.map((line) => (
        <li key={line}>{line}</li>
      ))}
      {unlisted > 0 && <li>{t('task.unlisted', { count: unlisted })}</li>}
    </ul>
  );
  if (status === 'stopped')
    return (
      <section class="notice" aria-label={title}>
        <strong>{t('task.stopped', { title })}</strong>
        <p role="status">
          {total === null ? numbers : t('task.left', { done, total, left: Math.max(total - done, 0) })}
        </p>
        {error !== null && <p>{errorText(error)}</p>}
        {notes}
        <div class="actions">
          <button type="button" class="button primary" onClick={task.continue}>
            {t('task.continue')}
          </button>
          <button class="button" type="button" onClick={task.discard}>
            {t('task.discard')}
          </button>
        </div>
      </section>
    );
  return (
    <section aria-label={title}>
      <p role="status">
        {title}: {status === 'finished' ? (result ?? numbers) : numbers}
      </p>
      {status === 'running' && (
        <div class="actions">
          <progress aria-label={title} max={1} value={total === null ? share : done / Math.max(total, 1)} />
          <button class="button" type="button" onClick={task.stop}>
            {t('task.stop')}
          </button>
        </div>
      )}
      {notes}
    </section>
  );
}
