import { delivered } from './attempts.ts';
import type { ExpectedMessage } from './scenario.ts';

/** Messages that are delivered at the first attempt, by the local parts `<prefix>0`, `<prefix>1`, …. */
export function many(
  count: number,
  prefix: string,
  more: Partial<ExpectedMessage> = {},
): Record<string, ExpectedMessage> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `${prefix}${n}`,
      { attempts: [delivered('mx dot 250')], status: 'delivered', ...more } satisfies ExpectedMessage,
    ]),
  );
}
