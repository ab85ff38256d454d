import type { ZoneRecordType } from '../../../src/dns/zone-record.ts';
import type { DnsBehavior } from '../../support/dns-server.ts';
import { AUTHORITY, type Environment } from './environment.ts';
import type { MailHost } from './hosts.ts';
import type { MtaSts, Zone } from './scenario.ts';

/** The records of a destination with these hosts, which are its MX hosts in their order. */
export function hostRecords(hosts: readonly MailHost[]): Zone {
  const addresses = hosts.map(({ label, address }) => [label, { A: [address] }]);
  if (hosts.length === 0) return {};
  return {
    '@': { MX: hosts.map(({ label }, index) => `${10 * (index + 1)} ${label}`) },
    ...Object.fromEntries(addresses),
  };
}

/** Publishes the MTA-STS policy of a destination with the id 1. */
export function publishPolicy(env: Environment, domain: string, { policy, certificate }: MtaSts): void {
  const policies = env.policyHost();
  announcePolicy(env, domain, '1');
  env.daemon.dns.set(`mta-sts.${domain}`, 'A', [policies.address]);
  const name = `mta-sts.${domain}`;
  if (policy !== null) policies.serve(domain, certificate ?? AUTHORITY.issue([name]), policy);
}

/** Publishes the TXT record that announces the MTA-STS policy of a destination with this id. */
export function announcePolicy({ daemon }: Environment, domain: string, id: string): void {
  daemon.dns.set(`_mta-sts.${domain}`, 'TXT', [`v=STSv1; id=${id};`]);
}

/** Publishes the records of a destination, with the names and targets that are relative to it. */
export function publishZone({ daemon: { dns } }: Environment, domain: string, zone: Zone): void {
  const absolute = (name: string) => {
    if (name === '@') return domain;
    return name.endsWith('.') ? name.slice(0, -1) : `${name}.${domain}`;
  };
  for (const [name, types] of Object.entries(zone)) {
    for (const [type, behavior] of Object.entries(types) as [ZoneRecordType | '*', Zone[string]['A']][]) {
      if (behavior === undefined) continue;
      const target = (value: string | readonly string[]) => {
        if (typeof value !== 'string') return value;
        if (type === 'CNAME') return absolute(value);
        if (type !== 'MX') return value;
        const [preference = '', host = ''] = value.split(' ');
        return `${preference} ${host === '.' ? '.' : absolute(host)}`;
      };
      if (isList(behavior)) dns.set(absolute(name), type, behavior.map(target));
      else if (typeof behavior === 'string') dns.set(absolute(name), type, behavior);
      else dns.set(absolute(name), type, { ...behavior, values: behavior.values.map(target) });
    }
  }
}

/** `Array.isArray` does not narrow read-only arrays. */
function isList(behavior: DnsBehavior | readonly string[]): behavior is readonly string[] {
  return Array.isArray(behavior);
}
