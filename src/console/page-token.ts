/*
 * The page token of the session (src/people/sessions.ts): the server accepts the cookie of the session only together with
 * it. The response to the sign-in contains it; it is kept in `sessionStorage`, which only pages of this origin can read,
 * until the tab is closed. A new tab asks the other tabs of the origin for it over a BroadcastChannel; if none answers, the
 * person signs in.
 */

const KEY = 'postrider-page-token';
/** A sign-in that another service confirms was begun in this tab. */
const BEGUN_KEY = 'postrider-sign-in-begun';
/** How long a new tab waits for another one. */
const ANSWER_MS = 500;
/** An address that ends with `#/signed-in/` and the token: the return from another service. */
const RETURN = /^#\/signed-in\/([\w-]{20,100})$/;

type PageMessage = { kind: 'request' } | { kind: 'answer' | 'signedIn'; token: string };

let token = sessionStorage.getItem(KEY);
let onAnswer = (): void => {};
let onSignedIn = (): void => {};
const channel = new BroadcastChannel(KEY);

channel.addEventListener('message', ({ data }: MessageEvent<PageMessage>) => {
  if (data.kind === 'request') {
    if (token !== null) post({ kind: 'answer', token });
  } else if (data.kind === 'signedIn' || token === null) {
    const isNew = token !== data.token;
    store(data.token);
    if (data.kind === 'answer') onAnswer();
    else if (isNew) onSignedIn();
  }
});

function post(message: PageMessage): void {
  channel.postMessage(message);
}

function store(value: string): void {
  token = value;
  sessionStorage.setItem(KEY, value);
}

/** The token; null: nobody is signed in in this tab. */
export function pageToken(): string | null {
  return token;
}

/** Stores the token of a sign-in in this tab, and in the other ones, whose sessions the cookie no longer names. */
export function adoptPageToken(value: string): void {
  store(value);
  post({ kind: 'signedIn', token: value });
}

/** The session has ended. */
export function forgetPageToken(): void {
  token = null;
  sessionStorage.removeItem(KEY);
}

/** `callback`: called when the person has signed in in another tab. */
export function whenSignedInElsewhere(callback: () => void): void {
  onSignedIn = callback;
}

/** Resolves when this tab has the token, or no other tab has it. */
export function findPageToken(): Promise<void> {
  if (token !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ANSWER_MS);
    onAnswer = () => {
      window.clearTimeout(timer);
      resolve();
    };
    post({ kind: 'request' });
  });
}

/** Leaves for another service that confirms who the person is. It returns to this tab. */
export function beginSignInElsewhere(): void {
  sessionStorage.setItem(BEGUN_KEY, '1');
  window.location.assign('/console/oidc/start');
}

/**
 * Takes the token from the address after the return from another service. False: the sign-in was not begun in this tab, so
 * that another person may have begun it.
 */
export function finishSignInElsewhere(): boolean {
  const isBegun = sessionStorage.getItem(BEGUN_KEY) !== null;
  // Also after a sign-in that failed.
  sessionStorage.removeItem(BEGUN_KEY);
  const { hash, pathname, search } = window.location;
  const returned = RETURN.exec(hash)?.[1];
  if (returned === undefined) return true;
  window.history.replaceState(null, '', pathname + search);
  if (isBegun) adoptPageToken(returned);
  return isBegun;
}
