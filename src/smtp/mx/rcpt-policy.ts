import { returnPathDomain } from '../../domains/names.ts';
import type { Reception } from '../../inbound/reception.ts';
import { domainOf, normalizeDomain } from '../../mail/address.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { MatchedRoute } from '../../store/inbound/inbound-routes.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';

/** What an accepted recipient is for. */
export type Purpose =
  /** Mail to the envelope sender, complaint or unsubscribe address of this message. */
  | { kind: 'bounce' | 'feedback' | 'unsubscribe'; messageId: string }
  /** Mail for the operator; feedback-loop: `fbl@`, to which providers send complaints about mail of any account. */
  | { kind: 'postmaster' | 'abuse' | 'feedback-loop' }
  /** Reports on a customer's domain; null: on the platform's own name. */
  | { kind: 'dmarc' | 'tlsrpt'; domain: string | null };

/** Mail for an account. */
export interface RoutePurpose {
  kind: 'inbound';
  route: MatchedRoute;
}

export type RcptVerdict = Purpose | RoutePurpose | 'no-such-address' | 'not-ours';

/** What the policy reads from the database. */
interface RcptPolicyTables {
  domains: Pick<Tables['domains'], 'isRegistered'>;
  messages: { byId(messageId: string): Pick<MessageRow, 'from_address'> | null };
}

/**
 * The recipients that the MX listener accepts, with their purpose: tokens that this server signed, which identify their
 * message, a few fixed names for the operator and for reports, and the addresses of inbound routes at other hosts. All others are
 * rejected before any mail is sent. A guessed address costs one MAC, and one lookup in a small table if its host can be that of a
 * return path, else two lookups by an index.
 */
export function createRcptPolicy(
  { domains, messages }: RcptPolicyTables,
  {
    hostname,
    tokens,
    inbound,
  }: {
    hostname: string;
    tokens: Pick<Tokens, 'returnPath' | 'feedback' | 'unsubscribe'>;
    inbound: Pick<Reception, 'routeOf' | 'isInboundHost'>;
  },
) {
  function signedFor(local: string): Purpose | null {
    const kinds = { bounce: tokens.returnPath, feedback: tokens.feedback, unsubscribe: tokens.unsubscribe };
    for (const kind of ['bounce', 'feedback', 'unsubscribe'] as const) {
      const id = kinds[kind](local);
      if (id?.startsWith('msg_')) return { kind, messageId: id };
    }
    return null;
  }

  /** `domain` null: an address at the platform's own host name. */
  function named(local: string, domain: string | null): Purpose | null {
    switch (local.toLowerCase()) {
      case 'postmaster':
        return { kind: 'postmaster' };
      case 'abuse':
        return { kind: 'abuse' };
      case 'fbl':
        return domain === null ? { kind: 'feedback-loop' } : null;
      case 'dmarc':
        return { kind: 'dmarc', domain };
      case 'tlsrpt':
        return { kind: 'tlsrpt', domain };
      default:
        return null;
    }
  }

  function routed(local: string, host: string): RcptVerdict {
    const route = inbound.routeOf(local, host);
    // An address that this server signed is never one of a route: its mail is about a message, also at the former name of the server.
    if (route !== null) return signedFor(local) ?? { kind: 'inbound', route };
    return inbound.isInboundHost(host) ? 'no-such-address' : 'not-ours';
  }

  /** `address`: as the client sent it, also `postmaster` without a domain (RFC 5321 §4.1.1.3). Throws what the database throws. */
  return function judge(address: string): RcptVerdict {
    const at = address.lastIndexOf('@');
    if (at < 0)
      return unquoted(address).toLowerCase() === 'postmaster' ? { kind: 'postmaster' } : 'no-such-address';
    const local = unquoted(address.slice(0, at));
    const host = normalizeDomain(address.slice(at + 1)) ?? address.slice(at + 1).toLowerCase();
    const isOwn = host === hostname;
    const domain = isOwn ? null : returnPathDomain(host);
    if (!isOwn && domain === null) return routed(local, host);
    const signed = signedFor(local);
    if (domain === null || domains.isRegistered(domain))
      return signed ?? named(local, domain) ?? 'no-such-address';
    // The domain was deleted since: bounces of its messages still arrive.
    const message = signed !== null && 'messageId' in signed ? messages.byId(signed.messageId) : null;
    return signed !== null && message !== null && domainOf(message.from_address) === domain
      ? signed
      : 'not-ours';
  };
}

/** A quoted local part means the same as without its quotes (RFC 5321 §4.1.2). */
function unquoted(local: string): string {
  return /^"[^"\\]*"$/.test(local) ? local.slice(1, -1) : local;
}
