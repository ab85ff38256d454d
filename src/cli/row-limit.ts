import { InvalidArgumentError } from 'commander';

/** How many rows a list prints when nothing is said, and at most. */
export const ROWS = 50;
const MAX_ROWS = 1000;

/** Reads `--limit`; what it throws commander answers as bad usage. */
export function rowLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ROWS)
    throw new InvalidArgumentError(`must be a number from 1 to ${MAX_ROWS}`);
  return limit;
}
