import { readFileSync } from 'node:fs';
import { HOUR, MINUTE, SECOND } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { isForbidden, isLoopback, literalAddress } from '../dns/address-kinds.ts';
import { createConnector } from '../dns/connector.ts';
import { createHttpClient } from '../dns/http-client.ts';
import type { Resolver } from '../dns/resolver.ts';
import { parseMailbox } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import type { MemberRole, PersonRow } from '../store/people/people.ts';
import type { Tables } from '../store/tables.ts';
import type { Configuration, CustomFetch } from './oidc-library.ts';
import { clearCredentials, MAX_MEMBERSHIPS, MAX_PEOPLE, newPerson } from './person.ts';
import { ROLES } from './roles.ts';
import { openState, sealState } from './sealed-state.ts';

export interface OidcSettings {
  issuer?: string | undefined;
  clientId?: string | undefined;
  clientSecretFile?: string | undefined;
  name: string;
  scopes: readonly string[];
  groupsClaim: string;
  operators: readonly string[];
  members: readonly { group: string; account: string; role: MemberRole }[];
}

type OidcContext = Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'seal'>;

/** For a whole request to the provider. */
const PROVIDER_TIMEOUT_MS = 10 * SECOND;
/** Duration of a sign-in at the provider. */
export const OIDC_STATE_MS = 10 * MINUTE;
/** Time after which the provider's metadata are read again. */
const METADATA_MS = HOUR;
const TIMEOUT_SECONDS = PROVIDER_TIMEOUT_MS / SECOND;
const SEAL_CONTEXT = 'oidc sign-in';
/** Groups of one person that are read. */
const MAX_GROUPS = 1000;

/** What the browser stores while it is at the provider. */
interface SignIn {
  state: string;
  nonce: string;
  verifier: string;
}

/** What the provider states about a person. */
interface Profile {
  issuer: string;
  subject: string;
  email: string;
  /** Null: the provider does not state it. */
  isEmailVerified: boolean | null;
  name: string;
  groups: ReadonlySet<string>;
}

function readSecret(file: string): string {
  const secret = readFileSync(file, 'utf8').trim();
  if (secret === '') throw new Error(`console.oidc.clientSecretFile: ${file} is empty`);
  return secret;
}

/**
 * Sign-in with an OpenID Connect provider: authorization code with PKCE (RFC 7636), state and nonce. The groups of the
 * person decide the roles at each sign-in. Roles of invitations stay. Sends nothing yet: the library is loaded, the
 * secret file read and the provider's metadata requested with the first sign-in, then again after an hour or a failure.
 * Without a provider `begin` and `finish` reject.
 */
export function createOidc(
  context: OidcContext,
  {
    settings,
    resolver,
    callback,
  }: {
    settings: OidcSettings;
    resolver: Resolver;
    /** The address to which the provider sends the browser. */
    callback(): string;
  },
) {
  const { writer, clock, seal } = context;
  const { issuer, clientId } = settings;
  const http = createProviderHttp(resolver);
  let known: { provider: Promise<Configuration>; until: number } | null = null;

  async function discover(): Promise<Configuration> {
    if (issuer === undefined || clientId === undefined) throw new Error('no provider is configured');
    const client = await import('./oidc-library.ts');
    const { clientSecretFile } = settings;
    const secret = clientSecretFile === undefined ? null : readSecret(clientSecretFile);
    const provider = await client.discovery(
      new URL(issuer),
      clientId,
      undefined,
      secret === null ? client.None() : client.ClientSecretPost(secret),
      {
        timeout: TIMEOUT_SECONDS,
        [client.customFetch]: http.fetch,
        // The settings allow http on this machine only.
        execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
      },
    );
    provider.timeout = TIMEOUT_SECONDS;
    return provider;
  }

  function provider(): Promise<Configuration> {
    if (known !== null && known.until > clock.now()) return known.provider;
    const found = discover();
    known = { provider: found, until: clock.now() + METADATA_MS };
    found.catch(() => {
      known = null;
    });
    return found;
  }

  return {
    /** Name of the provider; null: none is configured. */
    name: issuer === undefined ? null : settings.name,
    /**
     * Where the browser is sent, and the state that its cookie stores until it returns. Rejects when the provider
     * fails.
     */
    begin: async (): Promise<{ location: string; state: string }> => {
      const client = await import('./oidc-library.ts');
      const verifier = client.randomPKCECodeVerifier();
      const state = client.randomState();
      const nonce = client.randomNonce();
      const location = client.buildAuthorizationUrl(await provider(), {
        redirect_uri: callback(),
        scope: settings.scopes.join(' '),
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
      });
      const stored = Buffer.from(JSON.stringify({ state, nonce, verifier } satisfies SignIn));
      const sealed = sealState(seal, stored, SEAL_CONTEXT, clock.now() + OIDC_STATE_MS);
      return { location: location.href, state: sealed.toString('base64url') };
    },
    /** The id of the person who returned to `address`. Rejects when the provider fails or the response is not valid. */
    finish: async (address: URL, state: string): Promise<string | Refusal> => {
      const opened = openState(seal, Buffer.from(state, 'base64url'), SEAL_CONTEXT, clock.now());
      if (opened === null) return refuse('REQUEST_TIMEOUT', 'The sign-in took too long: begin again');
      // Sound: `begin` sealed it.
      const stored = JSON.parse(opened.toString()) as SignIn;
      const profile = await readProfile(await provider(), address, stored, settings.groupsClaim);
      if (isRefusal(profile)) return profile;
      const applied = await writer.run((tx) => applyProfile(context, settings, tx, profile));
      if (isRefusal(applied)) return applied;
      return applied.hasAccess ? applied.personId : noAccess();
    },
    /** Ends the requests to the provider, which reject. */
    close: http.close,
  };
}

export type Oidc = ReturnType<typeof createOidc>;

/** Exchanges the code; verifies the ID token. */
async function readProfile(
  provider: Configuration,
  address: URL,
  { state, nonce, verifier }: SignIn,
  groupsClaim: string,
): Promise<Profile | Refusal> {
  const client = await import('./oidc-library.ts');
  const tokens = await client.authorizationCodeGrant(provider, address, {
    pkceCodeVerifier: verifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  const token = tokens.claims();
  if (token === undefined) throw new Error('the provider sent no ID token');
  const needsMore = token[groupsClaim] === undefined || token['email'] === undefined;
  const more =
    needsMore && provider.serverMetadata().userinfo_endpoint !== undefined
      ? await client.fetchUserInfo(provider, tokens.access_token, token.sub)
      : {};
  const claims: Record<string, unknown> = { ...more, ...token };
  // What is stated about another address does not count.
  const ofEmail: Record<string, unknown> = token['email'] === undefined ? more : token;
  const isVerified = ofEmail['email_verified'];
  const mailbox = parseMailbox(typeof claims['email'] === 'string' ? claims['email'] : '');
  if (typeof mailbox === 'string')
    return refuse('UNAUTHENTICATED', 'The provider sent no mail address: request the scope "email"');
  const groups = claims[groupsClaim];
  return {
    issuer: token.iss,
    subject: token.sub,
    email: mailbox.address,
    isEmailVerified: typeof isVerified === 'boolean' ? isVerified : null,
    name: typeof claims['name'] === 'string' ? claims['name'].slice(0, 100).replaceAll(/\p{Cc}/gu, '') : '',
    groups: new Set(
      (Array.isArray(groups) ? groups.slice(0, MAX_GROUPS) : [groups]).filter(
        (group): group is string => typeof group === 'string',
      ),
    ),
  };
}

/**
 * Finds or creates the person and sets the roles of the groups. That a person has lost all access is not a refusal: the
 * unit of work of a refusal is rolled back, and the roles would stay.
 */
function applyProfile(
  { clock, ids }: OidcContext,
  settings: OidcSettings,
  tx: Tables,
  profile: Profile,
): { personId: string; hasAccess: boolean } | Refusal {
  const roles = rolesOf(settings, tx, profile.groups);
  const isOperator = settings.operators.some((group) => profile.groups.has(group));
  const found = findPerson(tx, profile, clock.now());
  if (isRefusal(found)) return found;
  if (found === null && !isOperator && roles.size === 0) return noAccess();
  if (found?.status === 'disabled')
    return refuse('UNAUTHENTICATED', 'This person is disabled: an operator can enable them');
  if (found === null && tx.people.count() >= MAX_PEOPLE)
    return refuse('LIMIT_REACHED', `An installation has at most ${MAX_PEOPLE} people`);
  const now = clock.now();
  const person = found ?? newPerson(ids.make('person'), profile.email, profile.name, now);
  if (found === null) tx.people.insert(person);
  tx.identities.put(profile.issuer, profile.subject, person.person_id);
  const updated = withOperator(person, isOperator);
  tx.people.update({ ...updated, updated_at: now });
  setRoles(tx, person.person_id, roles, now);
  const hasAccess = updated.operator === 1 || tx.memberships.ofPerson(person.person_id, 1).length > 0;
  return { personId: person.person_id, hasAccess };
}

/** The highest role of the groups in each account that exists. */
function rolesOf(
  { members }: OidcSettings,
  tx: Tables,
  groups: ReadonlySet<string>,
): Map<string, MemberRole> {
  const roles = new Map<string, MemberRole>();
  for (const { group, account, role } of members) {
    if (!groups.has(group) || tx.accounts.get(account) === null) continue;
    const other = roles.get(account);
    if (other === undefined || ROLES.indexOf(role) < ROLES.indexOf(other)) roles.set(account, role);
  }
  return roles;
}

/**
 * The person of the profile; null: a new one, whose address may be unverified unless the provider states so. An existing
 * person with the verified address is taken over: others may have created them, so all credentials and sessions are removed.
 * One who has signed in with this provider is not: there, an address can belong to another person later, only the subject
 * never changes (OpenID Connect Core 1.0 §5.7).
 */
function findPerson(tx: Tables, profile: Profile, now: number): PersonRow | null | Refusal {
  const linked = tx.identities.find(profile.issuer, profile.subject);
  if (linked !== null) return tx.people.get(linked);
  const known = tx.people.byEmail(profile.email.toLowerCase());
  if (known === null)
    return profile.isEmailVerified === false
      ? refuse('UNAUTHENTICATED', `The provider has not verified ${profile.email}: verify it there`)
      : null;
  if (profile.isEmailVerified !== true)
    return refuse(
      'UNAUTHENTICATED',
      `${profile.email} is known here, and the provider has not verified the address: sign in with a link`,
    );
  if (tx.identities.has(known.person_id, profile.issuer))
    return refuse(
      'UNAUTHENTICATED',
      `${profile.email} has signed in as another person of the provider: "postrider operator link ${profile.email} --recover" permits this one`,
    );
  return clearCredentials(tx, { ...known, updated_at: now });
}

function withOperator(person: PersonRow, isOperator: boolean): PersonRow {
  if (isOperator) return person.operator === 1 ? person : { ...person, operator: 1, operator_by_group: 1 };
  return person.operator_by_group === 1 ? { ...person, operator: 0, operator_by_group: 0 } : person;
}

/** Sets the roles of groups; those of invitations stay. */
function setRoles(tx: Tables, personId: string, roles: Map<string, MemberRole>, now: number): void {
  for (const { account_id, source } of tx.memberships.ofPerson(personId, MAX_MEMBERSHIPS))
    if (source === 'group' && !roles.has(account_id)) tx.memberships.remove(personId, account_id);
  for (const [accountId, role] of roles) {
    if (tx.memberships.get(personId, accountId)?.source === 'invitation') continue;
    tx.memberships.put({
      person_id: personId,
      account_id: accountId,
      role,
      source: 'group',
      created_at: now,
    });
  }
}

function noAccess(): Refusal {
  return refuse(
    'INSUFFICIENT_SCOPE',
    'None of your groups has access to the console: see console.oidc in the configuration',
  );
}

/** Requests to the OpenID Connect provider: follows no redirect. */
interface ProviderHttp {
  /** Replaces `fetch` in the library. Rejects when the response is late or too large. */
  fetch: CustomFetch;
  /** Ends the requests in progress, which reject. */
  close(): Promise<void>;
}

/** Bytes of a response. Tokens with many groups have some ten KiB. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Statuses of responses without a body, for which `Response` accepts none. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Opens no connection until `fetch`, and keeps none open. The endpoints are those of the provider's metadata: link-local
 * addresses are never called, and `http` only on this machine, because the requests contain the client secret.
 */
export function createProviderHttp(resolver: Resolver): ProviderHttp {
  const connect = createConnector({
    resolver,
    timeoutMs: PROVIDER_TIMEOUT_MS,
    maxResponseBytes: 2 * MAX_RESPONSE_BYTES,
    mayConnect: (address) => !isForbidden(address),
  });
  const client = createHttpClient({
    connect,
    timeoutMs: PROVIDER_TIMEOUT_MS,
    maxBodyBytes: MAX_RESPONSE_BYTES,
  });
  return {
    fetch: async (address, { method, headers, body, signal }) => {
      const url = new URL(address);
      if (url.protocol === 'http:' && !isOnThisMachine(url.hostname))
        throw new Error(`the provider's endpoint ${url.origin} must have https`);
      const request = {
        method: method === 'POST' ? ('POST' as const) : ('GET' as const),
        headers,
        body: body instanceof URLSearchParams || typeof body === 'string' ? String(body) : null,
        signal,
      };
      return client.request(url, request, async ({ statusCode, headers: fields, body: content }) => {
        const bytes = await content.arrayBuffer();
        return new Response(WITHOUT_BODY.has(statusCode) ? null : bytes, {
          status: statusCode,
          headers: Object.entries(fields).flatMap(([name, values = []]) =>
            [values].flat().map((value): [string, string] => [name, value]),
          ),
        });
      });
    },
    close: client.close,
  };
}

function isOnThisMachine(hostname: string): boolean {
  const address = literalAddress(hostname);
  return hostname === 'localhost' || (address !== null && isLoopback(address));
}
