import { type Clock, iso, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { QueueKey } from '../../store/messages/queue.ts';
import type { QueueControlRow } from '../../store/messages/queue-controls.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * The operator's controls in force: what is paused, and which destinations' mail is rejected. They are stored in the
 * database, so that they survive a restart and another process can change them; the daemon keeps a copy, which it reads
 * again twice a second.
 */
export interface Controls {
  /** In the order in which they were created. */
  list(): readonly QueueControlRow[];
  /** The control of the key's account or destination; a pause precedes a rejection. Null: there is none. */
  ofKey(key: Pick<QueueKey, 'account_id' | 'destination'>): QueueControlRow | null;
  /** The pause of a site (by its full name or without its pool) or of its egress pool; null: there is none. */
  ofSite(site: { key: string; pool: string }): QueueControlRow | null;
  /** Reads the controls again. Returns whether they have changed. */
  refresh(): boolean;
  start(): void;
  stop(): Promise<void>;
}

export interface ControlsDeps {
  clock: Clock;
  log: Log;
  tables: Pick<Tables, 'queueControls' | 'settings'>;
  writer: Writer;
  /** Called after the copy has changed. */
  onChange(): void;
  /** Called after the operator has retried queued mail, for the suspended sites. */
  onRetried(): void;
}

const REFRESH_INTERVAL_MS = SECOND / 2;

/**
 * Has no controls until the first `refresh`: call it before the queue is read. `start` begins the loop, which also
 * deletes the rows of controls that have ended, and notices retries. Changes are logged before `onChange` is called.
 */
export function createControls(deps: ControlsDeps): Controls {
  const { clock, log, tables, writer, onChange, onRetried } = deps;
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
    list: () => rows,
    ofKey: (key) => index.ofKey(key),
    ofSite: (site) => index.ofSite(site),
    refresh,
    start: loop.start,
    stop: loop.stop,
  };
}

/** Finds the control that applies to a queue key or a site. */
export type ControlIndex = Pick<Controls, 'ofKey' | 'ofSite'>;

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
