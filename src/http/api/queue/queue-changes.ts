import * as z from 'zod';
import { TLS_MODES } from '../../../config/setting-types.ts';
import { SECOND } from '../../../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../../../core/refusal.ts';
import { type BulkChanges, type BulkResult, parseNextHop } from '../../../delivery/control.ts';
import { normalizeDomain } from '../../../mail/address.ts';
import type { QueuedMail } from '../../../sending/queued-mail.ts';
import type { Context } from '../../../store/context.ts';
import type { Reroute } from '../../../store/messages/queue-controls.ts';
import type { QueueFilter } from '../../../store/messages/queue-list.ts';
import { type Route, routesOf } from '../../route.ts';
import { definedFields } from '../fields.ts';
import { bulkSchema, filterSchema } from './queue-schemas.ts';

const route = routesOf({ tag: 'Queue', scope: 'operator' });

/** A request ends after this time, and states where the next one continues. */
const MAX_REQUEST_MS = 15 * SECOND;

/** `/web-setup/queue/purge`, `/reroute` and `/retry`: changes of many waiting messages. */
export function queueChangeRoutes(
  { log, monotonic }: Pick<Context, 'log' | 'monotonic'>,
  { bulk, queuedMail }: { bulk: BulkChanges; queuedMail: QueuedMail },
): Route[] {
  async function run(
    call: { body: ChangeInput; caller: { keyId: string } },
    action: string,
    apply: (
      filter: QueueFilter,
      options: { after: number; isOver: () => boolean },
    ) => Promise<BulkResult | Refusal>,
    count: (filter: QueueFilter) => Promise<number | Refusal> = bulk.count,
  ): Promise<z.input<typeof bulkSchema> | Refusal> {
    const { dryRun = false, after = 0 } = call.body;
    const filter = normalized(call.body.filter);
    if (isRefusal(filter)) return filter;
    const matched = await count(filter);
    if (isRefusal(matched)) return matched;
    if (dryRun) return { matched, changed: 0, skipped: 0, next: null };
    const end = monotonic.now() + MAX_REQUEST_MS;
    const result = await apply(filter, { after, isOver: () => monotonic.now() >= end });
    if (isRefusal(result)) return result;
    log.warn(
      { action, filter, ...result, keyId: call.caller.keyId },
      'queued messages changed by the operator',
    );
    return { matched, ...result };
  }

  return [
    route('POST /web-setup/queue/purge', {
      operationId: 'purgeQueue',
      isConfirmed: true,
      summary: 'Cancel waiting messages',
      description:
        'Records `email_failed` with the reason `cancelled` for each. Messages that are being sent are not changed. With `dryRun` messages are only counted.',
      body: changeSchema
        .extend({ reason: z.string().describe('In the `diagnostic` of the events.') })
        .meta({ id: 'QueuePurgeInput' }),
      example: { filter: { destination: 'example.net' }, reason: 'Sent by mistake', dryRun: true },
      response: { description: 'The result.', data: bulkSchema, example: EXAMPLE },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: (call) =>
        run(call, 'purge', (filter, options) => bulk.purge(filter, call.body.reason, options)),
    }),
    route('POST /web-setup/queue/reroute', {
      operationId: 'rerouteQueue',
      summary: 'Send waiting messages by another route',
      description:
        'By `via`, by the egress pool `pool`, or normally again with `reset`. The due times do not change.',
      body: changeSchema
        .extend({
          via: z.string().optional().describe('Next hop: `host:port`; port 25 by default.'),
          tls: z.enum(TLS_MODES).optional().describe('For `via`. Default: `opportunistic`.'),
          pool: z.string().optional(),
          reset: z.boolean().optional(),
        })
        .meta({ id: 'QueueRerouteInput' }),
      example: { filter: { destination: 'example.net' }, via: 'relay.example.com:25' },
      response: { description: 'The result.', data: bulkSchema, example: EXAMPLE },
      refusals: ['QUERY_TOO_BROAD', 'LIMIT_REACHED'],
      narrowBy: [],
      handle: (call) => {
        const reroute = rerouteOf(call.body);
        return isRefusal(reroute)
          ? reroute
          : run(call, 'reroute', (filter, options) => bulk.reroute(filter, reroute, options));
      },
    }),
    route('POST /web-setup/queue/retry', {
      operationId: 'retryQueue',
      summary: 'Retry deferred messages now',
      description:
        'Makes deferred messages due, and probes all suspended sites with one connection each. Held messages stay held, and paused mail keeps waiting. With `dryRun`, messages are only counted.',
      body: changeSchema.meta({ id: 'QueueRetryInput' }),
      example: { filter: { destination: 'example.net' } },
      response: { description: 'The result.', data: bulkSchema, example: EXAMPLE },
      refusals: ['QUERY_TOO_BROAD'],
      narrowBy: [],
      handle: (call) =>
        run(
          call,
          'retry',
          async (filter, options) => {
            const result = await bulk.retry(filter, (id) => queuedMail.retry(null, id), options);
            if (!isRefusal(result)) await queuedMail.probeSuspended();
            return result;
          },
          bulk.countDeferred,
        ),
    }),
  ];
}

const changeSchema = z.object({
  filter: filterSchema,
  dryRun: z.boolean().optional(),
  after: z.int().min(0).optional().describe('`next` of an earlier response.'),
});
type ChangeInput = z.output<typeof changeSchema>;

const EXAMPLE = { matched: 120, changed: 120, skipped: 0, next: null };

function normalized({ destination, ...others }: ChangeInput['filter']): QueueFilter | Refusal {
  const filter: QueueFilter = definedFields(others);
  if (destination === undefined) return filter;
  const name = normalizeDomain(destination);
  return name === null
    ? invalid('filter.destination', 'is not a domain name')
    : { ...filter, destination: name };
}

/** Null: normally again. */
function rerouteOf(body: {
  via?: string | undefined;
  tls?: string | undefined;
  pool?: string | undefined;
  reset?: boolean | undefined;
}): Reroute | null | Refusal {
  const { via, tls = null, pool = null, reset = false } = body;
  if (reset)
    return via === undefined && pool === null
      ? null
      : invalid('reset', 'cannot be combined with via or pool');
  if (via === undefined && pool === null) return invalid('via', 'is missing: name via, pool or reset');
  if (via === undefined) return { host: null, port: null, tls: null, pool };
  const hop = parseNextHop(via);
  return hop === null ? invalid('via', 'must be host, host:port or [ip6]:port') : { ...hop, tls, pool };
}
