import { timingSafeEqual } from 'node:crypto';
import { HOUR, iso, MINUTE } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { mac } from '../core/seal.ts';
import type { Context } from '../store/context.ts';
import type { PersonRow } from '../store/people/people.ts';
import type { SessionRow } from '../store/people/sessions.ts';
import type { Tables } from '../store/tables.ts';
import { tokenHash } from './links.ts';
import { type ConsolePerson, presentPerson } from './person.ts';

/**
 * Sessions of the console. The browser has a random token in a cookie, the database its hash. A session ends 12 hours after
 * its last request, when it is revoked, and when its person is disabled; each request reads it.
 *
 * Browsers send a cookie to every port of a host, so a program that listens on another port can obtain it. A
 * request therefore also needs the page token of the session, which only the pages of the console have: it is in the
 * response to the sign-in and in no other one. It is derived from the token of the cookie with the master key, and stored
 * nowhere.
 */
export interface Session {
  id: string;
  person: ConsolePerson;
  method: SessionRow['method'];
  /** When the person last proved who they are, epoch ms. */
  authenticatedAt: number;
  /** Names the session for the functions of this module. */
  hash: Buffer;
}

/** What is recorded of the browser. */
export interface Browser {
  userAgent: string;
  address: string;
}

export interface OpenedSession {
  /** For the cookie. */
  token: string;
  /** For the page. */
  pageToken: string;
  person: ConsolePerson;
}

export const IDLE_TIMEOUT_MS = 12 * HOUR;
export const REAUTHENTICATION_MS = 10 * MINUTE;
/** Interval at which the last use of a session is written. */
const TOUCH_INTERVAL_MS = MINUTE;
/** Sessions of one person; a further one ends the oldest. */
export const MAX_SESSIONS = 20;
const MAX_USER_AGENT = 300;
/** Characters of a token of `Ids.token`. */
const TOKEN_LENGTH = 43;

/**
 * Whether the person of a session that was opened with a link has nothing to prove again who they are with. Such a session
 * may add a first passkey, or a password with an authenticator application, at any time: otherwise the person would need a
 * new link for everything that requires a recent sign-in. This happens once, and the audit log has it.
 */
export function lacksCredential({ method, person }: Pick<Session, 'method' | 'person'>): boolean {
  return method === 'link' && person.passkeys === 0 && !(person.hasPassword && person.hasTotp);
}

/**
 * For the unit of work of a change that a session requests: null while the session exists. It may have ended after the
 * request was authenticated, by a recovery for example, which must not be undone.
 */
export function endedSession(tx: Tables, { hash, person }: Session, now: number): Refusal | null {
  const row = tx.consoleSessions.byHash(hash);
  const isOpen =
    row !== null &&
    row.person_id === person.id &&
    row.expires_at > now &&
    tx.people.get(person.id)?.status === 'active';
  return isOpen ? null : refuse('UNAUTHENTICATED', 'This session has ended: sign in again');
}

/**
 * Stateless, without a timer: retention deletes expired sessions. `find` writes the last use at most once a minute and
 * does not wait for it.
 */
export function createSessions({
  tables,
  writer,
  clock,
  ids,
  seal,
}: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'seal'>) {
  const pageKey = seal.derive('page tokens of console sessions');
  const pageTokenOf = (token: string): string => mac(pageKey, token).toString('base64url');

  function openSession(
    tx: Tables,
    row: PersonRow,
    method: SessionRow['method'],
    { userAgent, address }: Browser,
  ): OpenedSession {
    const token = ids.token();
    const now = clock.now();
    tx.consoleSessions.insert(
      {
        session_hash: tokenHash(token),
        session_id: ids.make('session'),
        person_id: row.person_id,
        method,
        user_agent: userAgent.slice(0, MAX_USER_AGENT).toWellFormed(),
        remote_address: address,
        created_at: now,
        authenticated_at: now,
        seen_at: now,
        expires_at: now + IDLE_TIMEOUT_MS,
      },
      MAX_SESSIONS,
    );
    const signedIn = { ...row, signed_in_at: now };
    tx.people.update(signedIn);
    return { token, pageToken: pageTokenOf(token), person: presentPerson(tx, signedIn) };
  }

  return {
    /** The session of a cookie; null: none, or it has ended. Extends the session, unless `passive` is set. */
    find: (token: string, passive = false): Session | null => {
      if (token.length !== TOKEN_LENGTH) return null;
      const row = tables.consoleSessions.byHash(tokenHash(token));
      const now = clock.now();
      if (row === null || row.expires_at <= now) return null;
      const person = tables.people.get(row.person_id);
      if (person === null || person.status !== 'active') return null;
      if (!passive && now - row.seen_at >= TOUCH_INTERVAL_MS) {
        // If it fails, the next request repeats it.
        void writer
          .run((tx) => tx.consoleSessions.touch(row.session_hash, now, now + IDLE_TIMEOUT_MS))
          .catch(() => {});
      }
      return {
        id: row.session_id,
        person: presentPerson(tables, person),
        method: row.method,
        authenticatedAt: row.authenticated_at,
        hash: row.session_hash,
      };
    },
    /** Whether the second token is the page token of the session with the first one. */
    isOfPage: (token: string, pageToken: string): boolean => {
      const expected = Buffer.from(pageTokenOf(token));
      const given = Buffer.from(pageToken);
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
    /** Signs in with a link, which becomes invalid. Null: the link is unknown, used or expired. */
    openWithLink: async (token: string, browser: Browser): Promise<OpenedSession | null> => {
      if (token.length !== TOKEN_LENGTH) return null;
      return writer.run((tx): OpenedSession | null => {
        const link = tx.signInLinks.take(tokenHash(token));
        if (link === null || link.expires_at <= clock.now()) return null;
        const person = tx.people.get(link.person_id);
        return person?.status === 'active' ? openSession(tx, person, 'link', browser) : null;
      });
    },
    /** Opens a session of a person who proved who they are. Refuses a disabled person. */
    open: (
      personId: string,
      method: SessionRow['method'],
      browser: Browser,
    ): Promise<OpenedSession | Refusal> =>
      writer.run((tx): OpenedSession | Refusal => {
        const person = tx.people.get(personId);
        return person?.status === 'active'
          ? openSession(tx, person, method, browser)
          : refuse('UNAUTHENTICATED', 'This person is disabled: an operator can enable them');
      }),
    /** Records that the person of the session has proved again who they are. */
    confirm: ({ hash }: Session): Promise<void> =>
      writer.run((tx) => tx.consoleSessions.setAuthenticated(hash, clock.now())),
    /** Whether the person proved who they are within REAUTHENTICATION_MS. */
    isConfirmed: ({ authenticatedAt }: Session): boolean =>
      clock.now() - authenticatedAt < REAUTHENTICATION_MS,
    end: ({ hash }: Session): Promise<void> => writer.run((tx) => tx.consoleSessions.remove(hash)),
    list: ({ person, id }: Session) =>
      tables.consoleSessions
        .ofPerson(person.id, MAX_SESSIONS)
        .filter((row) => row.expires_at > clock.now())
        .map((row) => ({
          id: row.session_id,
          method: row.method,
          userAgent: row.user_agent,
          address: row.remote_address,
          createdAt: iso(row.created_at),
          seenAt: iso(row.seen_at),
          current: row.session_id === id,
        })),
    /** Ends another session of the person; false: there is none. */
    revoke: (session: Session, sessionId: string): Promise<boolean | Refusal> =>
      writer.run((tx): boolean | Refusal => {
        const { id } = session.person;
        return endedSession(tx, session, clock.now()) ?? tx.consoleSessions.removeById(sessionId, id);
      }),
    /** Ends all other sessions of the person; returns how many. */
    revokeOthers: (session: Session): Promise<number | Refusal> =>
      writer.run((tx): number | Refusal => {
        const { person, hash } = session;
        return endedSession(tx, session, clock.now()) ?? tx.consoleSessions.removeOf(person.id, hash);
      }),
  };
}

export type Sessions = ReturnType<typeof createSessions>;
