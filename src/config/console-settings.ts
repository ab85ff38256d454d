import * as z from 'zod';
import { listenOrOff, live, restart, section } from './setting-types.ts';

/* The settings of the web console. */

/** A group of the OpenID Connect provider whose members belong to an account. */
const memberGroup = z.strictObject({
  group: z.string().min(1).max(200),
  account: z.string().min(1).max(100),
  role: z.enum(['owner', 'sender', 'author', 'developer', 'viewer']),
});

const text = z.string().min(1).max(200);

const oidc = section({
  issuer: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .optional()
    .meta(restart('OpenID Connect provider with which people sign in to the console.', 'none')),
  clientId: text.optional().meta(restart('Client id that the provider has assigned.', 'none')),
  clientSecretFile: text
    .optional()
    .meta(restart('File with the client secret.', 'none: a public client with PKCE')),
  name: text.default('Single sign-on').meta(restart('Name of the provider on the sign-in page.')),
  scopes: z
    .array(text)
    .max(20)
    .default(['openid', 'email', 'profile'])
    .meta(restart('Scopes that are requested; some providers send groups only with "groups".')),
  groupsClaim: text
    .default('groups')
    .meta(restart('Claim of the ID token or the user information that lists the groups of the person.')),
  operators: z
    .array(text)
    .max(100)
    .default([])
    .meta(restart('Groups whose members are operators, as long as they belong to them.')),
  members: z
    .array(memberGroup)
    .max(1000)
    .default([])
    .meta(restart('Groups whose members belong to an account: { group, account, role }.')),
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
  listen: listenOrOff
    .default('127.0.0.1:8082')
    .meta(restart('Web console, without TLS: a reverse proxy provides HTTPS; or "off".')),
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .optional()
    .meta(
      restart(
        'Base address of the console, as browsers see it. https, unless the host is this machine.',
        'http://localhost:<port of console.listen>',
      ),
    ),
  trustedProxies: z
    .array(z.string())
    .default([])
    .meta(live('Proxies (address or CIDR) whose X-Forwarded-For is trusted.')),
  failureMail: z
    .boolean()
    .default(true)
    .meta(
      live(
        'Whether the owners of an account get mail when one of its domains or webhooks begins to fail, and when it works again.',
      ),
    ),
  oidc,
});

function isLoopback(issuer: string): boolean {
  return URL.canParse(issuer) && /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(new URL(issuer).hostname);
}
