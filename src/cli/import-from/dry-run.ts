import { recordOf } from '../../core/record-of.ts';
import { accountLimitReached, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { COUNTED_RESOURCES, type CountedResource } from '../../store/account-limits.ts';
import type { MayAdd, Tables } from '../../store/tables.ts';
import type { Opened } from '../context.ts';

/** Returned by each unit of work, so that the writer rolls it back. */
const ROLL_BACK = refuse('INVALID_STATE', 'dry run');

/**
 * The parts of a command whose units of work are done and rolled back. Limits count what earlier units would have added; a
 * unit does not see their rows.
 */
export function withoutTrace(opened: Opened): Opened {
  const { writer, limits } = opened;
  const added = recordOf(COUNTED_RESOURCES, () => 0);
  let adding = new Set<CountedResource>();
  const run = async <Value>(
    unit: (tx: Tables) => Value extends PromiseLike<unknown> ? never : Value,
    share?: string,
  ): Promise<Value> => {
    const done: Value[] = [];
    const outcome = await writer.run((tx): Refusal => {
      adding = new Set();
      const value = unit(tx);
      done.push(value);
      if (isRefusal(value)) return value;
      for (const resource of adding) added[resource]++;
      return ROLL_BACK;
    }, share);
    const [value] = done;
    // A unit without a result was not run: the writer rejects then.
    return (outcome === ROLL_BACK ? value : outcome) as Value;
  };
  const mayAdd =
    (resource: CountedResource): MayAdd =>
    (tx, accountId) => {
      const limit = limits.of(accountId)[resource];
      if (limit !== null && tx.accountLimits.count(resource, accountId) + added[resource] >= limit)
        return accountLimitReached(resource, limit);
      adding.add(resource);
      return null;
    };
  return {
    ...opened,
    writer: { ...writer, run },
    limits: { ...limits, mayAdd: recordOf(COUNTED_RESOURCES, mayAdd) },
  };
}
