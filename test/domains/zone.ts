import { DnsError, type DnsErrorCode } from '../../src/dns/dns-error.ts';
import { createDnsView, type DnsView } from '../../src/dns/dns-view.ts';
import type { DnsAnswer, Resolver } from '../../src/dns/resolver.ts';

/**
 * DNS as a table, for checks that are pure over its answers: `{ 'TXT example.com': ['v=spf1 -all'] }`. A name
 * with any record exists; CNAMEs are followed; an error code stands for a question that fails.
 */
export type Zone = Record<string, readonly string[] | DnsErrorCode>;

export function viewOf(zone: Zone): DnsView {
  return createDnsView(resolverOf(zone));
}

export function resolverOf(zone: Zone): Resolver {
  async function ask<T>(type: string, name: string, read: (value: string) => T): Promise<DnsAnswer<T>> {
    const there = zone[`${type} ${name}`];
    if (typeof there === 'string') throw new DnsError(there, `${type} ${name}`, 'as the test says');
    if (there !== undefined) return { records: there.map(read), ttl: 60, authenticated: false };
    const [alias] = zone[`CNAME ${name}`] ?? [];
    if (alias !== undefined && type !== 'CNAME') return ask(type, alias, read);
    const exists = Object.keys(zone).some((key) => key.endsWith(` ${name}`) || key.endsWith(`.${name}`));
    throw new DnsError(exists ? 'ENODATA' : 'ENOTFOUND', `${type} ${name}`, 'no record');
  }
  const nobodyAsks = () => Promise.reject(new Error('no check asks for this'));
  return {
    a: (name) => ask('A', name, String),
    aaaa: (name) => ask('AAAA', name, String),
    cname: (name) => ask('CNAME', name, String),
    ns: (name) => ask('NS', name, String),
    ptr: (name) => ask('PTR', name, String),
    txt: (name) => ask('TXT', name, (value) => value.split('|')),
    mx: (name) =>
      ask('MX', name, (value) => {
        const [preference, exchange = ''] = value.split(' ');
        return { preference: Number(preference), exchange: exchange === '.' ? '' : exchange };
      }),
    soa: nobodyAsks,
    tlsa: nobodyAsks,
    clear: () => {},
    close: () => {},
  };
}
