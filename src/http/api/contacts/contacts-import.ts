import * as z from 'zod';
import { findSubscriptionGroup } from '../../../audience/groups.ts';
import type { AddressChecks } from '../../../audience/hygiene/checks.ts';
import {
  type BackgroundImports,
  MAX_FILE_BYTES,
  MAX_UNFINISHED,
  stateOf,
} from '../../../audience/import/background.ts';
import {
  HYGIENE_MODES,
  type HygieneMode,
  type ImportCounts,
  type Importer,
} from '../../../audience/import/import.ts';
import { fieldNamed } from '../../../audience/import/rows.ts';
import { importFormatOf, openSource } from '../../../audience/import/source.ts';
import { SECOND } from '../../../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import { parseUntrustedJson } from '../../../core/untrusted-json.ts';
import type { Context } from '../../../store/context.ts';
import { type Call, Reply, type Route, routesOf, type Upload } from '../../route.ts';
import {
  BACKGROUND_EXAMPLE,
  backgroundImportRoutes,
  backgroundResult,
  countFields,
  presentImport,
  rejectedRow,
} from './background-imports.ts';
import { callerOf } from './contact-schemas.ts';
import { HYGIENE_EXAMPLES, importHygiene, presentHygiene } from './hygiene-schemas.ts';

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });

/** Maximum number of columns that a request assigns. */
const MAX_ASSIGNED = 500;

/** The assignment of columns: JSON in the query, because the body is the file. */
const columns = z
  .string()
  .max(8000)
  .transform((text, context): ReadonlyMap<string, string | null> => {
    const assigned = assignments.safeParse(parseUntrustedJson(text));
    if (!assigned.success) {
      context.addIssue({
        code: 'custom',
        message: 'must be a JSON object of columns and fields, such as {"Email Address":"email"}',
      });
      return z.NEVER;
    }
    const entries = Object.entries(assigned.data);
    if (entries.length > MAX_ASSIGNED) {
      context.addIssue({ code: 'custom', message: `must have at most ${MAX_ASSIGNED} columns` });
      return z.NEVER;
    }
    const named = new Map<string, string | null>();
    for (const [column, name] of entries) {
      const field = name === null ? null : fieldNamed(name);
      if (field === null && name !== null)
        context.addIssue({ code: 'custom', message: `"${name}" is not a field of a contact` });
      named.set(column.trim(), field);
    }
    return named;
  })
  .optional()
  .describe(
    `Fields by the names of columns, for a file with other names: a JSON object such as \`{"Email Address":"email","Plan":"customFields.plan","Notes":null}\`. A column with \`null\` is not read. At most ${MAX_ASSIGNED} columns.`,
  );
const assignments = z.record(z.string(), z.string().max(200).nullable());

/** How long an upload waits for look-ups of domains, all batches together. */
const LOOKUP_WAIT_MS = 20 * SECOND;

/** What a caller may add to an import. */
interface ImportQuery {
  columns?: ReadonlyMap<string, string | null> | undefined;
  dryRun?: 'true' | 'false' | undefined;
  background?: 'true' | 'false' | undefined;
  fileName?: string | undefined;
  hygiene: HygieneMode;
}

interface ImportServices {
  importer: Importer;
  addressChecks: AddressChecks;
  backgroundImports: BackgroundImports;
  /** Why nothing more is stored for an account; null: it is. */
  storageRefusal(accountId: string): Refusal | null;
}

/** `/web-setup/contacts/import`: imports contacts from a stream; `/web-setup/contacts/imports`: imports in the background. */
export function contactImportRoutes({ tables }: Pick<Context, 'tables'>, services: ImportServices): Route[] {
  const { backgroundImports } = services;
  return [
    route('POST /web-setup/contacts/import', {
      operationId: 'importContacts',
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Import contacts from CSV or NDJSON',
      description:
        'The body may have any length. Rows of existing contacts update the fields that they contain. Columns of a CSV are the fields of a contact (`email`, `phone`, `firstName`, …) and `customFields.<name>`; the separator is comma, semicolon or tab, or the one that a first line such as `sep=;` names. Other names of the column `email`, such as `Email Address`, are recognized. Lines end with LF, CRLF or CR; UTF-16 is recognized by its byte order mark or by the charset of the Content-Type, such as `text/csv; charset=utf-16le`. Rows are stored while they are read: after a failure the rows before it remain, the error states their number, and the import may be repeated. An import never ends an opt-out or a suppression. Rows with a `globalStatus` other than `active` or with `isActive: false` are rejected, so that people who opted out do not become recipients. Without `consentMethod`, `imported` is recorded.',
      query: z.object({
        subscriptionGroupId: z.string().max(100).optional().describe('Adds every row to this group.'),
        columns,
        dryRun: z
          .enum(['true', 'false'])
          .optional()
          .describe(
            '`true`: counts and checks the rows without storing anything. A contact may be counted as created more than once if its rows are far apart; the limit of contacts is not checked.',
          ),
        background: z
          .enum(['true', 'false'])
          .optional()
          .describe(
            `\`true\`: answers when the file is stored, and imports it afterwards, also across a restart. At most ${MAX_FILE_BYTES / 2 ** 20} MiB, and ${MAX_UNFINISHED} imports of an account at a time. Not with \`dryRun\`.`,
          ),
        hygiene: z
          .enum(HYGIENE_MODES)
          .default('report')
          .describe(
            '`report`: the addresses are examined, and `hygiene` of the result states what was found; `reject`: rows whose domain has no mail service, or disposable addresses, are rejected; `off`: they are not examined.',
          ),
        fileName: z
          .string()
          .max(255)
          .optional()
          .describe('The name of the file, for the list of imports in the background.'),
      }),
      upload: { 'text/csv': CSV, 'application/x-ndjson': NDJSON },
      responses: {
        200: { description: 'The result of the import.', data: result, example: EXAMPLE },
        202: {
          description: 'With `background=true`: the file is stored.',
          data: backgroundResult,
          example: BACKGROUND_EXAMPLE,
        },
      },
      refusals: ['SUPPRESSION_FILE', 'SUBSCRIPTION_GROUP_NOT_FOUND', 'LIMIT_REACHED', 'UNAVAILABLE'],
      handle: async (call) => {
        const groupId = call.query.subscriptionGroupId ?? null;
        if (groupId !== null) {
          const group = findSubscriptionGroup(tables, call.caller.accountId, groupId);
          if (isRefusal(group)) return group;
        }
        if (call.upload === null) throw new Error('the route has no upload');
        if (call.query.background === 'true')
          return importInBackground(backgroundImports, call, call.upload, groupId);
        return importUpload(services, call, call.upload, groupId);
      },
    }),
    ...backgroundImportRoutes(backgroundImports),
  ];
}

async function importUpload(
  { importer, addressChecks, storageRefusal }: ImportServices,
  call: Call<unknown, ImportQuery, unknown>,
  { type, bytes }: Upload,
  groupId: string | null,
): Promise<Reply | Refusal> {
  const { columns, dryRun, hygiene: mode } = call.query;
  const source = await openSource(
    bytes,
    importFormatOf(type) ?? 'csv',
    columns === undefined ? {} : { columns },
  );
  if (typeof source === 'string') return invalid('body', source);
  if (isRefusal(source)) return source;
  try {
    const imported = await importer.run({
      accountId: call.caller.accountId,
      groupId,
      actor: callerOf(call),
      reader: source.reader,
      records: source.records,
      dryRun: dryRun === 'true',
      ...(mode === 'off'
        ? {}
        : {
            hygiene: {
              run: addressChecks.begin(call.caller.accountId, { waitMs: LOOKUP_WAIT_MS }),
              rejects: mode === 'reject',
            },
          }),
      storageRefusal: () => storageRefusal(call.caller.accountId),
      signal: call.signal,
    });
    if (isRefusal(imported)) return imported;
    const { counts, rejected, hygiene, complete } = imported;
    const isDryRun = dryRun === 'true';
    if (!complete)
      return refuse(
        'UNAVAILABLE',
        `The service is shutting down; ${isDryRun ? 0 : counts.rows} rows were imported`,
      );
    const data = {
      message: summary(counts, isDryRun),
      ...counts,
      rejectedRows: rejected,
      hygiene: hygiene === null ? null : presentHygiene(hygiene),
    };
    return new Reply({ data }, { warnings: [...source.reader.ignored].map(ignoredColumn) });
  } finally {
    await source.close();
  }
}

async function importInBackground(
  imports: BackgroundImports,
  call: Call<unknown, ImportQuery, unknown>,
  { type, bytes }: Upload,
  groupId: string | null,
): Promise<Reply | Refusal> {
  const { columns, dryRun, fileName, hygiene } = call.query;
  if (dryRun === 'true') return invalid('background', 'a dry run stores nothing: omit background or dryRun');
  const added = await imports.add({
    accountId: call.caller.accountId,
    groupId,
    actor: callerOf(call),
    format: importFormatOf(type) ?? 'csv',
    columns,
    fileName: fileName ?? null,
    hygiene,
    bytes,
  });
  if (isRefusal(added)) return added;
  const warnings = stateOf(added).ignored.map(ignoredColumn);
  return new Reply({ data: { import: presentImport(added) } }, { status: 202, warnings });
}

function ignoredColumn(name: string): string {
  return `unknown column "${name}" was ignored`;
}

function summary({ rows, rejected }: ImportCounts, isDryRun: boolean): string {
  const counted = rejected === 0 ? `${rows} rows` : `${rows - rejected} of ${rows} rows`;
  return isDryRun ? `${counted} can be imported. Nothing was stored.` : `${counted} imported.`;
}

const result = z
  .object({
    message: z.string(),
    ...countFields,
    rejectedRows: z.array(rejectedRow).describe('The first 100.'),
    hygiene: importHygiene.nullable().describe('`null`: the addresses were not examined.'),
  })
  .meta({ id: 'ContactImport' });

const CSV = `email,firstName,lastName,consentMethod,customFields.plan
grace@example.net,Grace,Hopper,double_opt_in,gold
not an address,,,,
`;
const NDJSON =
  '{"email":"grace@example.net","firstName":"Grace","consentMethod":"double_opt_in","customFields":{"plan":"gold"}}\n';
const EXAMPLE: z.output<typeof result> = {
  message: '1 of 2 rows imported.',
  rows: 2,
  created: 1,
  updated: 0,
  unchanged: 0,
  rejected: 1,
  subscribed: 0,
  optedOut: 0,
  rejectedRows: [
    {
      line: 3,
      reason: 'email: contains a space: put the address after a name in <angle brackets>',
    },
  ],
  hygiene: HYGIENE_EXAMPLES.imported,
};
