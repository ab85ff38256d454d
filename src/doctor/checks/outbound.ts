import { isIP, isIPv6 } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { SECOND } from '../../core/clock.ts';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import { addressesOf } from '../../dns/dns-view.ts';
import { isLocalNetwork } from '../../domains/platform/host-checks.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import { connectionProblem, readGreeting } from '../probes/smtp.ts';

const TIMEOUT_MS = 5 * SECOND;
const MAX_SOURCES = 8;

/** Connects to the mail servers of others from each source address. */
export async function examineOutbound(context: DoctorContext): Promise<Result[]> {
  const { routes, egress, port } = context.config.delivery;
  const smartHost = routes.find(({ match }) => match === '*');
  const targets =
    smartHost === undefined
      ? context.config.doctor.mailHosts.map((host) => ({ host, port }))
      : [{ host: smartHost.host, port: smartHost.port }];
  const configured = ownAddresses(egress);
  const sources = configured.length > 0 ? [...new Set(configured)].slice(0, MAX_SOURCES) : [null];
  return Promise.all(sources.map((source) => examineSource(source, targets, context)));
}

/** The addresses in `delivery.egress` that this machine must have; not those of proxies. */
function ownAddresses(egress: Config['delivery']['egress']): string[] {
  return egress.flatMap(({ address, address6, proxy }) =>
    proxy === undefined ? [address, address6].filter((one) => one !== undefined).map(normalizeAddress) : [],
  );
}

/**
 * A failure if no mail server can be reached or the machine lacks the source address; a warning if only some can, or
 * some refuse the address in their greeting. Unknown if no host could be tried. `source`: an address of `delivery.egress`;
 * null: the system chooses.
 */
async function examineSource(
  source: string | null,
  targets: readonly { host: string; port: number }[],
  { view, signal }: DoctorContext,
): Promise<Result> {
  const answers = await Promise.all(
    targets.map(async ({ host, port }) => {
      const found = await addressOf(view, host, source);
      if (found.kind !== 'address') return { host, ...found };
      const { address } = found;
      const localAddress = source ?? undefined;
      return {
        host,
        ...(await readGreeting({ address, port, localAddress, timeoutMs: TIMEOUT_MS, signal })),
      };
    }),
  );
  const hostsWith = (kind: 'absent' | 'unknown') =>
    answers.flatMap((answer) => (answer.kind === kind ? [answer.host] : []));
  const attempts = answers.flatMap((answer) =>
    answer.kind === 'absent' || answer.kind === 'unknown' ? [] : [answer],
  );
  const unresolved = hostsWith('absent');
  const unanswered = hostsWith('unknown');
  const port = targets[0]?.port ?? 25;
  const subject = source === null ? `port ${port}` : `port ${port} from ${source}`;
  if (attempts.length === 0 && unanswered.length > 0)
    return unknown(subject, `Not tested: DNS did not answer for ${unanswered.join(', ')}.`);
  if (attempts.length === 0) {
    const why =
      unresolved.length === 0
        ? 'doctor.mailHosts is empty'
        : `DNS has no address for ${unresolved.join(', ')}`;
    return unknown(subject, `Not tested: ${why}.`, 'doctor.mailHosts = ["gmail-smtp-in.l.google.com"]');
  }
  const reached = attempts.filter(({ kind }) => kind !== 'failed');
  const [first] = attempts;
  const problems = attempts.flatMap((answer) =>
    answer.kind === 'failed' ? [`${answer.host}: ${connectionProblem(answer.code)}`] : [],
  );
  if (attempts.some((answer) => answer.kind === 'failed' && answer.code === 'EADDRNOTAVAIL'))
    return failure(
      subject,
      `No network interface has the source address ${source}, so mail cannot leave from it.`,
      `ip address add ${source}/${source !== null && isIPv6(source) ? 64 : 32} dev eth0, or correct delivery.egress`,
    );
  if (reached.length === 0)
    return failure(
      subject,
      `No mail server can be reached (${problems.join('; ')}): the hosting provider or a firewall blocks outbound port ${port}.`,
      `nc -vz -w 5 ${first?.host ?? ''} ${port}; then ask the hosting provider to open outbound TCP port ${port}`,
    );
  const refused = reached.flatMap((answer) =>
    answer.kind === 'greeting' && answer.code !== 220 ? [`${answer.host}: ${quoted(answer.text)}`] : [],
  );
  if (refused.length > 0)
    return warning(
      subject,
      `Mail servers refuse this address: ${refused.join('; ')}`,
      'Follow the link in the reply; see the findings on reverse DNS and blocklists',
    );
  if (problems.length > 0)
    return warning(subject, `Not every mail server can be reached: ${problems.join('; ')}.`);
  return ok(subject, `${reached.map(({ host }) => host).join(', ')} can be reached.`);
}

/** An address of the family of `source`; without a source IPv4 is preferred. `unknown`: DNS did not answer. */
async function addressOf(
  view: DoctorContext['view'],
  host: string,
  source: string | null,
): Promise<{ kind: 'address'; address: string } | { kind: 'absent' | 'unknown' }> {
  const found =
    isIP(host) === 0 ? await addressesOf(view, host) : { kind: 'records' as const, records: [host] };
  if (found.kind !== 'records') return { kind: found.kind };
  const address = found.records.find((one) => source === null || isIPv6(one) === isIPv6(source));
  return address === undefined ? { kind: 'absent' } : { kind: 'address', address };
}

/**
 * Checks that the machine has the configured source addresses. Failures: a configured address that no interface has, and no
 * known source address. Warnings: a private address, and a public IPv4 one of the machine that DNS does not have and from
 * which the system may send.
 */
export async function examineSources({ config, machine, sources, view }: DoctorContext): Promise<Result[]> {
  const known = (await sources()).map(({ address }) => address);
  const host = known.length === 0 ? await addressesOf(view, config.hostname) : null;
  const lookupFault = host?.kind === 'unknown' ? host.reason : null;
  const configured = ownAddresses(config.delivery.egress);
  const own = machine.addresses();
  const missing = configured.filter((address) => !own.includes(address));
  const results = missing.map((address) =>
    failure(
      address,
      `delivery.egress names ${address}, but no network interface of this machine has it.`,
      `ip address add ${address}/${isIPv6(address) ? 64 : 32} dev eth0`,
    ),
  );
  if (lookupFault !== null)
    results.push(
      unknown(
        'delivery.egress',
        `The source addresses could not be determined: DNS did not answer for the host name (${lookupFault}).`,
      ),
    );
  else if (known.length === 0)
    results.push(
      failure(
        'delivery.egress',
        'No source address of mail is known: the host name has no address in DNS, and delivery.egress names none.',
        '[[delivery.egress]]\nname = "main"\npublicAddress = "<the public address of this server>"',
      ),
    );
  for (const address of known.filter(isLocalNetwork))
    results.push(
      warning(
        address,
        `Mail leaves from the private address ${address}, behind NAT; receivers see another address, which is not checked.`,
        'Set publicAddress in the entry of delivery.egress',
      ),
    );
  // Without configured addresses the system chooses: it may also send from a public address that DNS does not contain.
  // IPv6 is used only from an `address6`.
  if (configured.length === 0 && known.length > 0) {
    const stray = own.filter(
      (address) => !isIPv6(address) && !isLocalNetwork(address) && !known.includes(address),
    );
    for (const address of stray)
      results.push(
        warning(
          address,
          `This machine also has the address ${address}, and the system may send from it; SPF and reverse DNS cover ${known.join(', ')} only.`,
          `[[delivery.egress]]\nname = "main"\naddress = "${known.find((each) => !isIPv6(each)) ?? address}"`,
        ),
      );
  }
  return results.length > 0 ? results : [ok(known.join(', '), 'Mail leaves from these addresses.')];
}
