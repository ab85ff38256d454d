import { InvalidArgumentError } from 'commander';

/** Default and maximum number of rows of a list. */
export const ROWS = 50;
const MAX_ROWS = 1000;

/** Parses `--limit`. Throws InvalidArgumentError. */
export function rowLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ROWS)
    throw new InvalidArgumentError(`must be a number from 1 to ${MAX_ROWS}`);
  return limit;
}
