import { csvFields, type ImportRecord } from '../audience/import/records.ts';
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

interface Row {
  line: number;
  input: SuppressionInput | string;
}

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
    const service = format === 'auto' || format === 'plain' ? suppressionExport(names) : format;
    const hasHeader = names.some((name) => ADDRESS_COLUMNS.includes(name));
    if (format !== 'plain' && service !== null && !hasHeader)
      return invalid('body', `the header names no column of addresses (${ADDRESS_COLUMNS.join(', ')})`);
    const chosen = format === 'plain' ? 'plain' : (service ?? 'plain');
    const read = rowReader(hasHeader ? names : ['email'], delimiter, chosen === 'plain' ? null : chosen);
    const first = hasHeader ? [] : [read(header)];
    const result: SuppressionImportResult = {
      format: chosen,
      rows: 0,
      created: 0,
      unchanged: 0,
      rejected: 0,
      rejectedRows: [],
    };
    const refused = await addRows(first);
    if (refused !== null) return refused;
    for await (const records of recordsAt(header.end))
      for (let at = 0; at < records.length; at += ROWS_AT_A_TIME) {
        const full = await addRows(records.slice(at, at + ROWS_AT_A_TIME).map(read));
        if (full !== null) return full;
      }
    return result;

    /** A refusal, such as of a limit, ends the import. */
    async function addRows(rows: Row[]): Promise<Refusal | null> {
      const added = await Promise.all(
        rows.map(async ({ input }) =>
          typeof input === 'string' ? input : suppressions.add(accountId, input, by),
        ),
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
      return null;
    }
  } finally {
    await close();
  }
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

function rowReader(
  names: string[],
  delimiter: string,
  service: ServiceName | null,
): (record: ImportRecord) => Row {
  return ({ line, text, fault }) => {
    if (fault !== null) return { line, input: fault };
    const values = csvFields(text, delimiter).map((value) => value.trim());
    const fields = new Map(names.map((name, index) => [name, values[index] ?? '']));
    const value = (columns: readonly string[]) =>
      columns.map((name) => fields.get(name) ?? '').find((text) => text !== '') ?? '';
    const email = value(ADDRESS_COLUMNS);
    if (email === '') return { line, input: 'has no address' };
    const reason =
      service === null ? plainReason(value(['reason'])) : reasonOf(service, fields, value(REASON_COLUMNS));
    if (!isReason(reason)) return { line, input: reason };
    const time = value(TIME_COLUMNS);
    const createdAt = timeOf(time);
    if (createdAt === null) return { line, input: 'the time is not one' };
    const stream = reason === 'unsubscribe' ? 'mk' : 'all';
    return { line, input: { email, reason, stream, ...(createdAt === undefined ? {} : { createdAt }) } };
  };
}

/** The reason, or why the row is rejected. */
function plainReason(text: string): string {
  if (text === '') return 'manual';
  return isReason(text) ? text : wordReason(text);
}

function reasonOf(service: ServiceName, fields: ReadonlyMap<string, string>, text: string): string {
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
  return wordReason(text);
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
