import { createHash } from 'node:crypto';

/*
 * The MTA-STS policy (RFC 8461) of the domains' return paths, whose MX host is the platform. One policy is served for all of
 * them, and its id is in one record of the platform's zone, to which the record of each domain is an alias (RFC 8461 §8.2).
 */

/** The settings that determine the policy. */
export interface StsPolicyOptions {
  hostname: string;
  public: { tls?: { listen: string } };
  mx?: { tls: { certificateFile?: string | undefined } };
}

export interface ServedStsPolicy {
  /** The content of `/.well-known/mta-sts.txt`. */
  text: string;
  /** Changes with the policy. */
  id: string;
}

/** A week: the least that RFC 8461 §3.2 suggests. */
const MAX_AGE_SECONDS = 604_800;

/**
 * Null without `public.tls`: no policy is served then. Senders deliver only to a
 * certificate of a trusted authority, so the policy is in testing mode while the MX listener uses a generated one.
 */
export function stsPolicyOf({ hostname, public: pages, mx }: StsPolicyOptions): ServedStsPolicy | null {
  if (pages.tls === undefined || pages.tls.listen === 'off') return null;
  const mode = mx?.tls.certificateFile === undefined ? 'testing' : 'enforce';
  const lines = ['version: STSv1', `mode: ${mode}`, `mx: ${hostname}`, `max_age: ${MAX_AGE_SECONDS}`];
  const text = lines.map((line) => `${line}\r\n`).join('');
  // RFC 8461 §3.1: at most 32 letters and digits.
  return { text, id: createHash('sha256').update(text).digest('hex').slice(0, 20) };
}
