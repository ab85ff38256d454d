import { domainOf, parseMailbox } from '../../mail/address.ts';

/** Where a domain wants its reports (RFC 8460 §3). */
export type ReportTarget =
  | { kind: 'mailto'; address: string; domain: string }
  | { kind: 'https'; url: string };

/** A domain that names more gets its reports at the first ones. */
const MAX_TARGETS = 4;
const MAX_URL_LENGTH = 2048;
const PREFIX = /^v=TLSRPTv1[ \t]*;/;
const RUA = /^rua[ \t]*=[ \t]*(.+)$/s;

/**
 * Parses the TXT records at `_smtp._tls.<domain>`. Empty: the domain wants no reports, because it has no record of this
 * version, several, or none with a usable address.
 */
export function parseReportRecord(records: readonly string[]): ReportTarget[] {
  const [record, ...others] = records.filter((text) => PREFIX.test(text));
  if (record === undefined || others.length > 0) return [];
  const [, uris = ''] =
    record
      .split(';')
      .map((field) => RUA.exec(field.trim()))
      .find((found) => found !== null) ?? [];
  return uris
    .split(',')
    .flatMap((uri) => targetOf(uri.trim()) ?? [])
    .slice(0, MAX_TARGETS);
}

function targetOf(uri: string): ReportTarget | null {
  if (uri.length > MAX_URL_LENGTH || !URL.canParse(uri)) return null;
  const { protocol, username, pathname } = new URL(uri);
  if (protocol === 'https:' && username === '') return { kind: 'https', url: uri };
  if (protocol !== 'mailto:') return null;
  const address = decoded(pathname);
  // Reports go over SMTP without SMTPUTF8.
  if (address === null || !/^[\x21-\x7e]+$/.test(address)) return null;
  if (typeof parseMailbox(address) === 'string') return null;
  return { kind: 'mailto', address, domain: domainOf(address) };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // a malformed percent sequence
  }
}
