import { isNextHopHost } from '../../config/setting-types.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Recorder } from '../../events/record.ts';
import { partlyDone, unitAfter } from '../../store/database/failure.ts';
import type { Writer } from '../../store/database/writer.ts';
import { MAX_REROUTES, type Reroute } from '../../store/messages/queue-controls.ts';
import type { QueueFilter } from '../../store/messages/queue-list.ts';
import type { Tables } from '../../store/tables.ts';
import { type ControlOrdersDeps, checkReason, unknownPool } from './orders.ts';

/**
 * Changes of many waiting messages: purging, rerouting and retrying by filter. Messages that are being sent are never changed. The
 * work is done in small units in the order of acceptance, so that other writes are not delayed; a call that ends early
 * states where the next one continues.
 */
export interface BulkChanges {
  /** Counts the messages that match and are not being sent. At least one field of the filter must be set. */
  count(filter: QueueFilter): Promise<number | Refusal>;
  /** Counts those of them that are deferred and not held. */
  countDeferred(filter: QueueFilter): Promise<number | Refusal>;
  /** Ends the messages with `email_failed`, reason `cancelled`; `reason` is in the diagnostic of the event. */
  purge(filter: QueueFilter, reason: string, options?: BulkOptions): Promise<BulkResult | Refusal>;
  /** Sends the messages through another next hop or egress pool from now on; null: ends the reroute. */
  reroute(filter: QueueFilter, reroute: Reroute | null, options?: BulkOptions): Promise<BulkResult | Refusal>;
  /** Retries the deferred messages that are not held; `retry` makes one of them due. */
  retry(filter: QueueFilter, retry: ChangeMessage, options?: BulkOptions): Promise<BulkResult | Refusal>;
}

/** Changes a message; a refusal skips it. */
export type ChangeMessage = (messageId: string) => Promise<object | Refusal>;

export interface BulkOptions {
  /** `next` of an earlier call. Default: 0, from the beginning. */
  after?: number;
  /** Whether to end the call after the current unit of work. Default: never. */
  isOver?: () => boolean;
}

export interface BulkResult {
  changed: number;
  /** Messages that were sent, cancelled or leased meanwhile. */
  skipped: number;
  /** Where the next call continues; null: all matching messages are done. */
  next: number | null;
}

export interface BulkDeps extends Pick<ControlOrdersDeps, 'config'> {
  writer: Writer;
  recorder: Recorder;
  /** Reads of the queue, which may take long: on reader threads in the daemon. */
  read: {
    waiting: ReadWaiting;
    counts(filter: QueueFilter): Promise<{ messages: number; sending: number; deferred: number }>;
  };
  /** Called after each unit with rerouted messages, which are read again. */
  onRerouted?: () => void;
}

type ReadWaiting = (
  filter: QueueFilter,
  page: { deferred: boolean; afterSeq: number; limit: number },
) => Promise<WaitingMessage[]>;

interface WaitingMessage {
  seq: number;
  message_id: string;
}

const PAGE_SIZE = 200;
/** Messages that one unit of work changes. */
const UNIT_SIZE = 20;

/**
 * Keeps no state. A call reads pages of 200 messages and changes 20 of them in each unit of work; without `isOver` it
 * ends with the last match. An empty filter, an unknown pool or an invalid reason is refused before any change.
 */
export function createBulkChanges(deps: BulkDeps): BulkChanges {
  const { writer, recorder, read } = deps;

  const change = (
    filter: QueueFilter,
    apply: (tables: Tables, seq: number) => boolean,
    options: BulkOptions,
    onUnit?: () => void,
  ): Promise<BulkResult> =>
    changeUnits(
      read.waiting,
      { filter, deferred: false },
      async (messages) => {
        const changed = await writer.run((tables) => messages.filter(({ seq }) => apply(tables, seq)).length);
        onUnit?.();
        return changed;
      },
      options,
    );

  return {
    count: async (filter) => {
      if (isEmpty(filter)) return noFilter();
      const { messages, sending } = await read.counts(filter);
      return messages - sending;
    },
    countDeferred: async (filter) => (isEmpty(filter) ? noFilter() : (await read.counts(filter)).deferred),
    purge: async (filter, reason, options = {}) => {
      if (isEmpty(filter)) return noFilter();
      const refusal = checkReason(reason);
      if (refusal !== null) return refusal;
      const diagnostic = `purged by the operator: ${reason.trim()}`;
      const fields = { reason: 'cancelled', diagnostic } as const;
      return change(
        filter,
        (tables, seq) => {
          const message = isWaiting(tables, seq) ? tables.messages.bySeq(seq) : null;
          return message !== null && recorder.message(tables, message, { kind: 'email_failed', fields });
        },
        options,
      );
    },
    reroute: async (filter, reroute, options = {}) => {
      if (isEmpty(filter)) return noFilter();
      const { pool = null } = reroute ?? {};
      const refusal = pool === null ? null : unknownPool('pool', pool, deps.config);
      if (refusal !== null) return refusal;
      const number =
        reroute === null
          ? null
          : await writer.run(
              ({ queueReroutes }): number | Refusal =>
                queueReroutes.number(reroute) ??
                refuse(
                  'LIMIT_REACHED',
                  `Queued messages have ${MAX_REROUTES} different reroutes already: wait until some are delivered, or reset them`,
                ),
            );
      if (isRefusal(number)) return number;
      return change(
        filter,
        (tables, seq) => tables.queueReroutes.assign(seq, number),
        options,
        deps.onRerouted,
      );
    },
    retry: async (filter, retry, options = {}) =>
      isEmpty(filter) ? noFilter() : changeEach(read.waiting, { filter, deferred: true }, retry, options),
  };
}

/** The messages that `read` returns, for `deferred` only those that can be retried. */
interface Selection {
  filter: QueueFilter;
  deferred: boolean;
}

/** Changes each message by itself, those of a unit at the same time. */
export function changeEach(
  read: ReadWaiting,
  selection: Selection,
  change: ChangeMessage,
  options: BulkOptions,
): Promise<BulkResult> {
  return changeUnits(
    read,
    selection,
    async (messages) => {
      const results = await Promise.all(messages.map(({ message_id }) => change(message_id)));
      return results.filter((result) => !isRefusal(result)).length;
    },
    options,
  );
}

/**
 * `change` returns how many messages of the unit it changed. Rejects with `PartlyDone` when it rejects after others were
 * changed.
 */
async function changeUnits(
  read: ReadWaiting,
  { filter, deferred }: Selection,
  change: (messages: readonly WaitingMessage[]) => Promise<number>,
  { after = 0, isOver = () => false }: BulkOptions,
): Promise<BulkResult> {
  const result = { changed: 0, skipped: 0 };
  for (let afterSeq = after; ; ) {
    const page = await read(filter, { deferred, afterSeq, limit: PAGE_SIZE });
    for (let n = 0; n < page.length; n += UNIT_SIZE) {
      const unit = page.slice(n, n + UNIT_SIZE);
      const changed = await unitAfter(partlyDone(result.changed, 'message', 'changed'), change(unit));
      result.changed += changed;
      result.skipped += unit.length - changed;
      afterSeq = unit.at(-1)?.seq ?? afterSeq;
      if (isOver()) return { ...result, next: afterSeq };
    }
    if (page.length < PAGE_SIZE) return { ...result, next: null };
  }
}

function isWaiting(tables: Tables, seq: number): boolean {
  return tables.queue.get(seq)?.lease === null;
}

function isEmpty(filter: QueueFilter): boolean {
  return Object.values(filter).every((value) => value === undefined);
}

function noFilter(): Refusal {
  return invalid('filter', 'must name an account, a destination, a domain or a campaign');
}

/** `host`, `host:port` or `[ip6]:port`; port 25 by default. Null: not a next hop. */
export function parseNextHop(text: string): { host: string; port: number } | null {
  const [, bracketed, plain, digits = '25'] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || !isNextHopHost(host) || port < 1 || port > 65_535) return null;
  return { host: host.toLowerCase(), port };
}
