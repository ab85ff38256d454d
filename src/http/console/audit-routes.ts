import * as z from 'zod';
import type { Audit, AuditRecord } from '../../people/audit.ts';
import type { AuditFilter } from '../../store/people/audit.ts';
import { paging } from '../api/paging.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';
import { csvField } from './csv.ts';

/**
 * `/console/audit`: the audit log of an account, or for operators without X-Id of the installation. `summaryOf`: the English
 * name of an operation; null: there is none with this id.
 */
export function auditRoutes({
  access,
  audit,
  summaryOf,
}: {
  access: ConsoleAccess;
  audit: Audit;
  summaryOf(operationId: string): string | null;
}): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/audit', {
      operationId: 'listAuditRecords',
      summary: 'Read the audit log',
      access: 'people',
      accountOptional: true,
      query: z.object({
        limit: paging.limit,
        before: z.coerce.number().int().min(1).optional(),
        personId: z.string().max(100).optional(),
      }),
      handle: ({ caller, query: { limit, ...filter } }) => {
        const { accountId } = access.identityOf(caller);
        const { records, next } = audit.list(
          { ...filter, ...(accountId === null ? {} : { accountId }) },
          limit,
        );
        const listed = records.map((record): ListedRecord => {
          const summary = summaryOf(record.operation);
          return { ...record, ...(summary === null ? {} : { summary }) };
        });
        return { records: listed, next };
      },
    }),
  ];
}

const EXPORT_PAGE = 500;
const COLUMNS = [
  'seq',
  'at',
  'personId',
  'email',
  'accountId',
  'operation',
  'target',
  'outcome',
  'detail',
  'address',
] as const;

/** All records of a filter, newest first, as lines of CSV (RFC 4180) or of JSON. `turn`: awaited between portions. */
export async function* exportedRecords(
  audit: Audit,
  filter: AuditFilter,
  format: 'csv' | 'ndjson',
  turn: () => Promise<void>,
): AsyncGenerator<string> {
  if (format === 'csv') yield `${COLUMNS.join(',')}\r\n`;
  let before = filter.before;
  for (;;) {
    await turn();
    const { records, next } = audit.list({ ...filter, before }, EXPORT_PAGE);
    const lines = records.map((record) =>
      format === 'ndjson'
        ? `${JSON.stringify(record)}\n`
        : `${COLUMNS.map((column) => csvField(record[column])).join(',')}\r\n`,
    );
    if (lines.length > 0) yield lines.join('');
    if (next === null) return;
    before = next;
  }
}

/** A record in the list, with the English name of its operation. */
export type ListedRecord = AuditRecord & { summary?: string };
