import { normaliseDomain } from '../mail/address.ts';
import type { Tokens } from '../mail/tokens.ts';

/**
 * Who may be written to on the MX listener, and what for. A token that we signed names its message; a few
 * names are people's and reporters' to use; everything else is refused before anybody sends a byte of mail.
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
  hostname: string;
  tokens: Pick<Tokens, 'returnPath' | 'feedback' | 'unsubscribe'>;
  /** Whether any account has registered this domain. */
  isRegistered(domain: string): boolean;
  /** The From domain of a message, null when there is no such message any more. */
  senderDomain(messageId: string): string | null;
}

const RETURN_PREFIX = 'return-a.';

export function createRcptPolicy(settings: RcptPolicySettings): RcptPolicy {
  const { tokens } = settings;
  const hostname = settings.hostname.toLowerCase().replace(/\.$/, '');

  function signedFor(local: string): Purpose | null {
    const kinds = { bounce: tokens.returnPath, feedback: tokens.feedback, unsubscribe: tokens.unsubscribe };
    for (const kind of ['bounce', 'feedback', 'unsubscribe'] as const) {
      const id = kinds[kind].read(local);
      if (id?.startsWith('msg_')) return { kind, messageId: id };
    }
    return null;
  }

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
      const host = normaliseDomain(address.slice(at + 1)) ?? address.slice(at + 1).toLowerCase();
      const domain = host.startsWith(RETURN_PREFIX) ? host.slice(RETURN_PREFIX.length) : null;
      if (host !== hostname && domain === null) return 'not-ours';
      const signed = signedFor(local);
      if (domain !== null && host !== hostname && !settings.isRegistered(domain)) {
        // A domain that was deleted since: what was sent in its name still comes back.
        const isLate =
          signed !== null && 'messageId' in signed && settings.senderDomain(signed.messageId) === domain;
        return isLate ? signed : 'not-ours';
      }
      return signed ?? named(local, host === hostname ? null : domain) ?? 'no-such-address';
    },
  };
}
