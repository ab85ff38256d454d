import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { FAILURES_PER_MINUTE, type FailureLimits } from '../../accounts/rate-limits.ts';
import { iso } from '../../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { AccountMembership, People } from '../../people/people.ts';
import type { ConsolePerson } from '../../people/person.ts';
import { type Permission, permissionsOf, ROLE_PERMISSIONS } from '../../people/roles.ts';
import {
  type Browser,
  lacksCredential,
  type OpenedSession,
  type Session,
  type Sessions,
} from '../../people/sessions.ts';
import type { MemberRole } from '../../store/people/people.ts';
import type { SessionRow } from '../../store/people/sessions.ts';
import { type Call, Reply } from '../route.ts';
import type { ConsoleAccess, ConsoleReason } from './access.ts';
import type { Auditing } from './auditing.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';
import type { ConsoleCookie } from './cookies.ts';

/** The person of the session, for the application: the response of `GET /console/session` and of each sign-in. */
export interface ConsoleSession {
  signedIn: boolean;
  /** How people can sign in here. */
  methods: { password: boolean; passkey: boolean; oidc: string | null };
  /** Null: nobody is signed in. */
  person: SessionPerson | null;
  /** Version of the program. */
  version: string;
  /** Of the session that was opened: only in the response to a sign-in. */
  pageToken?: string;
}

export interface SessionPerson {
  id: string;
  email: string;
  name: string;
  operator: boolean;
  language: string | null;
  hasPassword: boolean;
  hasTotp: boolean;
  passkeys: number;
  /** Whether keyboard shortcuts of one key are on. */
  shortcuts: boolean;
  /** Accounts of the person. For an operator the first 500 accounts, with the role `operator`. */
  memberships: AccountMembership[];
  /** The permissions of each role. */
  roles: Record<string, readonly Permission[]>;
  /** The permission that each operation of the API requires. */
  operations: Readonly<Record<string, Permission>>;
  /** Base URL of the API, for commands that people copy. */
  apiUrl: string;
  /** `lacksCredential`: whether the person has to add a passkey or a password, to prove later who they are. */
  session: { id: string; method: SessionRow['method']; authenticatedAt: string; lacksCredential: boolean };
}

/** Opens sessions: sets the cookie and writes the audit record. */
export interface SignIn {
  /** The response to a successful sign-in. */
  succeeded(opened: OpenedSession, method: SessionRow['method'], call: SignInCall): Promise<Reply>;
  /** The response to a failed one, which counts against the client's address. `email`: as it was entered; '': unknown. */
  failed(method: SessionRow['method'], email: string, message: string, call: SignInCall): Promise<Refusal>;
  browserOf(call: SignInCall): Browser;
}

export type SignInCall = Pick<Call<unknown, unknown, unknown>, 'headers' | 'address'>;

/** What opens sessions and shows them. */
export interface SessionServices {
  access: ConsoleAccess;
  people: People;
  sessions: Sessions;
  auditing: Auditing;
  failures: FailureLimits;
  cookie: ConsoleCookie;
  methods(): ConsoleSession['methods'];
  /** The permission that each operation of the API requires. */
  operations: Readonly<Record<string, Permission>>;
  version: string;
  apiUrl: string;
}

/** Why a sign-in failed, by its method. */
const FAILED = {
  link: 'INVALID_LINK',
  password: 'WRONG_CREDENTIALS',
  passkey: 'UNKNOWN_PASSKEY',
  oidc: 'PROVIDER_REFUSED',
} as const satisfies Record<SessionRow['method'], ConsoleReason>;

/** What the audit log has of every way to sign in. */
export const SIGN_IN = { operationId: 'console.signIn', summary: 'Sign in' };

/** Opens sessions after successful sign-ins, and counts failed ones. */
export function createSignIn(services: SessionServices): SignIn {
  const { auditing, failures, sessions, cookie } = services;
  const recordOf = (
    method: string,
    person: Pick<ConsolePerson, 'id' | 'email'> | null,
    email: string,
    address: string,
  ) => ({
    personId: person?.id ?? null,
    email: person?.email ?? email,
    accountId: null,
    operation: SIGN_IN.operationId,
    target: { method },
    address,
  });
  return {
    browserOf: (call) => ({ userAgent: call.headers['user-agent'] ?? '', address: call.address }),
    succeeded: async ({ token, pageToken, person }, method, call) => {
      await auditing.record({
        ...recordOf(method, person, '', call.address),
        outcome: 'done',
        detail: '',
      });
      return new Reply(
        { data: { ...presentSession(services, sessions.find(token)), pageToken } },
        { headers: { 'Set-Cookie': cookie.write(token) } },
      );
    },
    failed: async (method, email, message, call) => {
      const wait = failures.count(call.address);
      if (wait !== null)
        return refuse('RATE_LIMITED', 'Too many failed sign-ins from this address', {
          retryAfter: wait,
          limit: { name: 'sign-in', calls: FAILURES_PER_MINUTE, seconds: 60 },
        });
      await auditing.record({
        ...recordOf(method, null, email, call.address),
        outcome: 'denied',
        detail: 'UNAUTHENTICATED',
      });
      return refuse('UNAUTHENTICATED', message, {
        details: [{ field: method, reason: FAILED[method], message }],
      });
    },
  };
}

/** `/console/session` and `/console/me`. */
export function sessionRoutes(services: SessionServices, signIn: SignIn): ConsoleRoute[] {
  const { access, people, sessions, cookie } = services;
  const sessionOf = (call: { caller: Caller }): Session => access.sessionOf(call.caller);
  return [
    consoleRoute('GET /console/session', {
      operationId: 'getSession',
      summary: 'Get the session',
      access: 'anyone',
      handle: ({ caller }) => presentSession(services, access.identityOf(caller).session),
    }),
    consoleRoute('DELETE /console/session', {
      operationId: 'signOut',
      summary: 'Sign out',
      access: 'anyone',
      handle: async ({ caller }) => {
        const { session } = access.identityOf(caller);
        if (session !== null) await sessions.end(session);
        return new Reply(
          { data: presentSession(services, null) },
          { headers: { 'Set-Cookie': cookie.clear(), 'Clear-Site-Data': '"cache", "storage"' } },
        );
      },
    }),
    consoleRoute('POST /console/session/link', {
      operationId: 'signInWithLink',
      summary: 'Sign in with a link',
      access: 'anyone',
      ownAudit: true,
      body: z.strictObject({ token: z.string().min(1).max(200) }),
      handle: async (call) => {
        const opened = await sessions.openWithLink(call.body.token, signIn.browserOf(call));
        return opened === null
          ? signIn.failed(
              'link',
              '',
              'This link was used already, has expired or is incomplete: ask for a new one',
              call,
            )
          : signIn.succeeded(opened, 'link', call);
      },
    }),
    consoleRoute('GET /console/me', {
      operationId: 'getMe',
      summary: 'Get the profile',
      access: 'person',
      handle: (call) => sessionOf(call).person satisfies PresentedPerson,
    }),
    consoleRoute('PATCH /console/me', {
      operationId: 'updateMe',
      summary: 'Update the profile',
      access: 'person',
      body: z.strictObject({
        name: z.string().max(100).optional(),
        language: z.enum(['en', 'de', 'fr']).nullish(),
        shortcuts: z.boolean().optional(),
        failureMail: z.boolean().optional(),
      }),
      handle: async (call) => {
        const person = await people.update(sessionOf(call).person.id, call.body);
        return person satisfies PresentedPerson | Refusal;
      },
    }),
    consoleRoute('GET /console/me/sessions', {
      operationId: 'listMySessions',
      summary: 'List sessions',
      access: 'person',
      handle: (call) => ({
        sessions: sessions.list(sessionOf(call)),
      }),
    }),
    consoleRoute('DELETE /console/me/sessions', {
      operationId: 'revokeMyOtherSessions',
      summary: 'End all other sessions',
      access: 'person',
      handle: async (call) => {
        const revoked = await sessions.revokeOthers(sessionOf(call));
        return isRefusal(revoked) ? revoked : { revoked };
      },
    }),
    consoleRoute('DELETE /console/me/sessions/{sessionId}', {
      operationId: 'revokeMySession',
      summary: 'End a session',
      access: 'person',
      params: { sessionId: z.string().max(100) },
      handle: async (call) => {
        const revoked = await sessions.revoke(sessionOf(call), call.params.sessionId);
        if (isRefusal(revoked)) return revoked;
        return revoked ? {} : refuse('NOT_FOUND', 'This session does not exist or has ended');
      },
    }),
  ];
}

function presentSession(
  { people, methods, operations, version, apiUrl }: SessionServices,
  session: Session | null,
): ConsoleSession {
  if (session === null) return { signedIn: false, methods: methods(), person: null, version };
  const { person } = session;
  return {
    signedIn: true,
    methods: methods(),
    version,
    person: {
      id: person.id,
      email: person.email,
      name: person.name,
      operator: person.operator,
      language: person.language,
      hasPassword: person.hasPassword,
      hasTotp: person.hasTotp,
      passkeys: person.passkeys,
      shortcuts: person.shortcuts,
      memberships: people.memberships(person),
      roles: { ...ROLE_PERMISSIONS, operator: permissionsOf('operator') },
      operations,
      apiUrl,
      session: {
        id: session.id,
        method: session.method,
        authenticatedAt: iso(session.authenticatedAt),
        lacksCredential: lacksCredential(session),
      },
    },
  };
}

/** A person in responses; with `role` in the list of the members of an account. */
export type PresentedPerson = ConsolePerson & { role?: MemberRole };
