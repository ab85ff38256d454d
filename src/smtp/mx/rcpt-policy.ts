import { LRUCache } from 'lru-cache';
import { type Clock, SECOND } from '../../core/clock.ts';
import { returnPathDomain } from '../../domains/names.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { Tokens } from '../../mail/tokens.ts';

/**
 * Which recipients the MX listener accepts, and what for. A token that this server signed names its message; a few
 * names are for people and for reports; everything else is refused before any mail is sent. The local part is
 * checked first, so that guessed addresses cost one MAC and no database access.
 */
export type Purpose =
  /** Came back to the envelope sender, or to the address for complaints, of this message. */
  | { kind: 'bounce' | 'feedback' | 'unsubscribe'; messageId: string }
  /** For the operator; and `fbl@`, to which providers send complaints about everyone's mail. */
  | { kind: 'postmaster' | 'abuse' | 'loop' }
  /** Reports on a customer's domain; null: on the platform's own name. */
  | { kind: 'dmarc' | 'tlsrpt'; domain: string | null };

export type RcptVerdict = Purpose | 'no-such-address' | 'not-ours';

export interface RcptPolicy {
  /** `address` as the client gave it, `postmaster` without domain too (RFC 5321 §4.1.1.3). Throws with the database. */
  judge(address: string): RcptVerdict;
}

export interface RcptPolicySettings {
  clock: Clock;
  hostname: string;
  tokens: Pick<Tokens, 'returnPath' | 'feedback' | 'unsubscribe'>;
  /** Whether any account has registered this domain. */
  isRegistered(domain: string): boolean;
  /** The From domain of a message, null when there is no such message any more. */
  senderDomain(messageId: string): string | null;
}

/** Whether a domain is registered is remembered this long, for this many domains. */
const DOMAIN_MEMORY_MS = 10 * SECOND;
const DOMAINS_REMEMBERED = 1000;

export function createRcptPolicy(settings: RcptPolicySettings): RcptPolicy {
  const { tokens, hostname } = settings;
  const registered = new LRUCache<string, { is: boolean; at: number }>({ max: DOMAINS_REMEMBERED });

  function isRegistered(domain: string): boolean {
    const now = settings.clock.now();
    const known = registered.get(domain);
    if (known !== undefined && Math.abs(now - known.at) < DOMAIN_MEMORY_MS) return known.is;
    const is = settings.isRegistered(domain);
    registered.set(domain, { is, at: now });
    return is;
  }

  function signedFor(local: string): Purpose | null {
    const kinds = { bounce: tokens.returnPath, feedback: tokens.feedback, unsubscribe: tokens.unsubscribe };
    for (const kind of ['bounce', 'feedback', 'unsubscribe'] as const) {
      const id = kinds[kind].read(local);
      if (id?.startsWith('msg_')) return { kind, messageId: id };
    }
    return null;
  }

  /** `domain` null: at the platform's own name. */
  function named(local: string, domain: string | null): Purpose | null {
    switch (local.toLowerCase()) {
      case 'postmaster':
        return { kind: 'postmaster' };
      case 'abuse':
        return { kind: 'abuse' };
      case 'fbl':
        return domain === null ? { kind: 'loop' } : null;
      case 'dmarc':
        return { kind: 'dmarc', domain };
      case 'tlsrpt':
        return { kind: 'tlsrpt', domain };
      default:
        return null;
    }
  }

  return {
    judge: (address) => {
      const at = address.lastIndexOf('@');
      if (at < 0) return address.toLowerCase() === 'postmaster' ? { kind: 'postmaster' } : 'no-such-address';
      const local = address.slice(0, at);
      const host = normalizeDomain(address.slice(at + 1)) ?? address.slice(at + 1).toLowerCase();
      const isOwn = host === hostname;
      const domain = isOwn ? null : returnPathDomain(host);
      if (!isOwn && domain === null) return 'not-ours';
      const signed = signedFor(local);
      const purpose = signed ?? named(local, domain);
      if (purpose === null) return 'no-such-address';
      if (domain === null || isRegistered(domain)) return purpose;
      // A domain that was deleted since: what was sent in its name still comes back.
      const isLate =
        signed !== null && 'messageId' in signed && settings.senderDomain(signed.messageId) === domain;
      return isLate ? signed : 'not-ours';
    },
  };
}
