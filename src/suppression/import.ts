import { csvFields, type ImportRecord, type StreamPosition } from '../audience/import/records.ts';
import {
  ADDRESS_COLUMNS,
  foldedColumn,
  type ServiceName,
  suppressionExport,
} from '../audience/import/rows.ts';
import { openCsv } from '../audience/import/source.ts';
import { parseMoment } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import { SUPPRESSION_REASONS, type SuppressionReason } from '../store/suppressions.ts';
import type { SuppressionInput, SuppressionList } from './list.ts';

/*
 * Imports suppressions from the exports of other services (CSV), or from a list of addresses. Rows are added like single
 * suppressions, some at a time, so that they share commits; a file can be imported again.
 */

export const SUPPRESSION_FORMATS = ['auto', 'plain', 'sendgrid', 'mailgun', 'postmark', 'ses'] as const;
export type SuppressionFormat = (typeof SUPPRESSION_FORMATS)[number];

export interface SuppressionImportResult {
  format: Exclude<SuppressionFormat, 'auto'>;
  rows: number;
  created: number;
  unchanged: number;
  rejected: number;
  /** The first MAX_REJECTED. */
  rejectedRows: { line: number; reason: string }[];
}

const MAX_REJECTED = 100;
const ROWS_AT_A_TIME = 100;

/** Rejects when the upload ends early; the rows before that remain. */
export async function importSuppressions(
  suppressions: Pick<SuppressionList, 'add'>,
  accountId: string,
  bytes: AsyncIterable<Buffer>,
  format: SuppressionFormat,
  by: string,
): Promise<SuppressionImportResult | Refusal> {
  const { header, delimiter, recordsAt, close } = await openCsv(bytes);
  try {
    if (header === undefined) return invalid('body', 'is empty');
    if (header.fault !== null) return invalid('body', `the first line ${header.fault}`);
    const names = csvFields(header.text, delimiter).map(foldedColumn);
    const known = format === 'auto' || format === 'plain' ? suppressionExport(names) : format;
    const hasHeader = names.some((name) => ADDRESS_COLUMNS.includes(name));
    if (format !== 'plain' && known !== null && !hasHeader)
      return invalid('body', `the header names no column of addresses (${ADDRESS_COLUMNS.join(', ')})`);
    const chosen = format === 'plain' ? 'plain' : (known ?? 'plain');
    const columns = hasHeader ? names : ['email'];
    const read = ({ line, text, fault }: ImportRecord): SuppressionEntry => {
      if (fault !== null) return { line, fields: fault };
      const values = csvFields(text, delimiter).map((value) => value.trim());
      return { line, fields: new Map(columns.map((name, index) => [name, values[index] ?? ''])) };
    };
    async function* entries(start: StreamPosition): AsyncGenerator<SuppressionEntry[]> {
      if (header !== undefined && !hasHeader) yield [read(header)];
      for await (const records of recordsAt(start)) yield records.map(read);
    }
    const service = chosen === 'plain' ? null : chosen;
    const added = await addSuppressions(suppressions, accountId, entries(header.end), { service, by });
    return isRefusal(added) ? added : { format: chosen, ...added };
  } finally {
    await close();
  }
}

/** An entry of an export: its fields by the folded names of their columns; a string: why it cannot be read. */
export interface SuppressionEntry {
  line: number;
  fields: ReadonlyMap<string, string> | string;
}

/** A service whose exports state a reason in words, or by which fields they have. */
export type SuppressionService = ServiceName | 'resend';

/**
 * Adds the suppressions of an export. `service` null: of a plain list. A refusal, such as of a limit, ends it; entries
 * before that remain. Rejects when `entries` does.
 */
export async function addSuppressions(
  suppressions: Pick<SuppressionList, 'add'>,
  accountId: string,
  entries: AsyncIterable<SuppressionEntry[]>,
  { service, by }: { service: SuppressionService | null; by: string },
): Promise<Omit<SuppressionImportResult, 'format'> | Refusal> {
  const result: Omit<SuppressionImportResult, 'format'> = {
    rows: 0,
    created: 0,
    unchanged: 0,
    rejected: 0,
    rejectedRows: [],
  };
  for await (const some of entries)
    for (let at = 0; at < some.length; at += ROWS_AT_A_TIME) {
      const rows = some.slice(at, at + ROWS_AT_A_TIME);
      const added = await Promise.all(
        rows.map(async ({ fields }) => {
          const input = typeof fields === 'string' ? fields : inputOf(service, fields);
          return typeof input === 'string' ? input : suppressions.add(accountId, input, by);
        }),
      );
      for (const [index, one] of added.entries()) {
        if (isRefusal(one) && one.code !== 'VALIDATION_ERROR') return one;
        result.rows++;
        if (typeof one === 'string' || isRefusal(one)) {
          const reason = typeof one === 'string' ? one : one.message;
          result.rejected++;
          if (result.rejectedRows.length < MAX_REJECTED)
            result.rejectedRows.push({ line: rows[index]?.line ?? 0, reason });
        } else if (one.created) result.created++;
        else result.unchanged++;
      }
    }
  return result;
}

const REASON_COLUMNS = ['suppressionreason', 'type', 'reason'];
const TIME_COLUMNS = [
  'created',
  'createdat',
  'bouncedat',
  'lastupdatetime',
  'lastupdated',
  'lastupdatedtime',
  'time',
];

/** The suppression of an entry, or why it is rejected. */
function inputOf(
  service: SuppressionService | null,
  fields: ReadonlyMap<string, string>,
): SuppressionInput | string {
  const value = (columns: readonly string[]) =>
    columns.map((name) => fields.get(name) ?? '').find((text) => text !== '') ?? '';
  const email = value(ADDRESS_COLUMNS);
  if (email === '') return 'has no address';
  const reason =
    service === null ? plainReason(value(['reason'])) : reasonOf(service, fields, value(REASON_COLUMNS));
  if (!isReason(reason)) return reason;
  const createdAt = timeOf(value(TIME_COLUMNS));
  if (createdAt === null) return 'the time is not one';
  const stream = reason === 'unsubscribe' ? 'mk' : 'all';
  return { email, reason, stream, ...(createdAt === undefined ? {} : { createdAt }) };
}

/** The reason, or why the row is rejected. */
function plainReason(text: string): string {
  if (text === '') return 'manual';
  return isReason(text) ? text : wordReason(text);
}

function reasonOf(service: SuppressionService, fields: ReadonlyMap<string, string>, text: string): string {
  if (service === 'sendgrid') {
    if (fields.has('ip')) return 'complaint';
    if (!fields.has('reason')) return 'unsubscribe';
    return /^4|^[^5]*\b4\.\d\.\d/.test(fields.get('status') ?? '') ? TEMPORARY : 'hard_bounce';
  }
  if (service === 'mailgun') {
    if (fields.has('tags')) return 'unsubscribe';
    if (!fields.has('code') && !fields.has('error')) return 'complaint';
    return (fields.get('code') ?? '').startsWith('4') ? TEMPORARY : 'hard_bounce';
  }
  const reason = wordReason(text);
  // Postmark: the link to unsubscribe.
  return reason === 'manual' && fields.get('origin')?.toLowerCase() === 'recipient' ? 'unsubscribe' : reason;
}

const TEMPORARY = 'is a temporary failure, which suppresses nobody';

function wordReason(text: string): string {
  const word = text.toLowerCase().replaceAll(/[\s_-]/g, '');
  if (/^(?:bounce|hardbounce|bademailaddress|bouncedaddress|permanent|invalid|invalidemail)$/.test(word))
    return 'hard_bounce';
  if (/complaint|spam/.test(word)) return 'complaint';
  if (/unsub|optout/.test(word)) return 'unsubscribe';
  if (word.startsWith('manual')) return 'manual';
  if (/soft|transient|temporary/.test(word)) return TEMPORARY;
  return 'the reason is not known';
}

function isReason(text: string): text is SuppressionReason {
  return (SUPPRESSION_REASONS as readonly string[]).includes(text);
}

/** Seconds or milliseconds since 1970, ISO 8601, or a date of mail; undefined: none, null: it cannot be read. */
function timeOf(text: string): number | null | undefined {
  if (text === '') return undefined;
  if (/^\d{9,10}(?:\.\d{1,9})?$/.test(text)) return Math.floor(Number(text) * 1000);
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const moment = parseMoment(
    text
      .replace(/ (?:UTC|GMT|Z)$/, 'Z')
      .replace(/(?<=\d)$/, /\d:\d\d/.test(text) && !/[+-]\d\d:?\d\d$/.test(text) ? 'Z' : ''),
  );
  if (moment !== null) return moment;
  const parsed = /^[A-Za-z]{3}, \d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(parsed) ? null : parsed;
}
