import { keyRecordName } from '../../key-record.ts';
import type { DnsView } from '../dns-view.ts';
import { fail, type Judgement } from './check.ts';
import { checkKey, type PublishedKey } from './dkim.ts';

/**
 * Whether the secondary lane's selector leads to its key. The customer publishes a CNAME, the platform's zone
 * the key: the hint says whose part is missing.
 */
export async function checkAltDkim(
  view: DnsView,
  key: PublishedKey | null,
  target: string,
): Promise<Judgement> {
  if (key === null) return fail(null, 'The secondary lane is still being set up; its record follows.');
  const judgement = await checkKey(view, key);
  if (judgement.verdict !== 'fail') return judgement;
  const name = keyRecordName(key);
  const alias = await view.cname(name);
  if (alias.kind === 'records' && alias.records.includes(target)) {
    return fail(
      judgement.found ?? `CNAME ${target}`,
      `The CNAME is right, but its target does not hold the key yet: the operator of this platform must publish the records of "postrider zone".`,
    );
  }
  if (alias.kind === 'records') {
    return fail(
      `CNAME ${alias.records[0]}`,
      `${name} leads to ${alias.records[0]}. Change it to: CNAME ${target}`,
    );
  }
  return judgement.found === null
    ? fail(null, `There is no record at ${name}. Publish: CNAME ${target}`)
    : fail(
        judgement.found,
        `${judgement.hint} Better publish the CNAME to ${target}, which follows every change of the key.`,
      );
}
