/*
 * The events of an account, from the stream of the console (src/http/console/event-stream.ts). With HTTP/1.1, browsers open
 * six connections to a host, for all tabs together, and a stream occupies one of them. So only visible tabs follow
 * events, and those of one account share a stream: the tab that holds the Web Lock opens it and notifies the others over
 * a BroadcastChannel; when that tab is closed or hidden, another one gets the lock. Browsers have Web Locks with HTTPS and on
 * loopback only: otherwise each visible tab has a stream.
 */

import { openEvents } from './api.ts';

/** Delay before a stream that has ended is opened again. */
const REOPEN_MS = 5000;

/**
 * Calls `onChange` when something happened in the account, or may have happened while its events were not followed.
 * Returns a function that stops it.
 */
export function followEvents(accountId: string, onChange: () => void): () => void {
  let leave: (() => void) | null = null;
  let wasHidden = false;
  const update = () => {
    if (document.hidden) {
      leave?.();
      leave = null;
      wasHidden = true;
    } else if (leave === null) {
      if (wasHidden) onChange();
      leave =
        navigator.locks === undefined
          ? openStream(accountId, false, onChange)
          : shareStream(accountId, onChange);
    }
  };
  update();
  document.addEventListener('visibilitychange', update);
  return () => {
    document.removeEventListener('visibilitychange', update);
    leave?.();
  };
}

/** Follows the stream of the tab that holds the lock, which may be this one. */
function shareStream(accountId: string, onChange: () => void): () => void {
  const name = `postrider-events ${accountId}`;
  const leaving = new AbortController();
  const { signal } = leaving;
  const channel = new BroadcastChannel(name);
  channel.addEventListener('message', onChange);
  const hold = (isLate: boolean) =>
    new Promise<void>((resolve) => {
      if (signal.aborted) return resolve();
      const close = openStream(accountId, isLate, () => {
        channel.postMessage(null);
        onChange();
      });
      signal.addEventListener('abort', () => {
        close();
        resolve();
      });
    });
  navigator.locks
    .request(name, { ifAvailable: true }, (lock) =>
      lock === null && !signal.aborted
        ? navigator.locks.request(name, { signal }, () => hold(true))
        : hold(false),
    )
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  return () => {
    leaving.abort();
    channel.close();
  };
}

/** `isLate`: whether events may have been missed before the stream was opened. Returns a function that closes it. */
function openStream(accountId: string, isLate: boolean, onChange: () => void): () => void {
  const closing = new AbortController();
  const { signal } = closing;
  const path = `/console/stream?account=${encodeURIComponent(accountId)}`;
  let mayHaveMissed = isLate;
  const follow = async () => {
    const reader = (await openEvents(path, signal)).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const name = /^event: (\w+)$/m.exec(event)?.[1];
        // After a reconnect, events may have been missed.
        if (name === 'event' || name === 'reset' || (name === 'hello' && mayHaveMissed)) onChange();
        if (name === 'hello') mayHaveMissed = true;
      }
    }
  };
  let reopening: number | undefined;
  const open = () => {
    const reopen = () => {
      if (signal.aborted) return;
      mayHaveMissed = true;
      reopening = window.setTimeout(open, REOPEN_MS);
    };
    // A lost connection, or the response of a proxy during a restart.
    follow().then(reopen, reopen);
  };
  open();
  return () => {
    closing.abort();
    window.clearTimeout(reopening);
  };
}
