/**
 * Counts the places of a pool that all accounts share. A person and the members of an account have at most a share of it, so
 * that one account, which can invite people, leaves places for others. Some places are for operators of the installation,
 * who belong to no account's share.
 */
export interface SharedPool {
  /** Takes a place and returns the function that returns it, or whose places are all in use. */
  take(holder: Holder): (() => void) | Shortage;
}

export interface Holder {
  personId: string;
  /** Null: the installation. */
  accountId: string | null;
  /** Whether the person is an operator of the installation. */
  operator: boolean;
}

export type Shortage = 'person' | 'account' | 'pool';

export interface PoolLimits {
  total: number;
  ofPerson: number;
  ofAccount: number;
  /** Places that only operators may take. */
  forOperators: number;
}

/**
 * Begins with all places free. `take` compares every holder, which is fast for a few hundred places. Calling the
 * returned function again has no effect.
 */
export function createSharedPool({ total, ofPerson, ofAccount, forOperators }: PoolLimits): SharedPool {
  const taken = new Set<Holder>();
  const count = (matches: (holder: Holder) => boolean) => [...taken].filter(matches).length;
  const isMemberOf = (accountId: string | null) => (holder: Holder) =>
    !holder.operator && holder.accountId === accountId;

  function shortageOf({ personId, accountId, operator }: Holder): Shortage | null {
    if (count((holder) => holder.personId === personId) >= ofPerson) return 'person';
    if (taken.size >= total) return 'pool';
    if (operator) return null;
    if (count(isMemberOf(accountId)) >= ofAccount) return 'account';
    return count((holder) => !holder.operator) >= total - forOperators ? 'pool' : null;
  }

  return {
    take: (holder) => {
      const shortage = shortageOf(holder);
      if (shortage !== null) return shortage;
      const place = { ...holder };
      taken.add(place);
      return () => {
        taken.delete(place);
      };
    },
  };
}
