/**
 * What a check finds. A check asks a DNS view and judges what it says; it changes nothing and knows nothing of
 * the database. Its hint speaks to whoever has the zone open in another window: what is wrong and what to
 * write there instead.
 */
export type CheckName = 'dkim' | 'spf' | 'dmarc' | 'mx' | 'tracking' | 'altDkim' | 'returnPathSpf';

/** `unknown`: DNS did not say. Then the last finding stands, whichever it was. */
export type Verdict = 'pass' | 'fail' | 'unknown';

export interface Finding {
  check: CheckName;
  verdict: Verdict;
  /** The record that would pass; where the name has a record of the kind already, merged with that. */
  expected: string;
  /** What is there, several records one a line; null: nothing. */
  found: string | null;
  /** What to do, '' when there is nothing to do. */
  hint: string;
}

/** A finding without the name of its check. */
export type Judgement = Omit<Finding, 'check' | 'expected'>;

export function pass(found: string | null, hint = ''): Judgement {
  return { verdict: 'pass', found, hint };
}

export function fail(found: string | null, hint: string): Judgement {
  return { verdict: 'fail', found, hint };
}

export function unknown(why: string): Judgement {
  return {
    verdict: 'unknown',
    found: null,
    hint: `Nothing can be said at present: ${why}. The last result stands, and the check is made again soon.`,
  };
}

/** "a", "a and b", "a, b and c". */
export function listed(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}
