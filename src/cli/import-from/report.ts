import type { DnsRecord } from '../../domains/dns-record.ts';
import type { MoveResult, MoveStatus } from '../../moves/move.ts';
import type { ExportFile } from '../../moves/read.ts';
import { domainRecordTable } from '../domains/record-output.ts';

/* What an import from another provider did, as text and as JSON. */

export interface MoveReport {
  title: string;
  accountId: string;
  dryRun: boolean;
  files: readonly ExportFile[];
  result: MoveResult;
  /** Of the domains that were created, by id. */
  records: ReadonlyMap<
    string,
    { dnsRecords: readonly DnsRecord[]; recommendedDnsRecords: readonly DnsRecord[] }
  >;
}

export function movedJson({ title, accountId, dryRun, files, result, records }: MoveReport) {
  return {
    provider: title,
    accountId,
    dryRun,
    changed: hasChanged(result),
    files: files.map(({ file, kind, entries }) => ({ file, kind, entries })),
    ...result,
    domains: result.domains.map((domain) => ({ ...domain, ...records.get(domain.domainId ?? '') })),
  };
}

export function movedLines(report: MoveReport): string[] {
  const { dryRun, files, result, records } = report;
  const { suppressions, domains, groups, contacts, templates, webhooks } = result;
  const created = domains.filter(({ status }) => status === 'created');
  return [
    ...files.map(({ file, kind, entries }) => `${file}: ${entries.toLocaleString('en')} ${kind}`),
    ...(suppressions === null
      ? []
      : ['', `Suppressions: ${counts(suppressions, ['rows', 'created', 'unchanged', 'rejected'])}`]),
    ...rejectedLines(suppressions?.rejectedRows),
    ...section('Domains', domains, ({ domain, useCaseId, domainId }) =>
      named(`${domain} (${useCaseId})`, domainId),
    ),
    ...section('Subscription groups', groups, ({ name, subscriptionGroupId }) =>
      named(name, subscriptionGroupId),
    ),
    ...(contacts === null ? [] : ['', `Contacts: ${counts(contacts, CONTACT_COUNTS)}`]),
    ...rejectedLines(contacts?.rejectedRows),
    ...section('Templates', templates, ({ name, title, resource, syntax, id, file, line, status }) => {
      const called = name === title ? name : `${name} "${title}"`;
      const form = syntax === null ? '' : ` in ${syntax === 'simple' ? 'the simple syntax' : 'Liquid'}`;
      const place = status === 'rejected' ? ` (${file}, line ${line})` : '';
      return named(`${resource === 'partial' ? 'partial ' : ''}${called}${form}${place}`, id);
    }),
    ...section('Webhooks', webhooks, ({ url, events, webhookId, status }) =>
      named(`${url}${status === 'created' ? `, disabled: ${events.join(', ')}` : ''}`, webhookId),
    ),
    ...webhooks.flatMap(({ url, secret }) =>
      secret === null ? [] : [`  secret of ${url}, which is shown now: ${secret}`],
    ),
    ...webhooks.flatMap(({ url, verificationKey }) =>
      verificationKey === null ? [] : [`  verification key of ${url}: ${verificationKey}`],
    ),
    ...created.flatMap(({ domain, useCaseId, domainId }) => {
      const found = records.get(domainId ?? '');
      return found === undefined
        ? []
        : ['', `DNS records of ${domain} (${useCaseId})`, domainRecordTable(found)];
    }),
    '',
    dryRun
      ? `Dry run: nothing was written${hasChanged(result) ? '' : ', and nothing would change'}`
      : hasChanged(result)
        ? `Imported from ${report.title} into ${report.accountId}`
        : 'Nothing has changed: the account has all of it',
  ];
}

/** Whether something was not moved, or needs a decision. */
export function needsAttention({
  suppressions,
  domains,
  groups,
  contacts,
  templates,
  webhooks,
}: MoveResult): boolean {
  return (
    (suppressions?.rejected ?? 0) + (contacts?.rejected ?? 0) > 0 ||
    [...domains, ...groups, ...templates, ...webhooks].some(({ status }) => status === 'rejected')
  );
}

function hasChanged({ suppressions, domains, groups, contacts, templates, webhooks }: MoveResult): boolean {
  const { created = 0, updated = 0, subscribed = 0, suppressed = 0 } = contacts ?? {};
  return (
    (suppressions?.created ?? 0) + created + updated + subscribed + suppressed > 0 ||
    [...domains, ...groups, ...templates, ...webhooks].some(({ status }) => status === 'created')
  );
}

const CONTACT_COUNTS = [
  'rows',
  'created',
  'updated',
  'unchanged',
  'rejected',
  'subscribed',
  'optedOut',
  'suppressed',
  'unconfirmed',
] as const;
const WORDS: Readonly<Record<string, string>> = {
  subscribed: 'new memberships',
  optedOut: 'memberships of people who left',
  suppressed: 'newly suppressed',
  unconfirmed: 'unconfirmed memberships left out',
};

function counts<Name extends string>(
  counted: Readonly<Record<Name, number>>,
  names: readonly Name[],
): string {
  return names
    .filter((name) => name === 'rows' || counted[name] > 0)
    .map((name) => `${counted[name].toLocaleString('en')} ${WORDS[name] ?? name}`)
    .join(', ');
}

/** Rejected rows in the text output. */
const SHOWN = 10;

function rejectedLines(rows: readonly { file: string; line: number; reason: string }[] = []): string[] {
  return rows.slice(0, SHOWN).map(({ file, line, reason }) => `  ${file}, line ${line}: ${reason}`);
}

function named(name: string, id: string | null): string {
  return id === null ? name : `${name}  ${id}`;
}

interface Row {
  status: MoveStatus;
  notes: readonly string[];
  faults?: readonly { field: string; line: number; construct: string; reason: string }[];
}

function section<One extends Row>(
  heading: string,
  rows: readonly One[],
  describe: (row: One) => string,
): string[] {
  if (rows.length === 0) return [];
  return [
    '',
    heading,
    ...rows.flatMap((row) => [
      `  ${row.status.padEnd(8)}  ${describe(row)}`,
      ...row.notes.map((note) => `            ${note}`),
      ...(row.faults ?? []).map(
        ({ field, line, construct, reason }) => `            ${field}, line ${line}: ${construct} ${reason}`,
      ),
    ]),
  ];
}
