import type { Config } from '../../config/schema.ts';
import { type Clock, DAY, iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { Writer } from '../../store/database/writer.ts';
import {
  type ControlAction,
  type ControlScope,
  MAX_QUEUE_CONTROLS,
  type QueueControlRow,
} from '../../store/messages/queue-controls.ts';
import type { Tables } from '../../store/tables.ts';

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

/** Creates and removes controls of the queue. The daemon applies changes by other processes within a second. */
export interface ControlOrders {
  list(): QueueControl[];
  /**
   * Creates a control, or replaces the one with the same scope and target. `by`: the id of an API key, or the program
   * that the operator uses. Refuses invalid fields, an unknown account or pool, and more than `MAX_QUEUE_CONTROLS`.
   */
  create(input: QueueControlInput, by: string): Promise<QueueControl | Refusal>;
  /** Returns the removed control; refuses when there is none. */
  remove(scope: ControlScope, target: string): Promise<QueueControl | Refusal>;
}

export interface ControlOrdersDeps {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  config: Pick<Config, 'delivery' | 'regions' | 'secondary'>;
  /** Called after each change, when it is on disk. */
  onChange?: () => void;
}

const MAX_REASON_LENGTH = 200;
const MAX_TARGET_LENGTH = 1000;
const MAX_PAUSE_MS = 365 * DAY;

/**
 * Used by the API, and by the command line also while no daemon runs. Refuses a time that is past or more than a year
 * ahead, and rejections of anything but a destination. Rows of controls that have ended are removed by `create`.
 */
export function createControlOrders(deps: ControlOrdersDeps): ControlOrders {
  const { tables, writer, clock, onChange } = deps;
  return {
    list: () => tables.queueControls.list(clock.now()).map(presentControl),
    create: async (input, by) => {
      const target = checkControl(input, deps);
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
    },
    remove: async (scope, target) => {
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
    },
  };
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

/** Refuses a reason that is empty, too long or contains control characters; null: it is valid. */
export function checkReason(reason: string): Refusal | null {
  const text = reason.trim();
  if (text === '')
    return invalid(
      'reason',
      'must not be empty: it is shown to everyone who asks why mail waits or was purged',
    );
  if (text.length > MAX_REASON_LENGTH)
    return invalid('reason', `must have at most ${MAX_REASON_LENGTH} characters`);
  if (/\p{Cc}/u.test(text)) return invalid('reason', 'must not contain control characters');
  return null;
}

/** Validates the input. Returns the target in the form in which it is stored. */
function checkControl(
  { action, scope, target, reason, until }: QueueControlInput,
  { tables, clock, config }: ControlOrdersDeps,
): string | Refusal {
  const reasonFault = checkReason(reason);
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
export function unknownPool(
  field: string,
  name: string,
  config: ControlOrdersDeps['config'],
): Refusal | null {
  const pools = poolNames(config);
  if (pools.has(name)) return null;
  return invalid(field, `${name} is not an egress pool; the pools are ${[...pools].sort().join(', ')}`);
}

/** The egress pools that the configuration names. */
function poolNames({ delivery, regions, secondary }: ControlOrdersDeps['config']): Set<string> {
  return new Set([
    'default',
    ...delivery.egress.flatMap(({ pools }) => pools),
    ...regions.flatMap(({ pools }) => [pools.tx, pools.mk]),
    ...(secondary.type === 'builtin' ? [secondary.pool] : []),
  ]);
}
