import { returnPathDomain } from '../../domains/names.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { Tokens } from '../../mail/tokens.ts';

/** What an accepted recipient is for. */
export type Purpose =
  /** Mail to the envelope sender, complaint or unsubscribe address of this message. */
  | { kind: 'bounce' | 'feedback' | 'unsubscribe'; messageId: string }
  /** Mail for the operator; feedback-loop: `fbl@`, to which providers send complaints about mail of any account. */
  | { kind: 'postmaster' | 'abuse' | 'feedback-loop' }
  /** Reports on a customer's domain; null: on the platform's own name. */
  | { kind: 'dmarc' | 'tlsrpt'; domain: string | null };

export type RcptVerdict = Purpose | 'no-such-address' | 'not-ours';

interface RcptPolicyOptions {
  hostname: string;
  tokens: Pick<Tokens, 'returnPath' | 'feedback' | 'unsubscribe'>;
  /** Whether any account has registered this domain. */
  isRegistered(domain: string): boolean;
  /** The From domain of a message, null when the message no longer exists. */
  senderDomain(messageId: string): string | null;
}

/**
 * The recipients that the MX listener accepts, with their purpose: tokens that this server signed, which identify their
 * message, and a few fixed names for the operator and for reports. All others are rejected before any mail is sent. A
 * guessed address costs one MAC, and one lookup in a small table if its host can be that of a return path. `hostname` is compared in lower case and without a trailing dot.
 */
export function createRcptPolicy(options: RcptPolicyOptions) {
  const { tokens } = options;
  const hostname = options.hostname.toLowerCase().replace(/\.$/, '');

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

  /** `address`: as the client sent it, also `postmaster` without a domain (RFC 5321 §4.1.1.3). Throws what the database throws. */
  return function judge(address: string): RcptVerdict {
    const at = address.lastIndexOf('@');
    if (at < 0)
      return unquoted(address).toLowerCase() === 'postmaster' ? { kind: 'postmaster' } : 'no-such-address';
    const local = unquoted(address.slice(0, at));
    const host = normalizeDomain(address.slice(at + 1)) ?? address.slice(at + 1).toLowerCase();
    const isOwn = host === hostname;
    const domain = isOwn ? null : returnPathDomain(host);
    if (!isOwn && domain === null) return 'not-ours';
    const signed = signedFor(local);
    if (domain === null || options.isRegistered(domain))
      return signed ?? named(local, domain) ?? 'no-such-address';
    // The domain was deleted since: bounces of its messages still arrive.
    const isLate =
      signed !== null && 'messageId' in signed && options.senderDomain(signed.messageId) === domain;
    return isLate ? signed : 'not-ours';
  };
}

/** A quoted local part means the same as without its quotes (RFC 5321 §4.1.2). */
function unquoted(local: string): string {
  return /^"[^"\\]*"$/.test(local) ? local.slice(1, -1) : local;
}
