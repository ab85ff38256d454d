import { InvalidArgumentError } from 'commander';
import type { CliContext } from '../context.ts';

/** Default and maximum number of rows of a list. */
export const ROWS = 50;
const MAX_ROWS = 1000;

/** Parses `--limit`. Throws InvalidArgumentError. */
export function rowLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ROWS)
    throw new InvalidArgumentError(`Must be a number from 1 to ${MAX_ROWS}`);
  return limit;
}

/** Notes that a list has more than the `limit` rows that were shown. */
export function noteMore(context: CliContext, limit: number): void {
  const option = limit < MAX_ROWS ? `--limit shows up to ${MAX_ROWS}` : 'filters narrow the list';
  context.note(`There are more than ${limit}: ${option}`);
}
