import type { Config } from '../config/schema.ts';
import { isNextHopHost } from '../config/setting-types.ts';
import { DAY, iso, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import { checkReason } from '../core/reason.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import { partlyDone, unitAfter } from '../store/database/failure.ts';
import type { QueueKey } from '../store/messages/queue.ts';
import {
  type ControlAction,
  type ControlScope,
  MAX_QUEUE_CONTROLS,
  MAX_REROUTES,
  type QueueControlRow,
  type Reroute,
} from '../store/messages/queue-controls.ts';
import type { QueueFilter } from '../store/messages/queue-list.ts';
import type { Tables } from '../store/tables.ts';

/*
 * The operator's control of the queue: which controls are in force (`createControls`), how they are created and removed
 * (`createControlOrders`), and changes of many messages (`createBulkChanges`).
 */

export type Controls = ReturnType<typeof createControls>;

const REFRESH_INTERVAL_MS = SECOND / 2;

/**
 * The operator's controls in force: what is paused, and which destinations' mail is rejected. They are stored in the
 * database, so that they survive a restart and another process can change them; the daemon keeps a copy, which it reads
 * again twice a second.
 *
 * Has no controls until the first `refresh`: call it before the queue is read. `start` begins the loop, which also
 * deletes the rows of controls that have ended, and notices retries. Changes are logged before `onChange` is called.
 */
export function createControls(
  { clock, log, tables, writer }: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'>,
  {
    onChange,
    onRetried,
  }: {
    /** Called after the copy has changed. */
    onChange(): void;
    /** Called after the operator has retried queued mail, for the suspended sites. */
    onRetried(): void;
  },
) {
  let rows: readonly QueueControlRow[] = [];
  let version = '[]';
  let index = createControlIndex(rows);
  let retries = tables.settings.retries();
  const loop = createLoop({
    name: 'queue-controls',
    run: async () => {
      refresh();
      noticeRetries();
      const now = clock.now();
      // `list` does not return controls that have ended; their rows are removed here.
      if (tables.queueControls.count() > rows.length)
        await writer.run(({ queueControls }) => queueControls.removeEnded(now));
    },
    intervalMs: REFRESH_INTERVAL_MS,
    log,
  });

  /** Reads the controls again. Returns whether they have changed. */
  function refresh(): boolean {
    const next = tables.queueControls.list(clock.now());
    const nextVersion = JSON.stringify(next);
    if (nextVersion === version) return false;
    logChanges(log, rows, next);
    rows = next;
    version = nextVersion;
    index = createControlIndex(rows);
    onChange();
    return true;
  }

  function noticeRetries(): void {
    const next = tables.settings.retries();
    if (next === retries) return;
    retries = next;
    onRetried();
  }

  return {
    /** In the order in which they were created. */
    list: (): readonly QueueControlRow[] => rows,
    ofKey: (key: Parameters<ControlIndex['ofKey']>[0]) => index.ofKey(key),
    ofSite: (site: Parameters<ControlIndex['ofSite']>[0]) => index.ofSite(site),
    refresh,
    start: loop.start,
    stop: loop.stop,
  };
}

/** Finds the control that applies to a queue key or a site. */
export interface ControlIndex {
  /** The control of the key's account or destination; a pause precedes a rejection. Null: there is none. */
  ofKey(key: Pick<QueueKey, 'account_id' | 'destination'>): QueueControlRow | null;
  /** The pause of a site (by its full name or without its pool) or of its egress pool; null: there is none. */
  ofSite(site: { key: string; pool: string }): QueueControlRow | null;
}

/**
 * A fixed index of `rows`: it does not notice when one of them is changed, removed or ends. Without rows a lookup costs
 * nothing.
 */
export function createControlIndex(rows: readonly QueueControlRow[]): ControlIndex {
  const controls = new Map(rows.map((row) => [`${row.scope} ${row.target}`, row]));
  const find = (scope: QueueControlRow['scope'], target: string) =>
    controls.get(`${scope} ${target}`) ?? null;
  return {
    ofKey: ({ account_id, destination }) =>
      // Called for every key that is read: almost always there is no control.
      controls.size === 0 ? null : (find('account', account_id) ?? find('destination', destination)),
    ofSite: ({ key, pool }) =>
      controls.size === 0
        ? null
        : (find('pool', pool) ?? find('site', key) ?? find('site', siteWithoutPool(key, pool))),
  };
}

/** The name of a site is that of its hosts or shaping profile, followed by ` via <pool>` (scheduling/sites). */
export function siteWithoutPool(key: string, pool: string): string {
  const suffix = ` via ${pool}`;
  return key.endsWith(suffix) ? key.slice(0, -suffix.length) : key;
}

/** `mail to example.net is paused by the operator until 2026-02-01T12:00:00.000Z: maintenance`. */
export function describeControl({ scope, target, action, reason, until }: QueueControlRow): string {
  const subject = {
    destination: `mail to ${target}`,
    site: `mail to the site ${target}`,
    account: `mail of account ${target}`,
    pool: `mail through the egress pool ${target}`,
  }[scope];
  const state = action === 'pause' ? 'paused' : 'rejected';
  return `${subject} is ${state} by the operator${until === null ? '' : ` until ${iso(until)}`}: ${reason}`;
}

/** The audit trail: each control that appeared, changed or ended, whichever process changed it. */
function logChanges(log: Log, before: readonly QueueControlRow[], after: readonly QueueControlRow[]): void {
  const keyOf = (row: QueueControlRow) => JSON.stringify(row);
  const known = new Set(before.map(keyOf));
  const current = new Set(after.map(keyOf));
  for (const row of after) if (!known.has(keyOf(row))) log.warn(fieldsOf(row), 'queue control in force');
  for (const row of before) {
    const isReplaced = after.some(({ scope, target }) => scope === row.scope && target === row.target);
    if (!current.has(keyOf(row)) && !isReplaced) log.warn(fieldsOf(row), 'queue control ended');
  }
}

function fieldsOf({ scope, target, action, reason, until, created_by }: QueueControlRow) {
  return { scope, target, action, reason, until: until === null ? null : iso(until), createdBy: created_by };
}

/** A control as the API and the command line present it. */
export interface QueueControl {
  action: ControlAction;
  scope: ControlScope;
  target: string;
  reason: string;
  /** ISO 8601; null: until it is removed. */
  until: string | null;
  createdAt: string;
  createdBy: string;
}

export interface QueueControlInput {
  action: ControlAction;
  scope: ControlScope;
  target: string;
  reason: string;
  /** Epoch ms; null: until it is removed. */
  until: number | null;
}

const SHOWN = 'it is shown to everyone who asks why mail waits or was purged';
const MAX_TARGET_LENGTH = 1000;
const MAX_PAUSE_MS = 365 * DAY;

/** The settings that determine the egress pools. */
type PoolConfig = Pick<Config, 'delivery' | 'regions' | 'secondary'>;

type OrdersContext = Pick<Context, 'clock' | 'tables' | 'writer'> & { config: PoolConfig };

export type ControlOrders = ReturnType<typeof createControlOrders>;

/**
 * Creates and removes controls of the queue, for the API, and for the command line also while no daemon runs: the daemon
 * applies changes by other processes within a second. `onChange` is called after each change, when it is on disk.
 */
export function createControlOrders(context: OrdersContext, onChange?: () => void) {
  const { tables, writer, clock } = context;

  const list = (): QueueControl[] => tables.queueControls.list(clock.now()).map(presentControl);

  /**
   * Creates a control, or replaces the one with the same scope and target. `by`: the id of an API key, or the program
   * that the operator uses. Refuses invalid fields, a time that is past or more than a year ahead, rejections of anything
   * but a destination, an unknown account or pool, and more than `MAX_QUEUE_CONTROLS`. Rows of controls that have ended are
   * removed.
   */
  async function create(input: QueueControlInput, by: string): Promise<QueueControl | Refusal> {
    const target = checkControl(input, context);
    if (isRefusal(target)) return target;
    const { scope, action, until } = input;
    const reason = input.reason.trim();
    const created_at = clock.now();
    const row = { scope, target, action, reason, until, created_at, created_by: by };
    const created = await writer.run(({ queueControls }): QueueControl | Refusal => {
      queueControls.removeEnded(clock.now());
      if (queueControls.get(scope, target) === null && queueControls.count() >= MAX_QUEUE_CONTROLS)
        return refuse(
          'LIMIT_REACHED',
          `There are ${MAX_QUEUE_CONTROLS} queue controls already: remove one with "postrider queue resume"`,
        );
      queueControls.put(row);
      return presentControl(row);
    });
    onChange?.();
    return created;
  }

  /** Returns the removed control; refuses when there is none. */
  async function remove(scope: ControlScope, target: string): Promise<QueueControl | Refusal> {
    const name = normalizedTarget(scope, target);
    const removed = await writer.run(({ queueControls }): QueueControl | Refusal => {
      const row = queueControls.get(scope, name);
      if (row === null)
        return refuse('NOT_FOUND', `${NOT_IN_FORCE[scope](name)}: see "postrider queue pauses"`);
      queueControls.remove(scope, name);
      return presentControl(row);
    });
    onChange?.();
    return removed;
  }

  return { list, create, remove };
}

/** States that nothing is paused or rejected for the target, a clause. */
const NOT_IN_FORCE: Readonly<Record<ControlScope, (target: string) => string>> = {
  destination: (target) => `Mail to ${target} is neither paused nor rejected`,
  account: (target) => `Mail of account ${target} is not paused`,
  site: (target) => `Mail to the site ${target} is not paused`,
  pool: (target) => `Mail from the egress pool ${target} is not paused`,
};

/** Converts the times of the row to ISO 8601. Used by the API, `/readyz` and the explanations of waiting mail. */
export function presentControl(row: QueueControlRow): QueueControl {
  const { action, scope, target, reason, until, created_at, created_by } = row;
  return {
    action,
    scope,
    target,
    reason,
    until: until === null ? null : iso(until),
    createdAt: iso(created_at),
    createdBy: created_by,
  };
}

/** Validates the input. Returns the target in the form in which it is stored. */
function checkControl(
  { action, scope, target, reason, until }: QueueControlInput,
  { tables, clock, config }: OrdersContext,
): string | Refusal {
  const reasonFault = checkReason(reason, SHOWN);
  if (reasonFault !== null) return reasonFault;
  if (until !== null && until <= clock.now()) return invalid('until', 'must be in the future');
  if (until !== null && until > clock.now() + MAX_PAUSE_MS) return invalid('until', 'must be within a year');
  if (action === 'bounce' && scope !== 'destination')
    return invalid('scope', 'must be "destination": only the mail to a destination can be rejected');
  const name = normalizedTarget(scope, target);
  if (name === '' || name.length > MAX_TARGET_LENGTH)
    return invalid('target', `must have 1 to ${MAX_TARGET_LENGTH} characters`);
  if (scope === 'destination' && normalizeDomain(target) === null)
    return invalid('target', `${target} is not a domain name`);
  if (scope === 'account' && tables.accounts.get(name) === null)
    return refuse('ACCOUNT_NOT_FOUND', `There is no account ${name}`);
  return (scope === 'pool' ? unknownPool('target', name, config) : null) ?? name;
}

function normalizedTarget(scope: ControlScope, target: string): string {
  return scope === 'destination' ? (normalizeDomain(target) ?? target) : target.trim();
}

/** Refuses a name that no pool has, with the names of the pools; null: there is such a pool. */
export function unknownPool(field: string, name: string, config: PoolConfig): Refusal | null {
  const pools = poolNames(config);
  if (pools.has(name)) return null;
  return invalid(field, `${name} is not an egress pool; the pools are ${[...pools].sort().join(', ')}`);
}

/** The egress pools that the configuration names. */
function poolNames({ delivery, regions, secondary }: PoolConfig): Set<string> {
  return new Set([
    'default',
    ...delivery.egress.flatMap(({ pools }) => pools),
    ...regions.flatMap(({ pools }) => [pools.tx, pools.mk]),
    ...(secondary.type === 'builtin' ? [secondary.pool] : []),
  ]);
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

export type BulkChanges = ReturnType<typeof createBulkChanges>;

interface BulkParts {
  config: PoolConfig;
  recorder: Recorder;
  /** Reads of the queue, which may take long: on reader threads in the daemon. */
  read: {
    waiting: ReadWaiting;
    counts(filter: QueueFilter): Promise<{ messages: number; sending: number; deferred: number }>;
  };
  /** Called after each unit with rerouted messages, which are read again. */
  onRerouted?: () => void;
}

/**
 * Changes of many waiting messages: purging, rerouting and retrying by filter. Messages that are being sent are never changed.
 * The work is done in small units in the order of acceptance, so that other writes are not delayed; a call that ends early
 * states where the next one continues.
 *
 * A call reads pages of 200 messages and changes 20 of them in each unit of work; without `isOver` it ends with the last
 * match. An empty filter, an unknown pool or an invalid reason is refused before any change.
 */
export function createBulkChanges({ writer }: Pick<Context, 'writer'>, parts: BulkParts) {
  const { recorder, read } = parts;

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

  /** Counts the messages that match and are not being sent. At least one field of the filter must be set. */
  async function count(filter: QueueFilter): Promise<number | Refusal> {
    if (isEmpty(filter)) return noFilter();
    const { messages, sending } = await read.counts(filter);
    return messages - sending;
  }

  /** Counts those of them that are deferred and not held. */
  async function countDeferred(filter: QueueFilter): Promise<number | Refusal> {
    return isEmpty(filter) ? noFilter() : (await read.counts(filter)).deferred;
  }

  /** Ends the messages with `email_failed`, reason `cancelled`; `reason` is in the diagnostic of the event. */
  async function purge(
    filter: QueueFilter,
    reason: string,
    options: BulkOptions = {},
  ): Promise<BulkResult | Refusal> {
    if (isEmpty(filter)) return noFilter();
    const refusal = checkReason(reason, SHOWN);
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
  }

  /** Sends the messages through another next hop or egress pool from now on; null: ends the reroute. */
  async function reroute(
    filter: QueueFilter,
    route: Reroute | null,
    options: BulkOptions = {},
  ): Promise<BulkResult | Refusal> {
    if (isEmpty(filter)) return noFilter();
    const { pool = null } = route ?? {};
    const refusal = pool === null ? null : unknownPool('pool', pool, parts.config);
    if (refusal !== null) return refusal;
    const number =
      route === null
        ? null
        : await writer.run(
            ({ queueReroutes }): number | Refusal =>
              queueReroutes.number(route) ??
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
      parts.onRerouted,
    );
  }

  /** Retries the deferred messages that are not held; `retryOne` makes one of them due. */
  async function retry(
    filter: QueueFilter,
    retryOne: ChangeMessage,
    options: BulkOptions = {},
  ): Promise<BulkResult | Refusal> {
    return isEmpty(filter)
      ? noFilter()
      : changeEach(read.waiting, { filter, deferred: true }, retryOne, options);
  }

  return { count, countDeferred, purge, reroute, retry };
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
