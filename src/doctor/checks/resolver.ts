import { getServers } from 'node:dns';
import { SECOND } from '../../core/clock.ts';
import { DnsError } from '../../dns/dns-error.ts';
import { createResolver, trustsAd } from '../../dns/resolver.ts';
import { parseServer } from '../../dns/transport.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, unknown, warning } from '../finding.ts';

/** Servers that are examined. */
const MAX_SERVERS = 4;
const TIMEOUT_MS = 4 * SECOND;
const SLOW_MS = 300;
/** The root zone is signed, and every resolver has its records. */
const SIGNED_NAME = '.';

export async function examineResolvers(context: DoctorContext): Promise<Result[]> {
  const { resolvers } = context.config.dns;
  const servers = (resolvers.length > 0 ? resolvers : getServers()).slice(0, MAX_SERVERS);
  if (servers.length === 0)
    return [failure('dns.resolvers', 'No DNS server is configured.', 'dns.resolvers = ["127.0.0.1"]')];
  return (await Promise.all(servers.map((server) => examineServer(server, context)))).flat();
}

/**
 * A server that does not answer, or answers for names that do not exist, is a failure. No validation of DNSSEC and a
 * median time of lookups of 300 ms or more are warnings.
 */
async function examineServer(
  server: string,
  { random, monotonic, signal, config }: DoctorContext,
): Promise<Result[]> {
  const resolver = createResolver({
    resolvers: [server],
    timeoutMs: TIMEOUT_MS,
    trustAd: 'always',
    monotonic,
    random,
  });
  const times: number[] = [];
  const timed = async <T>(lookup: Promise<T>): Promise<T | DnsError> => {
    const began = monotonic.now();
    try {
      const answer = await lookup;
      times.push(monotonic.now() - began);
      return answer;
    } catch (error) {
      if (!(error instanceof DnsError)) throw error;
      if (error.absent) times.push(monotonic.now() - began);
      return error;
    }
  };
  try {
    const label = `doctor-${random.bytes(8).toString('hex')}`;
    // Name servers that rewrite answers do so for names that look like web sites; "invalid" never exists (RFC 6761 §6.4).
    const names = [`www.${label}.com`, `${label}.invalid`];
    const root = await timed(resolver.ns(SIGNED_NAME, { signal }));
    const answers = await Promise.all(names.map((name) => timed(resolver.a(name, { signal }))));
    const latencyMs = times.sort((one, two) => one - two)[times.length >> 1];
    if (latencyMs === undefined)
      return [failure(server, 'The DNS server does not answer, or cannot resolve anything.', OWN_RESOLVER)];
    const results: Result[] = [];
    const report = (status: typeof warning, reason: string) =>
      results.push(status(server, reason, OWN_RESOLVER));
    const forged = answers.flatMap((answer) => (answer instanceof DnsError ? [] : answer.records));
    if (!answers.some((answer) => !(answer instanceof DnsError) || answer.absent))
      report(unknown, 'It gave no answer for names that do not exist.');
    else if (forged.length > 0)
      report(
        failure,
        `It answers ${[...new Set(forged)].join(', ')} for names that do not exist, so mail to misspelled domains never bounces and blocklists list every address.`,
      );
    if (!(root instanceof DnsError) && !root.authenticated)
      report(
        warning,
        'It does not validate DNSSEC (no AD flag in the answer for a signed name), so forged answers are not detected.',
      );
    if (latencyMs >= SLOW_MS)
      report(warning, `A lookup takes ${Math.round(latencyMs)} ms; each delivery needs several.`);
    if (root instanceof DnsError)
      report(
        unknown,
        'It did not answer the query for the root zone, which is signed: whether it validates DNSSEC is not known.',
      );
    const time = `${latencyMs < 1 ? '<1' : Math.round(latencyMs)} ms`;
    const trust = trustsAd(config.dns.trustAd, parseServer(server))
      ? ''
      : ' Its validation is not trusted (dns.trustAd), so TLSA records of mail servers do not apply.';
    return results.length > 0 ? results : [ok(server, `Answers in ${time} and validates DNSSEC.${trust}`)];
  } finally {
    resolver.close();
  }
}

export const OWN_RESOLVER = 'apt install unbound, then set dns.resolvers = ["127.0.0.1"]';
