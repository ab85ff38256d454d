import { invalid, type Refusal } from './refusal.ts';

const MAX_REASON_LENGTH = 200;

/**
 * Refuses a reason that is empty, too long or contains control characters; null: it is valid. `use`: why it must not be
 * empty, a clause.
 */
export function checkReason(reason: string, use: string): Refusal | null {
  const text = reason.trim();
  if (text === '') return invalid('reason', `must not be empty: ${use}`);
  if (text.length > MAX_REASON_LENGTH)
    return invalid('reason', `must have at most ${MAX_REASON_LENGTH} characters`);
  if (/\p{Cc}/u.test(text)) return invalid('reason', 'must not contain control characters');
  return null;
}
