import type { IncomingMessage } from 'node:http';
import type { Caller } from '../../accounts/authenticate.ts';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { People } from '../../people/people.ts';
import { type Permission, permissionsOf, rolesWith, type Standing } from '../../people/roles.ts';
import { lacksCredential, type Session, type Sessions } from '../../people/sessions.ts';
import type { Context } from '../../store/context.ts';
import type { RoutedRequest } from '../router.ts';
import type { ConsoleCookie } from './cookies.ts';

/*
 * Who calls the console, and whether they may. A request without a session, of a person who is not a member of the
 * account, or of a member without the permission is refused before its body is read.
 */

/** The caller of an operation. */
export interface Identity {
  /** Null: an operation that requires no session. */
  session: Session | null;
  /** Null: the operation concerns the installation or the person. */
  accountId: string | null;
  standing: Standing | null;
}

/** What an operation requires. `anyone`: no session; `person`: a session; else a permission. */
export type Access = 'anyone' | 'person' | Permission;

/** The `reason` in the details of refusals of the console: the application acts on it, and has texts for it. */
export type ConsoleReason =
  /** The role lacks the permission in `name`. */
  | 'PERMISSION'
  /** The application lets the person confirm the session, and repeats the request. */
  | 'REAUTHENTICATION'
  | 'TOTP'
  | 'TOTP_NOT_SET_UP'
  | 'WRONG_CREDENTIALS'
  | 'INVALID_LINK'
  | 'UNKNOWN_PASSKEY'
  | 'PROVIDER_REFUSED';

/** What the application has texts of errors for. */
export type ErrorKey = RefusalCode | ConsoleReason;

export interface AccessRule {
  access: Access;
  /** Whether the person must have proved recently who they are. */
  confirmed?: boolean;
  /** Whether it may add the first credential of a person, who has nothing to prove with who they are (`lacksCredential`). */
  addsCredential?: boolean;
  /** Whether operators may name no account: the operation then concerns the installation. */
  accountOptional?: boolean;
  /** Whether the query parameter `account` names the account, where browsers send no header of the application. */
  accountInQuery?: boolean;
  /** Whether the operation belongs to an account although only operators may call it: one without a known permission. */
  inAccount?: boolean;
  /** Whether the request does not extend the session. */
  passive?: boolean;
  /**
   * Whether the cookie is sufficient because the address contains a secret of the page: for frames, whose requests have no
   * headers of the application.
   */
  secretInPath?: boolean;
}

/** The header with the page token of the session (`Sessions`). */
export const PAGE_TOKEN_HEADER = 'x-postrider-page-token';

export type ConsoleAccess = ReturnType<typeof createConsoleAccess>;

/**
 * Reads the session, the person and the role for every request, and may extend the session. Identities are kept as long
 * as the objects of their requests and callers.
 */
export function createConsoleAccess(
  { tables }: Pick<Context, 'tables'>,
  { people, sessions, cookie }: { people: People; sessions: Sessions; cookie: ConsoleCookie },
) {
  const ofRequest = new WeakMap<IncomingMessage, Identity>();
  const ofCaller = new WeakMap<Caller, Identity>();

  function identify(incoming: RoutedRequest, rule: AccessRule): Identity | Refusal {
    const { req } = incoming;
    const { access, accountOptional, accountInQuery, inAccount } = rule;
    const token = cookie.read(req.headers);
    // The application marks what a page sends by itself while nobody uses it.
    const isPassive = rule.passive === true || req.headers['x-unattended'] !== undefined;
    const pageToken = req.headers[PAGE_TOKEN_HEADER];
    const isOfPage =
      token !== null &&
      (typeof pageToken === 'string' ? sessions.isOfPage(token, pageToken) : rule.secretInPath === true);
    const session = isOfPage ? sessions.find(token, isPassive) : null;
    if (access === 'anyone') return { session, accountId: null, standing: null };
    if (session === null)
      return refuse('UNAUTHENTICATED', 'Sign in to the console: there is no valid session');
    const { operator } = session.person;
    if (access === 'person' || (access === 'operator' && inAccount !== true))
      return { session, accountId: null, standing: operator ? 'operator' : null };
    const header = req.headers['x-id'];
    const named = accountInQuery === true ? new URLSearchParams(incoming.search).get('account') : null;
    const accountId = named ?? (typeof header === 'string' ? header : '');
    if (accountId === '') {
      if (accountOptional === true && operator) return { session, accountId: null, standing: 'operator' };
      return invalid(accountInQuery === true ? 'account' : 'X-Id', 'must have the id of an account');
    }
    return { session, accountId, standing: people.standing(session.person, accountId) };
  }

  function refusalOf(identity: Identity, rule: AccessRule, isRead: boolean): Refusal | null {
    const { access } = rule;
    const { session, standing, accountId } = identity;
    if (session === null || access === 'anyone') return null;
    if (access === 'operator' && standing !== 'operator')
      return refuse('INSUFFICIENT_SCOPE', 'Only operators of the installation may do this');
    if (access !== 'person' && access !== 'operator') {
      if (standing === null)
        return refuse('INSUFFICIENT_SCOPE', `You are not a member of account ${accountId}`);
      if (!permissionsOf(standing).includes(access)) return noPermission(standing, access);
      const isActive = accountId === null || tables.accounts.get(accountId)?.status === 'active';
      if (!isActive && (standing !== 'operator' || !isRead))
        return refuse('ACCOUNT_DISABLED', 'This account is disabled: an operator can enable it');
    }
    const mustBeConfirmed =
      rule.confirmed === true && !(rule.addsCredential === true && lacksCredential(session));
    return mustBeConfirmed && !sessions.isConfirmed(session) ? notConfirmed() : null;
  }

  /** The caller of a request. The identity is stored even if the request is refused, for the audit log. */
  function authenticate(incoming: RoutedRequest, rule: AccessRule): Caller | Refusal {
    const identity = identify(incoming, rule);
    if (isRefusal(identity)) return identity;
    ofRequest.set(incoming.req, identity);
    const { method } = incoming.req;
    const refusal = refusalOf(identity, rule, method === 'GET' || method === 'HEAD');
    if (refusal !== null) return refusal;
    const caller: Caller = {
      accountId: identity.accountId ?? '',
      // Names the bucket of the rate limit: without a session, that of the client's block of addresses.
      keyId: identity.session?.person.id ?? `console ${callerBlock(incoming.from().address)}`,
      // Keys that people create belong to the account, never to the installation.
      scopes: ['setup', 'marketing', 'transactional'],
      allowIps: [],
      allowFrom: [],
      allowEssential: true,
      strictCompliance: false,
      livemode: true,
    };
    ofCaller.set(caller, identity);
    return caller;
  }

  function identityOfRequest(req: IncomingMessage): Identity | null {
    return ofRequest.get(req) ?? null;
  }

  /** The identity of a caller that `authenticate` returned. */
  function identityOf(caller: Caller): Identity {
    const identity = ofCaller.get(caller);
    if (identity === undefined) throw new Error('the caller is not one of the console');
    return identity;
  }

  /** The session of a caller. Throws for an operation that requires none. */
  function sessionOf(caller: Caller): Session {
    const { session } = identityOf(caller);
    if (session === null) throw new Error('the operation requires a session');
    return session;
  }

  return { authenticate, identityOfRequest, identityOf, sessionOf };
}

function noPermission(standing: Standing, permission: Permission): Refusal {
  const roles = rolesWith(permission);
  const needed = roles.length === 0 ? 'an operator' : roles.join(' or ');
  return refuse(
    'INSUFFICIENT_SCOPE',
    `Your role in this account is ${standing}; this needs ${needed} (permission "${permission}")`,
    {
      details: [
        {
          field: 'X-Id',
          name: permission,
          reason: 'PERMISSION' satisfies ConsoleReason,
          message: `requires ${needed}`,
        },
      ],
    },
  );
}

function notConfirmed(): Refusal {
  return refuse(
    'INSUFFICIENT_SCOPE',
    'Confirm with your passkey or password that it is you; without either, add one',
    {
      details: [
        {
          field: 'session',
          reason: 'REAUTHENTICATION' satisfies ConsoleReason,
          message: 'must be confirmed',
        },
      ],
    },
  );
}
