import { createLru } from '../../core/lru.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { SessionRecord } from '../worker/protocol.ts';

/**
 * Which MX hosts have replied to this process. Anyone can publish an MX record with a name below a provider's domain at which no
 * mail server listens: what it does must not delay mail to the provider.
 */
export interface HostAnswers {
  record(sessions: readonly Pick<SessionRecord, 'host' | 'phase' | 'reply'>[]): void;
  hasAnswered(host: string): boolean;
  /** Whether it was tried and has never replied. */
  isSilent(host: string): boolean;
}

const MAX_HOSTS = 20_000;
const BEFORE_REPLY: ReadonlySet<SmtpPhase> = new Set(['connect', 'greeting']);

/** In memory only; the hosts that were used least recently are forgotten. */
export function createHostAnswers(): HostAnswers {
  const hosts = createLru<{ hasAnswered: boolean }>(MAX_HOSTS);
  return {
    record: (sessions) => {
      for (const { host, phase, reply } of sessions) {
        // A published TLS policy excludes the host: it was not contacted.
        if (phase === 'dns') continue;
        const known = hosts.get(host);
        const hasAnswered = reply !== null || !BEFORE_REPLY.has(phase);
        if (known === undefined) hosts.set(host, { hasAnswered });
        else if (hasAnswered) known.hasAnswered = true;
      }
    },
    hasAnswered: (host) => hosts.get(host)?.hasAnswered === true,
    isSilent: (host) => hosts.get(host)?.hasAnswered === false,
  };
}
