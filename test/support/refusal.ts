import { isRefusal, type Refusal } from '../../src/core/refusal.ts';

/** Returns a result that is not a refusal; throws otherwise. */
export function granted<Value>(result: Value | Refusal): Value {
  if (isRefusal(result)) throw new Error(`refused: ${result.code} ${result.message}`);
  return result;
}

/** Returns a result that is a refusal; throws otherwise. */
export function refused(result: unknown): Refusal {
  if (!isRefusal(result)) throw new Error('the result is not a refusal');
  return result;
}
