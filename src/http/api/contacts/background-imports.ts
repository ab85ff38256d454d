import * as z from 'zod';
import { type BackgroundImports, stateOf } from '../../../audience/import/background.ts';
import { iso, isoOrNull } from '../../../core/clock.ts';
import { type BackgroundImportRow, MAX_KEPT_IMPORTS } from '../../../store/contacts/background-imports.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { pageOf, pageOfAll, pagesById, paging } from '../paging.ts';
import { importHygiene, presentHygiene } from './hygiene-schemas.ts';

/** The result of an import, also of one that is in progress. */
export const countFields = {
  rows: z.int(),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int().describe('Existing contacts without a change.'),
  rejected: z.int(),
  subscribed: z.int().describe('New members of the group.'),
  optedOut: z.int().describe('Members who left the group before: they stay inactive.'),
};

export const rejectedRow = z
  .object({ line: z.int().describe('Starts at 1.'), reason: z.string() })
  .meta({ id: 'RejectedRow' });

export const backgroundImport = z
  .object({
    importId: z.string(),
    status: z
      .enum(['waiting', 'running', 'completed', 'failed', 'cancelled'])
      .describe('Rows that were imported before a failure or a cancellation remain.'),
    reason: z.string().nullable().describe('Why it failed.'),
    fileName: z.string().nullable(),
    subscriptionGroupId: z.string().nullable(),
    bytes: z.int().describe('The length of the file.'),
    bytesRead: z.int().describe('How much of it has been imported.'),
    ...countFields,
    rejectedRows: z.array(rejectedRow).describe('The first 100.'),
    ignoredColumns: z.array(z.string()).describe('Columns that are not a field of a contact.'),
    hygiene: importHygiene.nullable().describe('`null`: no address was examined yet, or none is.'),
    createdAt: z.iso.datetime(),
    startedAt: z.iso.datetime().nullable(),
    finishedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'BackgroundImport' });
export const backgroundResult = z.object({ import: backgroundImport }).meta({ id: 'BackgroundImportResult' });

const EXAMPLE: z.output<typeof backgroundImport> = {
  importId: 'import_1767225600000_a1b2c3d4e5f6',
  status: 'running',
  reason: null,
  fileName: 'customers.csv',
  subscriptionGroupId: null,
  bytes: 48_000_000,
  bytesRead: 12_000_000,
  rows: 250_000,
  created: 249_998,
  updated: 0,
  unchanged: 0,
  rejected: 2,
  subscribed: 0,
  optedOut: 0,
  rejectedRows: [{ line: 3, reason: 'has neither email nor phone' }],
  ignoredColumns: ['Notes'],
  hygiene: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  startedAt: '2026-01-01T00:00:01.000Z',
  finishedAt: null,
};
export const BACKGROUND_EXAMPLE = { import: EXAMPLE };

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });
const ONE = '/web-setup/contacts/imports/{importId}';
const params = { importId: z.string().max(100) };
const one = { description: 'The import.', data: backgroundResult, example: BACKGROUND_EXAMPLE };

/** `/web-setup/contacts/imports`: imports in the background, with their progress. */
export function backgroundImportRoutes(imports: BackgroundImports): Route[] {
  return [
    route('GET /web-setup/contacts/imports', {
      operationId: 'listContactImports',
      summary: 'List imports in the background, newest first',
      description: `The newest ${MAX_KEPT_IMPORTS} are stored.`,
      query: z.object(paging),
      page: pagesById('contact-imports'),
      response: pageOf('imports', backgroundImport, EXAMPLE, {
        description: 'The imports.',
        id: 'BackgroundImportList',
      }),
      handle: ({ caller, query, after }) => {
        const all = imports.list(caller.accountId);
        const page = pageOfAll(all, query.limit, after, ({ import_id }) => import_id);
        return mapResult(page, ({ rows, end }) => ({ imports: rows.map(presentImport), ...end }));
      },
    }),
    route(`GET ${ONE}`, {
      operationId: 'getContactImport',
      summary: 'Get an import in the background with its progress',
      params,
      response: one,
      refusals: ['NOT_FOUND'],
      handle: ({ caller, params: { importId } }) =>
        mapResult(imports.get(caller.accountId, importId), present),
    }),
    route(`POST ${ONE}/cancel`, {
      operationId: 'cancelContactImport',
      stores: () => false,
      summary: 'Cancel an import in the background',
      description: 'Rows that were imported before remain. The file is deleted.',
      params,
      response: one,
      refusals: ['NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { importId } }) =>
        mapResult(await imports.cancel(caller.accountId, importId), present),
    }),
  ];
}

function present(row: BackgroundImportRow) {
  return { import: presentImport(row) };
}

/** The import as the API returns it; `bytesRead` is the position that was committed with the last rows. */
export function presentImport(row: BackgroundImportRow): z.output<typeof backgroundImport> {
  const { counts, rejected, ignored, hygiene } = stateOf(row);
  return {
    importId: row.import_id,
    status: row.status,
    reason: row.reason,
    fileName: row.file_name,
    subscriptionGroupId: row.group_id,
    bytes: row.bytes,
    bytesRead: row.at_byte,
    ...counts,
    rejectedRows: rejected,
    ignoredColumns: ignored,
    hygiene: hygiene === null ? null : presentHygiene(hygiene),
    createdAt: iso(row.created_at),
    startedAt: isoOrNull(row.started_at),
    finishedAt: isoOrNull(row.finished_at),
  };
}
