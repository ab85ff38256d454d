import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { withoutNulls } from '../../core/without-nulls.ts';
import { recipientIdentifier } from '../../mail/identifier.ts';
import { MAX_LISTED_REMOVALS, SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../../store/suppressions.ts';
import { importSuppressions, SUPPRESSION_FORMATS } from '../../suppression/import.ts';
import { presentSuppression, type SuppressionList, type SuppressionTarget } from '../../suppression/list.ts';
import { Reply, type Route, routesOf } from '../route.ts';
import { rejectedRow } from './contacts/background-imports.ts';
import { definedFields } from './fields.ts';
import { pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

const route = routesOf({ tag: 'Suppressions', scope: 'setup', permissions: ['read', 'contacts'] });

const email = z.string().max(1000);
const stream = z.enum(SUPPRESSION_STREAMS).meta({ id: 'SuppressionStream' });
const reason = z.enum(SUPPRESSION_REASONS).meta({ id: 'SuppressionReason' });

export const suppression = z
  .object({
    email: z
      .string()
      .nullable()
      .describe(
        '`null` after the contact was erased, and of a suppression that was created with an identifier.',
      ),
    contactIdentifier: z.string(),
    reason,
    stream: stream.describe('The mail that it blocks: `tx` transactional, `mk` marketing, `all` both.'),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'Suppression' });
const result = z.object({ suppression }).meta({ id: 'SuppressionResult' });

export const imported = z
  .object({
    message: z.string(),
    format: z.enum(['plain', 'sendgrid', 'mailgun', 'postmark', 'ses']),
    rows: z.int(),
    created: z.int(),
    unchanged: z.int().describe('Suppressions that existed before.'),
    rejected: z.int(),
    rejectedRows: z.array(rejectedRow).describe('The first 100.'),
  })
  .meta({ id: 'SuppressionImport' });

const IMPORT_EXAMPLE: z.output<typeof imported> = {
  message: '1 of 1 rows imported.',
  format: 'sendgrid',
  rows: 1,
  created: 1,
  unchanged: 0,
  rejected: 0,
  rejectedRows: [],
};

export const suppressionRemoval = z
  .object({
    reason,
    stream,
    suppressedAt: z.iso.datetime(),
    note: z.string().optional(),
    removedBy: z.string().describe('The API key, the person of the console, or `command line`.'),
    removedAt: z.iso.datetime(),
  })
  .meta({ id: 'SuppressionRemoval' });

const note = z.string().trim().max(500).optional();

const target = {
  email: email.optional().describe('An address or its identifier `email_<md5>`.'),
  stream: stream.optional().describe('Only suppressions of exactly this stream.'),
  reason: reason.optional().describe('Only suppressions with this reason.'),
  note: note.describe('Why it is deleted, for the history of the address.'),
};

const EXAMPLE: z.output<typeof suppression> = {
  email: 'ada@example.net',
  contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
  reason: 'manual',
  stream: 'all',
  createdAt: '2026-01-31T12:00:00.000Z',
};
const one = { data: result, example: { suppression: EXAMPLE } };

const REMOVAL_EXAMPLE: z.output<typeof suppressionRemoval> = {
  reason: 'hard_bounce',
  stream: 'all',
  suppressedAt: '2026-01-31T12:00:00.000Z',
  note: 'The mailbox was restored',
  removedBy: 'key_1767225600000_a1b2c3d4e5f6',
  removedAt: '2026-02-03T09:00:00.000Z',
};

/** `/web-setup/suppressions`: addresses that the account cannot send to, with the reason. */
export function suppressionRoutes({ suppressions }: { suppressions: SuppressionList }): Route[] {
  return [
    route('GET /web-setup/suppressions', {
      operationId: 'listSuppressions',
      summary: 'List suppressions, newest first',
      query: z.object({
        email: email.optional().describe('An address or its identifier `email_<md5>`.'),
        stream: stream.optional(),
        reason: reason.optional(),
        ...paging,
      }),
      page: pagesBySeq('suppressions'),
      response: pageOf('suppressions', suppression, EXAMPLE),
      narrowBy: ['email', 'stream', 'reason'],
      handle: async ({ caller, query, after }) => {
        const page = await suppressions.list({
          accountId: caller.accountId,
          beforeSeq: after,
          limit: query.limit,
          ...(query.email === undefined ? {} : { recipientHash: recipientIdentifier(query.email) }),
          ...(query.stream === undefined ? {} : { stream: query.stream }),
          ...(query.reason === undefined ? {} : { reason: query.reason }),
        });
        return { suppressions: page.rows.map(presentSuppression), ...seqEnd(page) };
      },
    }),
    route('GET /web-setup/suppressions/removals', {
      operationId: 'listSuppressionRemovals',
      summary: 'List the deleted suppressions of an address, newest first',
      description: `At most ${MAX_LISTED_REMOVALS}, as long as events are kept. Suppressions that the recipient ended are not among them.`,
      query: z.object({ email: email.describe('An address or its identifier `email_<md5>`.') }),
      response: {
        description: 'The removals.',
        data: z
          .object({ removals: z.array(suppressionRemoval), count: z.int() })
          .meta({ id: 'SuppressionRemovalList' }),
        example: { removals: [REMOVAL_EXAMPLE], count: 1 },
      },
      handle: ({ caller, query }) => {
        const removals = suppressions.removals(caller.accountId, query.email).map((row) => ({
          reason: row.reason,
          stream: row.stream,
          suppressedAt: iso(row.suppressed_at),
          ...withoutNulls({ note: row.note }),
          removedBy: row.removed_by,
          removedAt: iso(row.removed_at),
        }));
        return { removals, count: removals.length };
      },
    }),
    route('POST /web-setup/suppressions', {
      operationId: 'createSuppression',
      stores: () => false,
      summary: 'Suppress an address',
      description:
        'Set `reason` to import a list from another service with its reasons. An opt-out (`unsubscribe`) also causes the event `email_unsubscribed` with the method `api`, and one of marketing mail adds an entry to the consent history of the contact.',
      body: z
        .object({
          email: email.describe('An address, plain or with display name, or its identifier `email_<md5>`.'),
          reason: reason.default('manual'),
          stream: stream.default('all'),
        })
        .meta({ id: 'SuppressionInput' }),
      example: { email: 'ada@example.net', reason: 'manual', stream: 'all' },
      responses: {
        200: { description: 'The suppression existed before and did not change.', ...one },
        201: { description: 'The created suppression.', ...one },
      },
      handle: async ({ caller, body }) => {
        const added = await suppressions.add(caller.accountId, body, caller.keyId);
        if (isRefusal(added)) return added;
        return new Reply(
          { data: { suppression: presentSuppression(added.row) } },
          { status: added.created ? 201 : 200 },
        );
      },
    }),
    route('POST /web-setup/suppressions/import', {
      operationId: 'importSuppressions',
      summary: 'Import suppressions from CSV',
      description:
        'Imports the exports of SendGrid, Mailgun, Postmark and Amazon SES, recognized by their columns, with reason and time; or a list with one address per line, or with the columns `email`, `reason` and `created`. Temporary failures are rejected rows. UTF-16 is recognized as in imports of contacts. Opt-outs apply to marketing mail, the others to all mail. After a failure the rows before it remain, and the import may be repeated.',
      query: z.object({
        format: z
          .enum(SUPPRESSION_FORMATS)
          .default('auto')
          .describe('`plain`: addresses, with optional reasons.'),
      }),
      upload: {
        'text/csv':
          'status,reason,email,created\n5.1.1,"550 5.1.1 no such user",ada@example.net,1672653600\n',
      },
      response: { description: 'The result of the import.', data: imported, example: IMPORT_EXAMPLE },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, query, upload }) => {
        if (upload === null) throw new Error('the route has no upload');
        const done = await importSuppressions(
          suppressions,
          caller.accountId,
          upload.bytes,
          query.format,
          caller.keyId,
        );
        if (isRefusal(done)) return done;
        return { message: `${done.rows - done.rejected} of ${done.rows} rows imported.`, ...done };
      },
    }),
    route('DELETE /web-setup/suppressions', {
      operationId: 'deleteSuppressions',
      summary: 'Delete the suppressions of an address',
      description:
        'The address is in the query or in the body. Without `stream` and `reason` all suppressions are deleted, including opt-outs and complaints: do this only at the request of the recipient. The bounce count of the address is reset.',
      query: z.object(target),
      body: z.object(target).meta({ id: 'SuppressionTarget' }).optional(),
      example: { email: 'ada@example.net', note: 'The mailbox was restored' },
      response: {
        description: 'The suppressions were deleted.',
        data: z.object({ message: z.string(), removed: z.int().describe('Number of deleted suppressions.') }),
        example: { message: 'Deleted 1 suppression of ada@example.net.', removed: 1 },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ caller, query, body = {} }) => {
        const combined = combinedTarget(query, body);
        if (isRefusal(combined)) return combined;
        const { note, ...target } = combined;
        const removal = { by: caller.keyId, note: note || null };
        const removed = await suppressions.remove(caller.accountId, target, removal);
        if (isRefusal(removed)) return removed;
        const count = removed.length;
        const message = `Deleted ${count} suppression${count === 1 ? '' : 's'} of ${target.email}.`;
        return { message, removed: count };
      },
    }),
  ];
}

interface NotedTarget extends SuppressionTarget {
  note?: string;
}
type Target = { [Field in keyof NotedTarget]?: NotedTarget[Field] | undefined };

/** The target in query and body. They must agree where both name a field: none is silently ignored. */
function combinedTarget(query: Target, body: Target): NotedTarget | Refusal {
  for (const field of ['email', 'stream', 'reason', 'note'] as const) {
    if (query[field] !== undefined && body[field] !== undefined && query[field] !== body[field])
      return invalid(field, 'differs between query and body');
  }
  const { email, ...rest } = { ...definedFields(query), ...definedFields(body) };
  return email === undefined ? invalid('email', 'is required') : { email, ...rest };
}
