import { covers, DEFAULT_PROFILE_NAME, type ShapingProfile } from '../../config/shaping.ts';
import { createLru } from '../../core/lru.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { SessionRecord, TargetHost } from '../worker/protocol.ts';

interface FoundProfile {
  profile: ShapingProfile;
  /**
   * Whether the destination or all of its hosts match. Anyone can name a provider's host in an MX record next to another one, whose
   * replies must not count for the provider.
   */
  isWhole: boolean;
  /** Whether the operator named the destination, which its owner cannot change by DNS records. */
  isNamed: boolean;
}

/** Finds the shaping profiles of destinations. `shaping`: read at each use, as a reload replaces it; the last is the default. */
export function createProfiles(options: { readonly shaping: readonly ShapingProfile[] }) {
  /** Routes are cached, so that the same lists come again with every message. */
  let found = new WeakMap<readonly TargetHost[], { destination: string; result: FoundProfile }>();
  let searched = options.shaping;

  const defaultProfile = () => {
    const last = options.shaping.at(-1);
    if (last?.name !== DEFAULT_PROFILE_NAME) throw new Error('the shaping profiles have no default');
    return last;
  };

  /** The first profile of which a pattern matches an MX host or the destination, else the default profile. */
  function of(destination: string, hosts: readonly TargetHost[]): FoundProfile {
    if (searched !== options.shaping) {
      searched = options.shaping;
      found = new WeakMap();
    }
    const known = found.get(hosts);
    if (known?.destination === destination) return known.result;
    const domain = destination.toLowerCase();
    const names = hosts.map(({ name }) => name.toLowerCase());
    const profile =
      searched.find((one) => covers(one, domain) || names.some((name) => covers(one, name))) ??
      defaultProfile();
    const coversDomain = covers(profile, domain);
    const result = {
      profile,
      isWhole: coversDomain || names.every((name) => covers(profile, name)),
      isNamed: coversDomain && profile.origin === 'configuration',
    };
    found.set(hosts, { destination, result });
    return result;
  }

  return {
    of,
    /**
     * Whose refusals of a source address count together: the profile of the destination or, where each customer decides
     * (`shared = false`), its MX hosts. Null: no profile covers the destination, and the provider of its hosts is meant.
     */
    receiverOf: (destination: string, hosts: readonly TargetHost[]): string | null => {
      const { profile, isWhole } = of(destination, hosts);
      if (!isWhole || profile.match.length === 0) return null;
      return profile.shared ? profile.name : hostNames(hosts);
    },
    default: defaultProfile,
  };
}

/** The names of the hosts in one text, whatever their order. */
export function hostNames(hosts: readonly TargetHost[]): string {
  return hosts
    .map(({ name }) => name)
    .toSorted()
    .join(',');
}

const MAX_HOSTS = 20_000;
const BEFORE_REPLY: ReadonlySet<SmtpPhase> = new Set(['connect', 'greeting']);

export type HostAnswers = ReturnType<typeof createHostAnswers>;

/**
 * Which MX hosts have replied to this process. Anyone can publish an MX record with a name below a provider's domain at which no
 * mail server listens: what it does must not delay mail to the provider. In memory only; the hosts that were used least
 * recently are forgotten.
 */
export function createHostAnswers() {
  const hosts = createLru<{ hasAnswered: boolean }>(MAX_HOSTS);
  return {
    record: (sessions: readonly Pick<SessionRecord, 'host' | 'phase' | 'reply'>[]): void => {
      for (const { host, phase, reply } of sessions) {
        // A published TLS policy excludes the host: it was not contacted.
        if (phase === 'dns') continue;
        const known = hosts.get(host);
        const hasAnswered = reply !== null || !BEFORE_REPLY.has(phase);
        if (known === undefined) hosts.set(host, { hasAnswered });
        else if (hasAnswered) known.hasAnswered = true;
      }
    },
    hasAnswered: (host: string): boolean => hosts.get(host)?.hasAnswered === true,
    /** Whether it was tried and has never replied. */
    isSilent: (host: string): boolean => hosts.get(host)?.hasAnswered === false,
  };
}
