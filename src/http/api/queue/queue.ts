import * as z from 'zod';
import { isoOrNull } from '../../../core/clock.ts';
import { type ControlOrders, presentControl } from '../../../delivery/control.ts';
import type { Delivery } from '../../../delivery/delivery.ts';
import {
  explainDestination,
  explainMessage,
  presentSite,
  readDestination,
} from '../../../delivery/explain.ts';
import type { Context } from '../../../store/context.ts';
import type { QueueSummary } from '../../../store/messages/queue-list.ts';
import { NO_ACCOUNT } from '../../../store/readers/reads.ts';
import { type Route, routesOf } from '../../route.ts';
import {
  controlSchema,
  destinationExplanationSchema,
  EXAMPLE_CONTROL,
  EXAMPLE_DESTINATION,
  EXAMPLE_MESSAGE,
  EXAMPLE_SITE,
  messageExplanationSchema,
  scopeSchema,
  siteSchema,
} from './queue-schemas.ts';

const route = routesOf({ tag: 'Queue', scope: 'operator' });

/** `/web-setup/queue`: what waits and why, pauses, and destinations whose mail is rejected, for the operator. */
export function queueRoutes(
  { clock, tables, reader }: Pick<Context, 'clock' | 'tables' | 'reader'>,
  { delivery, orders }: { delivery: Pick<Delivery, 'controls' | 'waits'>; orders: ControlOrders },
): Route[] {
  const deps = { tables, clock, inspection: delivery.waits };
  return [
    route('GET /web-setup/queue', {
      operationId: 'getQueue',
      summary: 'Get the state of the queue',
      response: { description: 'The queue of all accounts.', data: queueSchema, example: EXAMPLE },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: async () => {
        const destinations = await reader.table(NO_ACCOUNT, 'queue', 'byDestination');
        return {
          stopped: delivery.waits.stopped(),
          sessions: delivery.waits.sessions(),
          controls: delivery.controls.list().map(presentControl),
          destinations: destinations.map(({ destination, ...numbers }) => ({
            destination,
            ...presentNumbers(numbers),
          })),
        };
      },
    }),
    route('GET /web-setup/queue/accounts', {
      operationId: 'listQueueAccounts',
      summary: 'List the accounts with waiting mail',
      query: z.object({ accountId: z.string().optional().describe('Only this account.') }),
      response: {
        description: 'The 200 accounts with the most messages.',
        data: queueAccountsSchema,
        example: { accounts: [{ accountId: 'acct_8f3k2m9x0q1z', ...EXAMPLE_NUMBERS }], count: 1 },
      },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: async ({ query }) => {
        const rows = await reader.table(NO_ACCOUNT, 'queue', 'byAccount', query.accountId);
        const accounts = rows.map(({ account_id, ...numbers }) => ({
          accountId: account_id,
          ...presentNumbers(numbers),
        }));
        return { accounts, count: accounts.length };
      },
    }),
    route('GET /web-setup/queue/messages/{messageId}', {
      operationId: 'explainQueuedMessage',
      summary: 'Explain why a message waits',
      response: { description: 'The explanation.', data: messageExplanationSchema, example: EXAMPLE_MESSAGE },
      refusals: ['MESSAGE_NOT_FOUND'],
      handle: ({ params }) => explainMessage(params.messageId, deps),
    }),
    route('GET /web-setup/queue/destinations/{destination}', {
      operationId: 'explainQueuedDestination',
      summary: 'Explain why the mail to a recipient domain waits',
      response: {
        description: 'The explanation.',
        data: destinationExplanationSchema,
        example: EXAMPLE_DESTINATION,
      },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: ({ params }) =>
        explainDestination(params.destination, deps, (destination) =>
          reader.query(NO_ACCOUNT, readDestination, destination),
        ),
    }),
    route('GET /web-setup/queue/sites', {
      operationId: 'listQueueSites',
      summary: 'List the sites with mail',
      description: 'Sites in memory, at most 200, those with the most connections first.',
      query: z.object({ name: z.string().optional().describe('Only sites whose name contains this text.') }),
      response: {
        description: 'The sites.',
        data: z.object({ sites: z.array(siteSchema), count: z.int() }),
        example: { sites: [EXAMPLE_SITE], count: 1 },
      },
      handle: ({ query }) => {
        const name = query.name?.toLowerCase() ?? '';
        const sites = delivery.waits
          .sites()
          .filter(({ site }) => site.toLowerCase().includes(name))
          .map((site) => presentSite(site, clock));
        return { sites, count: sites.length };
      },
    }),
    route('GET /web-setup/queue/controls', {
      operationId: 'listQueueControls',
      summary: 'List pauses and rejected destinations',
      response: {
        description: 'The controls in force, oldest first.',
        data: z.object({ controls: z.array(controlSchema), count: z.int() }),
        example: { controls: [EXAMPLE_CONTROL], count: 1 },
      },
      handle: () => {
        const controls = orders.list();
        return { controls, count: controls.length };
      },
    }),
    route('POST /web-setup/queue/controls', {
      operationId: 'createQueueControl',
      summary: 'Pause mail, or reject the mail to a destination',
      description:
        'Takes effect immediately; sessions in progress end normally. Paused mail stays queued and does not expire. Replaces the control with the same scope and target.',
      body: z
        .object({
          action: controlSchema.shape.action.describe('`bounce` requires the scope `destination`.'),
          scope: scopeSchema,
          target: z.string(),
          reason: z.string().describe('Shown wherever the reason of the delay is; 1 to 200 characters.'),
          until: z.iso.datetime().nullish().describe('When it ends by itself. Default: never.'),
        })
        .meta({ id: 'QueueControlInput' }),
      example: {
        action: 'pause',
        scope: 'destination',
        target: 'example.net',
        reason: 'Maintenance at the receiver',
        until: '2026-02-01T12:00:00.000Z',
      },
      response: { status: 201, description: 'The control.', data: controlSchema, example: EXAMPLE_CONTROL },
      refusals: ['ACCOUNT_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ body, caller }) => {
        const until = body.until === undefined || body.until === null ? null : Date.parse(body.until);
        return orders.create({ ...body, until }, caller.keyId);
      },
    }),
    route('DELETE /web-setup/queue/controls/{scope}/{target}', {
      operationId: 'deleteQueueControl',
      summary: 'Resume mail',
      description: 'Removes a pause or a rejection.',
      params: { scope: scopeSchema },
      response: { description: 'The removed control.', data: controlSchema, example: EXAMPLE_CONTROL },
      refusals: ['NOT_FOUND'],
      handle: ({ params }) => orders.remove(params.scope, params.target),
    }),
  ];
}

function presentNumbers({
  oldest_due,
  paused,
  ...numbers
}: Omit<QueueSummary, 'destination'>): z.output<typeof numbersSchema> {
  return { ...numbers, held: paused, nextAttemptAt: isoOrNull(oldest_due) };
}

const numbersSchema = z.object({
  messages: z.int(),
  sending: z.int(),
  deferred: z.int(),
  scheduled: z.int(),
  held: z.int(),
  transactional: z.int(),
  nextAttemptAt: z.iso.datetime().nullable(),
});

export const queueAccountsSchema = z.object({
  accounts: z.array(z.object({ accountId: z.string(), ...numbersSchema.shape })),
  count: z.int(),
});

export const queueSchema = z.object({
  stopped: z.string().nullable().describe('What stops all mail; null: nothing does.'),
  sessions: z.object({ used: z.int(), limit: z.int() }),
  controls: z.array(controlSchema),
  destinations: z
    .array(z.object({ destination: z.string(), ...numbersSchema.shape }))
    .describe('The 200 destinations with the most messages.'),
});

const EXAMPLE_NUMBERS = {
  messages: 120,
  sending: 0,
  deferred: 100,
  scheduled: 0,
  held: 0,
  transactional: 20,
  nextAttemptAt: '2026-01-31T12:05:00.000Z',
};

const EXAMPLE = {
  stopped: null,
  sessions: { used: 10, limit: 500 },
  controls: [EXAMPLE_CONTROL],
  destinations: [{ destination: 'example.net', ...EXAMPLE_NUMBERS }],
};
