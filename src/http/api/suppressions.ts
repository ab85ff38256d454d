import * as z from 'zod';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { recipientIdentifier } from '../../mail/identifier.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../../store/suppressions.ts';
import { presentSuppression, type SuppressionList, type SuppressionTarget } from '../../suppression/list.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { definedFields } from './fields.ts';
import { pageEnd, pageEndFields, paging, readPageKey } from './paging.ts';

/** `/web-setup/suppressions`: addresses that the account cannot send to, with the reason. */
export function suppressionRoutes({ suppressions }: { suppressions: SuppressionList }): Route[] {
  return [listRoute(suppressions), createRoute(suppressions), deleteRoute(suppressions)];
}

const COMMON = {
  tag: 'Suppressions',
  scope: 'setup',
  path: '/web-setup/suppressions',
} satisfies Partial<RouteDescription>;

const email = z.string().max(1000);
const stream = z.enum(SUPPRESSION_STREAMS).meta({ id: 'SuppressionStream' });
const reason = z.enum(SUPPRESSION_REASONS).meta({ id: 'SuppressionReason' });

export const suppression = z
  .object({
    email: z.string().nullable().describe('`null` after the contact was erased.'),
    contactIdentifier: z.string(),
    reason,
    stream: stream.describe('The mail that it blocks: `tx` transactional, `mk` marketing, `all` both.'),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'Suppression' });
const result = z.object({ suppression }).meta({ id: 'SuppressionResult' });

function listRoute(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'GET',
    operationId: 'listSuppressions',
    summary: 'List suppressions, newest first',
    query: z.object({
      email: email.optional().describe('An address or its identifier `email_<md5>`.'),
      stream: stream.optional(),
      reason: reason.optional(),
      ...paging,
    }),
    responses: {
      200: {
        description: 'A page of suppressions.',
        data: z.object({ suppressions: z.array(suppression), ...pageEndFields }),
        example: { suppressions: [EXAMPLE], count: 1 },
      },
    },
    refusals: [],
    narrowBy: ['email', 'stream', 'reason'],
    handle: async ({ caller, query }) => {
      const beforeSeq = readPageKey('suppressions', query.lastKey);
      if (isRefusal(beforeSeq)) return beforeSeq;
      const page = await suppressions.list({
        accountId: caller.accountId,
        beforeSeq,
        limit: query.limit,
        ...(query.email === undefined ? {} : { recipientHash: recipientIdentifier(query.email) }),
        ...(query.stream === undefined ? {} : { stream: query.stream }),
        ...(query.reason === undefined ? {} : { reason: query.reason }),
      });
      return {
        status: 200,
        data: { suppressions: page.rows.map(presentSuppression), ...pageEnd('suppressions', page) },
      };
    },
  });
}

function createRoute(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'POST',
    operationId: 'createSuppression',
    summary: 'Suppress an address',
    description:
      'Set `reason` to import a list from another service with its reasons. An opt-out (`unsubscribe`) also causes the event `email_unsubscribed` with the method `api`.',
    body: z
      .object({
        email: email.describe('An address, plain or with display name.'),
        reason: reason.default('manual'),
        stream: stream.default('all'),
      })
      .meta({ id: 'SuppressionInput' }),
    example: { email: 'ada@example.net', reason: 'manual', stream: 'all' },
    responses: {
      200: {
        description: 'The suppression existed before and did not change.',
        data: result,
        example: { suppression: EXAMPLE },
      },
      201: { description: 'The created suppression.', data: result, example: { suppression: EXAMPLE } },
    },
    refusals: [],
    handle: async ({ caller, body }) => {
      const added = await suppressions.add(caller.accountId, body);
      if (isRefusal(added)) return added;
      return { status: added.created ? 201 : 200, data: { suppression: presentSuppression(added.row) } };
    },
  });
}

const target = {
  email: email.optional().describe('An address or its identifier `email_<md5>`.'),
  stream: stream.optional().describe('Only suppressions of exactly this stream.'),
  reason: reason.optional().describe('Only suppressions with this reason.'),
};

function deleteRoute(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'DELETE',
    operationId: 'deleteSuppressions',
    summary: 'Delete the suppressions of an address',
    description:
      'The address is in the query or in the body. Without `stream` and `reason` all suppressions are deleted, including opt-outs and complaints: do this only at the request of the recipient. The bounce count of the address is reset.',
    query: z.object(target),
    body: z.object(target).meta({ id: 'SuppressionTarget' }).optional(),
    example: { email: 'ada@example.net' },
    responses: {
      200: {
        description: 'The suppressions were deleted.',
        data: z.object({ message: z.string(), removed: z.int().describe('Number of deleted suppressions.') }),
        example: { message: 'Deleted 1 suppression of ada@example.net.', removed: 1 },
      },
    },
    refusals: ['NOT_FOUND'],
    handle: async ({ caller, query, body = {} }) => {
      const target = combinedTarget(query, body);
      if (isRefusal(target)) return target;
      const removed = await suppressions.remove(caller.accountId, target);
      if (isRefusal(removed)) return removed;
      const count = removed.length;
      const message = `Deleted ${count} suppression${count === 1 ? '' : 's'} of ${target.email}.`;
      return { status: 200, data: { message, removed: count } };
    },
  });
}

type Target = { [Field in keyof SuppressionTarget]?: SuppressionTarget[Field] | undefined };

/** The target in query and body. They must agree where both name a field: none is silently ignored. */
function combinedTarget(query: Target, body: Target): SuppressionTarget | Refusal {
  for (const field of ['email', 'stream', 'reason'] as const) {
    if (query[field] !== undefined && body[field] !== undefined && query[field] !== body[field])
      return invalid(field, 'differs between query and body');
  }
  const { email, ...rest } = { ...definedFields(query), ...definedFields(body) };
  return email === undefined ? invalid('email', 'is required') : { email, ...rest };
}

const EXAMPLE: z.output<typeof suppression> = {
  email: 'ada@example.net',
  contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
  reason: 'manual',
  stream: 'all',
  createdAt: '2026-01-31T12:00:00.000Z',
};
