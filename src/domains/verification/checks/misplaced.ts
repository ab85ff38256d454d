import type { DnsView } from '../dns-view.ts';

/**
 * Where a record that is missing may have ended up: the two slips that DNS consoles invite. Asked only after
 * the record was not found at its place.
 */

/**
 * A sentence about the record's whereabouts, '' when there is no trace of it. `looksRight` recognises it.
 */
export async function whereabouts(
  view: DnsView,
  name: string,
  domain: string,
  looksRight: (value: string) => boolean,
): Promise<string> {
  const doubled = `${name}.${domain}`;
  const [elsewhere, alias] = await Promise.all([view.txt(doubled), view.cname(name)]);
  if (elsewhere.kind === 'records' && elsewhere.records.some(looksRight))
    return doubledName(doubled, name, domain);
  if (alias.kind === 'records') {
    return `${name} is a CNAME to ${alias.records[0]}, and there is no such record there: publish it at that name, or replace the CNAME by the record itself.`;
  }
  return '';
}

/** The console appended the zone's name to a name that had it already. */
export function doubledName(doubled: string, name: string, domain: string): string {
  const relative = name === domain ? '@' : name.slice(0, -domain.length - 1);
  return `The record stands at ${doubled}, with the domain twice: this DNS console adds the domain itself, so enter the name as "${relative}".`;
}

/** The zone cut above `name`, when the part of the zone that holds it is served by other name servers. */
export async function delegation(view: DnsView, name: string): Promise<string> {
  const servers = await view.ns(name);
  return servers.kind === 'records'
    ? `${name} is delegated to ${servers.records.join(', ')}: publish the record there, not in the parent zone.`
    : '';
}
