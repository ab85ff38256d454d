import * as z from 'zod';
import { httpUrl, listenOrOff, live, restart, section, trustedProxies } from './setting-types.ts';

/* The settings of the web console. */

/** A group of the OpenID Connect provider whose members belong to an account. */
const memberGroup = z.strictObject({
  group: z.string().min(1).max(200),
  account: z.string().min(1).max(100),
  role: z.enum(['owner', 'sender', 'author', 'developer', 'viewer']),
});

const text = z.string().min(1).max(200);

const oidc = section({
  issuer: restart(
    httpUrl.optional(),
    'OpenID Connect provider with which people sign in to the console.',
    'none',
  ),
  clientId: restart(text.optional(), 'Client id that the provider has assigned.', 'none'),
  clientSecretFile: restart(
    text.optional(),
    'File with the client secret.',
    'none: a public client with PKCE',
  ),
  name: restart(text.default('Single sign-on'), 'Name of the provider on the sign-in page.'),
  scopes: restart(
    z.array(text).max(20).default(['openid', 'email', 'profile']),
    'Scopes that are requested; some providers send groups only with "groups".',
  ),
  groupsClaim: restart(
    text.default('groups'),
    'Claim of the ID token or the user information that lists the groups of the person.',
  ),
  operators: restart(
    z.array(text).max(100).default([]),
    'Groups whose members are operators, as long as they belong to them.',
  ),
  members: restart(
    z.array(memberGroup).max(1000).default([]),
    'Groups whose members belong to an account: { group, account, role }.',
  ),
})
  .refine(
    ({ issuer, clientId }) => (issuer === undefined) === (clientId === undefined),
    'must have both issuer and clientId, or neither',
  )
  .refine(
    ({ issuer }) => issuer === undefined || issuer.startsWith('https:') || isLoopback(issuer),
    'must have an issuer with https',
  );

export const consoleSettings = section({
  listen: restart(
    listenOrOff.default('127.0.0.1:8082'),
    'Web console, without TLS: a reverse proxy provides HTTPS; or "off".',
  ),
  url: restart(
    httpUrl.optional(),
    'Base address of the console, as browsers see it. https, unless the host is this machine.',
    'http://localhost:<port of console.listen>',
  ),
  trustedProxies,
  failureMail: live(
    z.boolean().default(true),
    'Whether the owners of an account get mail when one of its domains or webhooks begins to fail or its mail is limited automatically, and when that ends.',
  ),
  oidc,
});

function isLoopback(issuer: string): boolean {
  return URL.canParse(issuer) && /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(new URL(issuer).hostname);
}
