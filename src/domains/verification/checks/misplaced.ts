import type { DnsView } from '../../../dns/dns-view.ts';

/* Finds a missing record at the names where DNS consoles publish it by mistake. */

/** A hint on where the record is; '' when it is not found. `isMatch`: whether a TXT value is the record. */
export async function findMisplaced(
  view: DnsView,
  name: string,
  domain: string,
  isMatch: (value: string) => boolean,
): Promise<string> {
  const doubled = `${name}.${domain}`;
  const [elsewhere, alias] = await Promise.all([view.txt(doubled), view.cname(name)]);
  if (elsewhere.kind === 'records' && elsewhere.records.some(isMatch))
    return doubledNameHint(doubled, name, domain);
  if (alias.kind === 'records') {
    return `${name} is a CNAME to ${alias.records[0]}, which has no such record: publish it at that name, or replace the CNAME with the record itself.`;
  }
  return '';
}

/** The console appended the domain to a name that already ended with it. */
export function doubledNameHint(doubled: string, name: string, domain: string): string {
  const relative = name === domain ? '@' : name.slice(0, -domain.length - 1);
  return `The record is at ${doubled}, with the domain twice: this DNS console appends the domain itself, so enter the name as "${relative}".`;
}

/** A hint when `name` is delegated to other name servers, else ''. */
export async function findDelegation(view: DnsView, name: string): Promise<string> {
  const servers = await view.ns(name);
  return servers.kind === 'records'
    ? `${name} is delegated to ${servers.records.join(', ')}: publish the record there, not in the parent zone.`
    : '';
}
