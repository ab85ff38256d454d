import { addressesOf, type DnsView } from '../dns-view.ts';
import { fail, type Judgement, pass, unknown } from './check.ts';

/**
 * Which host tracked links may name: the domain's own one when it leads to us, so that no recipient ever gets
 * a link that does not work.
 */
export interface TrackingSubject {
  /** Tried first; null when there is none. */
  custom: string | null;
  /** `link.<domain>` */
  usual: string;
  /** `track.<hostname>` */
  target: string;
  /** Whether the host answers over valid HTTPS; null where links are http anyway. */
  answersHttps: ((host: string) => Promise<boolean>) | null;
}

export interface TrackingJudgement extends Judgement {
  /** The host for links, null for the platform's own; undefined: not known, whatever was stays. */
  host: string | null | undefined;
}

/** Judges the host that is wanted; `host` is the best that works. */
export async function checkTracking(view: DnsView, subject: TrackingSubject): Promise<TrackingJudgement> {
  const usual = checkHost(view, subject.usual, subject);
  if (subject.custom === null) {
    const judgement = await usual;
    return { ...judgement, host: hostBy([[subject.usual, judgement]]) };
  }
  const [wanted, fallback] = await Promise.all([checkHost(view, subject.custom, subject), usual]);
  const host = hostBy([
    [subject.custom, wanted],
    [subject.usual, fallback],
  ]);
  const meanwhile = host === null ? "the platform's own address" : host;
  const hint = wanted.verdict === 'fail' ? `${wanted.hint} Until then links use ${meanwhile}.` : wanted.hint;
  return { ...wanted, hint, host };
}

/** The first that passes; undefined as soon as one before it is not known. */
function hostBy(hosts: [string, Judgement][]): string | null | undefined {
  for (const [host, { verdict }] of hosts) {
    if (verdict === 'unknown') return undefined;
    if (verdict === 'pass') return host;
  }
  return null;
}

async function checkHost(
  view: DnsView,
  host: string,
  { target, answersHttps }: TrackingSubject,
): Promise<Judgement> {
  const [alias, addresses, ours] = await Promise.all([
    view.cname(host),
    addressesOf(view, host),
    addressesOf(view, target),
  ]);
  const unsure = [alias, addresses, ours].find((answer) => answer.kind === 'unknown');
  if (unsure) return unknown(unsure.why);
  const found =
    alias.kind === 'records'
      ? `CNAME ${alias.records[0]}`
      : addresses.kind === 'records'
        ? addresses.records.join('\n')
        : null;
  if (found === null) return fail(null, `There is no record at ${host}. Publish: CNAME ${target}`);
  const pointsHere = alias.kind === 'records' && alias.records.includes(target);
  if (ours.kind !== 'records') {
    return pointsHere
      ? fail(
          found,
          `The CNAME is right, but ${target} has no address yet: the operator of this platform must publish the records of "postrider zone".`,
        )
      : fail(found, `${host} does not lead to this platform. Publish: CNAME ${target}`);
  }
  // By address, so that a longer chain, or a zone that cannot hold the CNAME, may lead here too.
  const reached =
    addresses.kind === 'records' && addresses.records.some((address) => ours.records.includes(address));
  if (!pointsHere && !reached)
    return fail(found, `${host} does not lead to this platform. Publish: CNAME ${target}`);
  if (answersHttps !== null && !(await answersHttps(host))) {
    return fail(
      found,
      `${host} leads here, but does not answer over HTTPS with a valid certificate for that name: have the proxy in front obtain one, or verify again in a minute where this platform does that by itself.`,
    );
  }
  return pass(found);
}
