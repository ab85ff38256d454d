import { z } from 'zod';
import { findSubscriptionGroup } from '../../audience/groups.ts';
import type { ImportCounts, Importer } from '../../audience/import/import.ts';
import { formatOf, openSource } from '../../audience/import/source.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Tables } from '../../store/tables.ts';
import { successBody } from '../answers.ts';
import { type Answer, type Call, type Route, route, type Upload } from '../route.ts';
import { callerOf } from './contacts-forms.ts';

/** `POST /web-setup/contacts/import`: contacts as a stream. */
export function contactImportRoutes({ tables, importer }: { tables: Tables; importer: Importer }): Route[] {
  return [
    route({
      method: 'POST',
      path: '/web-setup/contacts/import',
      operationId: 'importContacts',
      tag: 'Contacts',
      scope: 'setup',
      summary: 'Import contacts from CSV or NDJSON of any length',
      description:
        'A row with the identifier of a known contact updates the fields that it has. Columns of a CSV are the fields of a contact (`email`, `phone`, `firstName`, …) and `customFields.<name>`; the delimiter is a comma, semicolon or tab. Rows are stored while they are read, so those before a failure stay; an import may be repeated. An import never ends an opt-out or a suppression. Without `consentMethod`, `imported` is recorded.',
      query: z.object({
        subscriptionGroupId: z.string().max(100).optional().describe('Adds every row to this group.'),
      }),
      upload: { 'text/csv': CSV, 'application/x-ndjson': NDJSON },
      answers: { 200: { description: 'Imported.', data: result, example: EXAMPLE } },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: async (call) => {
        const groupId = call.query.subscriptionGroupId ?? null;
        if (groupId !== null) {
          const group = findSubscriptionGroup(tables, call.caller.accountId, groupId);
          if (isRefusal(group)) return group;
        }
        if (call.upload === null) throw new Error('the route takes an upload');
        return importUpload(importer, call, call.upload, groupId);
      },
    }),
  ];
}

async function importUpload(
  importer: Importer,
  call: Call<unknown, unknown, unknown>,
  { type, bytes }: Upload,
  groupId: string | null,
): Promise<Answer | Refusal> {
  const source = await openSource(bytes, formatOf(type) ?? 'csv');
  if (typeof source === 'string') return invalid('body', source);
  try {
    const imported = await importer.run({
      accountId: call.caller.accountId,
      groupId,
      actor: callerOf(call),
      reader: source.reader,
      records: source.records,
      signal: call.signal,
      batchRows: BATCH_ROWS,
      pauseShare: PAUSE_SHARE,
    });
    if (isRefusal(imported)) return imported;
    const { counts, rejected, complete } = imported;
    if (!complete)
      return refuse('UNAVAILABLE', `the service is shutting down; ${counts.rows} rows have been imported`);
    const data = { message: sentence(counts), ...counts, rejectedRows: rejected };
    const ignored = [...source.reader.ignored].map((name) => `unknown column "${name}" was ignored`);
    return { status: 200, raw: successBody(data, [...call.warnings, ...ignored]) };
  } finally {
    await source.close();
  }
}

/** Small, so that sends and other requests run between batches. */
const BATCH_ROWS = 100;
const PAUSE_SHARE = 0.25;

function sentence({ rows, rejected }: ImportCounts): string {
  return rejected === 0 ? `${rows} rows imported.` : `${rows - rejected} of ${rows} rows imported.`;
}

const rejectedRow = z.object({ line: z.int().describe('From 1.'), reason: z.string() });
const result = z.object({
  message: z.string(),
  rows: z.int(),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int().describe('Known contacts without a change.'),
  rejected: z.int(),
  subscribed: z.int().describe('New members of the group.'),
  optedOut: z.int().describe('Contacts that opted out of the group: inactive members.'),
  rejectedRows: z.array(rejectedRow).describe('The first 100.'),
});

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
};
