import { describe, expect, it } from 'vitest';
import { createIds } from '../../../src/core/ids.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { createTokens } from '../../../src/mail/tokens.ts';
import { createRcptPolicy } from '../../../src/smtp/mx/rcpt-policy.ts';
import type { MatchedRoute } from '../../../src/store/inbound/inbound-routes.ts';

const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
const others = createTokens(createSeal(Buffer.alloc(32, 2), systemRandom));
const ids = createIds({ now: () => 1768478400000 }, systemRandom);
const ID = ids.make('msg');

const ROUTE: MatchedRoute = {
  route_id: 'route_one',
  account_id: 'acct_one',
  local: 'support',
  webhook_id: null,
  spam_policy: 'mark',
  domain_status: 'SUCCESS',
  account_status: 'active',
};

let lookups = 0;
const judge = createRcptPolicy(
  {
    domains: {
      isRegistered: (domain) => {
        lookups++;
        return ['example.com', 'xn--bcher-kva.example'].includes(domain);
      },
    },
    messages: { byId: (id) => (id === ID ? { from_address: 'ada@deleted.example' } : null) },
  },
  {
    hostname: 'mx.postrider.example',
    tokens,
    inbound: {
      routeOf: (local, host) =>
        host === 'in.example.com' && local.toLowerCase() === 'support' ? ROUTE : null,
      isInboundHost: (host) => host === 'in.example.com',
    },
  },
);

const BOUNCE = tokens.of('acct_one').returnPath(ID);
const FEEDBACK = tokens.of('acct_one').feedback(ID);
const UNSUBSCRIBE = tokens.of('acct_one').unsubscribe(ID);

describe('the recipient policy', () => {
  it.each([
    ['the return path of a message', `${BOUNCE}@return-a.example.com`, { kind: 'bounce', messageId: ID }],
    ['the same at our own name', `${BOUNCE}@mx.postrider.example`, { kind: 'bounce', messageId: ID }],
    [
      'the same in upper case',
      `${BOUNCE}@return-a.example.com`.toUpperCase(),
      { kind: 'bounce', messageId: ID },
    ],
    ['an internationalized domain', `${BOUNCE}@return-a.bücher.example`, { kind: 'bounce', messageId: ID }],
    ['complaints', `${FEEDBACK}@return-a.example.com`, { kind: 'feedback', messageId: ID }],
    ['opt-outs', `${UNSUBSCRIBE}@return-a.example.com`, { kind: 'unsubscribe', messageId: ID }],
    [
      'the return host of a domain that was deleted since',
      `${BOUNCE}@return-a.deleted.example`,
      { kind: 'bounce', messageId: ID },
    ],
    ['the postmaster of a return host', 'Postmaster@return-a.example.com', { kind: 'postmaster' }],
    ['the postmaster in quotes', '"Postmaster"@mx.postrider.example', { kind: 'postmaster' }],
    ['the same in quotes', `"${BOUNCE}"@return-a.example.com`, { kind: 'bounce', messageId: ID }],
    ['the postmaster of our own name', 'postmaster@mx.postrider.example', { kind: 'postmaster' }],
    ['the postmaster without a host', 'POSTMASTER', { kind: 'postmaster' }],
    ['abuse', 'abuse@mx.postrider.example', { kind: 'abuse' }],
    ["providers' feedback loops", 'fbl@mx.postrider.example', { kind: 'feedback-loop' }],
    ['DMARC reports on a domain', 'dmarc@return-a.example.com', { kind: 'dmarc', domain: 'example.com' }],
    ['DMARC reports on our own name', 'dmarc@mx.postrider.example', { kind: 'dmarc', domain: null }],
    ['the address of an inbound route', 'Support@IN.example.com', { kind: 'inbound', route: ROUTE }],
    ['TLS reports', 'tlsrpt@return-a.example.com', { kind: 'tlsrpt', domain: 'example.com' }],
  ])('accepts %s', (_, address, purpose) => {
    expect(judge(address)).toEqual(purpose);
  });

  it.each([
    ['an unknown name', 'info@mx.postrider.example'],
    ['a token with one character changed', `${lastFlipped(BOUNCE)}@return-a.example.com`],
    [
      'a token that another installation signed',
      `${others.of('acct_one').returnPath(ID)}@return-a.example.com`,
    ],
    ['a token of another purpose', `b-${FEEDBACK.slice('fbl-'.length)}@return-a.example.com`],
    [
      'a token of a resource other than a message',
      `${tokens.of('acct_one').returnPath(ids.make('job'))}@return-a.example.com`,
    ],
    ['a token cut short', `${BOUNCE.slice(0, -2)}@return-a.example.com`],
    ['a prefix alone', 'b-@return-a.example.com'],
    ['feedback loops at a return host', 'fbl@return-a.example.com'],
    ['another name without host', 'abuse'],
  ])('rejects %s', (_, address) => {
    expect(judge(address)).toBe('no-such-address');
  });

  it.each([
    ['another domain', 'ada@example.net'],
    ['a customer, whose own mail is elsewhere', 'info@example.com'],
    ['a token at a host that is not ours', `${BOUNCE}@example.net`],
    ['a token at the return host of an unregistered domain', `${BOUNCE}@return-a.unknown.example`],
    ['a guessed name at the return host of an unregistered domain', 'info@return-a.unknown.example'],
    ['a forged token at one', `${lastFlipped(BOUNCE)}@return-a.unknown.example`],
    ['the postmaster of a domain that was deleted', 'postmaster@return-a.deleted.example'],
    ['a name below ours', 'postmaster@sub.mx.postrider.example'],
    ['a percent hack', 'ada%example.net@example.org'],
  ])('does not relay to %s', (_, address) => {
    expect(judge(address)).toBe('not-ours');
  });
});

describe('database access', () => {
  it.each([
    ['a guessed name at our own name', 'info@mx.postrider.example'],
    ['a forged token at our own name', `${lastFlipped(BOUNCE)}@mx.postrider.example`],
    ['a host that is not ours', `${BOUNCE}@example.net`],
  ])('is not needed for %s', (_, address) => {
    lookups = 0;
    expect(judge(address)).toBeTypeOf('string');
    expect(lookups).toBe(0);
  });
});

function lastFlipped(token: string): string {
  return token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a');
}
