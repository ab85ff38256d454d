import * as z from 'zod';
import { type Clock, iso } from '../../../core/clock.ts';
import { isRefusal } from '../../../core/refusal.ts';
import { explainMessage, presentSite } from '../../../delivery/control/explain.ts';
import { explainDestination, readDestination } from '../../../delivery/control/explain-destination.ts';
import { presentControl } from '../../../delivery/control/orders.ts';
import type { Delivery } from '../../../delivery/delivery.ts';
import type { QueueSummary } from '../../../store/messages/queue-list.ts';
import { NO_ACCOUNT, type Reader } from '../../../store/readers/reads.ts';
import type { Tables } from '../../../store/tables.ts';
import { type Route, route } from '../../route.ts';
import {
  controlSchema,
  destinationExplanationSchema,
  EXAMPLE_CONTROL,
  EXAMPLE_DESTINATION,
  EXAMPLE_MESSAGE,
  EXAMPLE_SITE,
  messageExplanationSchema,
  siteSchema,
} from './queue-schemas.ts';

export interface QueueReadDeps {
  tables: Tables;
  reader: Reader;
  clock: Clock;
  delivery: Pick<Delivery, 'controls' | 'inspection'>;
}

/** `/web-setup/queue`: what waits and why, for the operator. */
export function queueRoutes({ tables, reader, clock, delivery }: QueueReadDeps): Route[] {
  const deps = { tables, clock, inspection: delivery.inspection };
  return [
    route({
      method: 'GET',
      path: '/web-setup/queue',
      operationId: 'getQueue',
      tag: 'Queue',
      summary: 'Get the state of the queue',
      scope: 'operator',
      responses: { 200: { description: 'The queue of all accounts.', data: queueSchema, example: EXAMPLE } },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: async () => {
        const destinations = await reader.table(NO_ACCOUNT, 'queue', 'byDestination');
        const data = {
          stopped: delivery.inspection.stopped(),
          sessions: delivery.inspection.sessions(),
          controls: delivery.controls.list().map(presentControl),
          destinations: destinations.map(({ destination, ...numbers }) => ({
            destination,
            ...presentNumbers(numbers),
          })),
        };
        return { status: 200, data };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/queue/accounts',
      operationId: 'listQueueAccounts',
      tag: 'Queue',
      summary: 'List the accounts with waiting mail',
      scope: 'operator',
      query: z.object({ accountId: z.string().optional().describe('Only this account.') }),
      responses: {
        200: {
          description: 'The 200 accounts with the most messages.',
          data: queueAccountsSchema,
          example: { accounts: [{ accountId: 'acct_8f3k2m9x0q1z', ...EXAMPLE_NUMBERS }], count: 1 },
        },
      },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: async ({ query }) => {
        const rows = await reader.table(NO_ACCOUNT, 'queue', 'byAccount', query.accountId);
        const accounts = rows.map(({ account_id, ...numbers }) => ({
          accountId: account_id,
          ...presentNumbers(numbers),
        }));
        return { status: 200, data: { accounts, count: accounts.length } };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/queue/messages/{messageId}',
      operationId: 'explainQueuedMessage',
      tag: 'Queue',
      summary: 'Explain why a message waits',
      scope: 'operator',
      params: z.object({ messageId: z.string() }),
      responses: {
        200: { description: 'The explanation.', data: messageExplanationSchema, example: EXAMPLE_MESSAGE },
      },
      refusals: ['MESSAGE_NOT_FOUND'],
      handle: ({ params }) => {
        const explained = explainMessage(params.messageId, deps);
        return isRefusal(explained) ? explained : { status: 200, data: explained };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/queue/destinations/{destination}',
      operationId: 'explainQueuedDestination',
      tag: 'Queue',
      summary: 'Explain why the mail to a recipient domain waits',
      scope: 'operator',
      params: z.object({ destination: z.string() }),
      responses: {
        200: {
          description: 'The explanation.',
          data: destinationExplanationSchema,
          example: EXAMPLE_DESTINATION,
        },
      },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: async ({ params }) => {
        const explained = await explainDestination(params.destination, deps, (destination) =>
          reader.query(NO_ACCOUNT, readDestination, destination),
        );
        return isRefusal(explained) ? explained : { status: 200, data: explained };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/queue/sites',
      operationId: 'listQueueSites',
      tag: 'Queue',
      summary: 'List the sites with mail',
      description: 'Sites in memory, at most 200, those with the most connections first.',
      scope: 'operator',
      query: z.object({ name: z.string().optional().describe('Only sites whose name contains this text.') }),
      responses: {
        200: {
          description: 'The sites.',
          data: z.object({ sites: z.array(siteSchema), count: z.int() }),
          example: { sites: [EXAMPLE_SITE], count: 1 },
        },
      },
      refusals: [],
      handle: ({ query }) => {
        const name = query.name?.toLowerCase() ?? '';
        const sites = delivery.inspection
          .sites()
          .filter(({ site }) => site.toLowerCase().includes(name))
          .map((site) => presentSite(site, clock));
        return { status: 200, data: { sites, count: sites.length } };
      },
    }),
  ];
}

function presentNumbers({
  oldest_due,
  paused,
  ...numbers
}: Omit<QueueSummary, 'destination'>): z.output<typeof numbersSchema> {
  return { ...numbers, held: paused, nextAttemptAt: oldest_due === null ? null : iso(oldest_due) };
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
