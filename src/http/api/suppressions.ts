import { z } from 'zod';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../../store/suppressions.ts';
import {
  identifierOf,
  type LiftWish,
  type SuppressionList,
  shownSuppression,
} from '../../suppression/list.ts';
import { readPageKey } from '../page-key.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { pageEnd, pageEndForm, paging } from './paging.ts';
import { withoutUndefined } from './text-form.ts';

/** `/web-setup/suppressions`: whom the account may not write to, and why. */
export function suppressionRoutes({ suppressions }: { suppressions: SuppressionList }): Route[] {
  return [listing(suppressions), adding(suppressions), lifting(suppressions)];
}

const COMMON = {
  tag: 'Suppressions',
  scope: 'setup',
  path: '/web-setup/suppressions',
} satisfies Partial<RouteDescription>;

const email = z.string().max(1000);
const stream = z.enum(SUPPRESSION_STREAMS);
const reason = z.enum(SUPPRESSION_REASONS);

const suppression = z.object({
  email: z.string().nullable().describe('`null` when the person was erased.'),
  contactIdentifier: z.string(),
  reason,
  stream: stream.describe('The mail that it stops: `tx` transactional, `mk` marketing, `all` both.'),
  createdAt: z.iso.datetime(),
});

function listing(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'GET',
    operationId: 'listSuppressions',
    summary: 'Suppressions, newest first',
    query: z.object({
      email: email.optional().describe('An address, or its identifier `email_<md5>`.'),
      stream: stream.optional(),
      reason: reason.optional(),
      ...paging,
    }),
    answers: {
      200: {
        description: 'A page of suppressions.',
        data: z.object({ suppressions: z.array(suppression), ...pageEndForm }),
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
        ...(query.email === undefined ? {} : { recipientHash: identifierOf(query.email) }),
        ...(query.stream === undefined ? {} : { stream: query.stream }),
        ...(query.reason === undefined ? {} : { reason: query.reason }),
      });
      return {
        status: 200,
        data: { suppressions: page.rows.map(shownSuppression), ...pageEnd('suppressions', page) },
      };
    },
  });
}

function adding(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'POST',
    operationId: 'createSuppression',
    summary: 'Suppresses an address',
    description:
      'A list brought along from elsewhere keeps its reasons. An opt-out (`unsubscribe`) is also told as the event `email_unsubscribed` with method `api`.',
    body: z.object({
      email: email.describe('An address, plain or with display name.'),
      reason: reason.default('manual'),
      stream: stream.default('all'),
    }),
    example: { email: 'ada@example.net', reason: 'manual', stream: 'all' },
    answers: {
      200: {
        description: 'It was there already and stays as it is.',
        data: z.object({ suppression }),
        example: { suppression: EXAMPLE },
      },
      201: { description: 'Made.', data: z.object({ suppression }), example: { suppression: EXAMPLE } },
    },
    refusals: [],
    handle: async ({ caller, body }) => {
      const added = await suppressions.add(caller.accountId, body);
      if (isRefusal(added)) return added;
      return { status: added.created ? 201 : 200, data: { suppression: shownSuppression(added.row) } };
    },
  });
}

const target = {
  email: email.optional().describe('An address, or its identifier `email_<md5>`.'),
  stream: stream.optional().describe('Only suppressions of exactly this stream.'),
  reason: reason.optional().describe('Only those for this reason.'),
};

function lifting(suppressions: SuppressionList): Route {
  return route({
    ...COMMON,
    method: 'DELETE',
    operationId: 'deleteSuppressions',
    summary: 'Lifts the suppressions of an address',
    description:
      'Named in the query or in a body. Without `stream` and `reason` all are lifted, opt-outs and complaints too: only at the wish of the person. Counted bounces begin again at none.',
    query: z.object(target),
    body: z.object(target).optional(),
    example: { email: 'ada@example.net' },
    answers: {
      200: {
        description: 'Lifted.',
        data: z.object({ message: z.string(), removed: z.int().describe('How many.') }),
        example: { message: 'Suppressions of ada@example.net have been lifted: 1.', removed: 1 },
      },
    },
    refusals: ['NOT_FOUND'],
    handle: async ({ caller, query, body = {} }) => {
      const wish = together(query, body);
      if (isRefusal(wish)) return wish;
      const lifted = await suppressions.lift(caller.accountId, wish);
      if (isRefusal(lifted)) return lifted;
      const message = `Suppressions of ${wish.email} have been lifted: ${lifted.length}.`;
      return { status: 200, data: { message, removed: lifted.length } };
    },
  });
}

type Target = { [Field in keyof LiftWish]?: LiftWish[Field] | undefined };

/** What query and body say; where both speak they must agree, or one would be silently ignored. */
function together(query: Target, body: Target): LiftWish | Refusal {
  for (const field of ['email', 'stream', 'reason'] as const) {
    if (query[field] !== undefined && body[field] !== undefined && query[field] !== body[field])
      return invalid(field, 'differs between query and body');
  }
  const { email, ...rest } = { ...withoutUndefined(query), ...withoutUndefined(body) };
  return email === undefined ? invalid('email', 'is required') : { email, ...rest };
}

const EXAMPLE: z.output<typeof suppression> = {
  email: 'ada@example.net',
  contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
  reason: 'manual',
  stream: 'all',
  createdAt: '2026-01-31T12:00:00.000Z',
};
