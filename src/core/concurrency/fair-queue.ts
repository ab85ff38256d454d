/**
 * Items that wait, in turns between their owners (accounts, networks, clients): the backlog of one owner delays another
 * one by an item at most. The items of an owner stay in order. An owner whose item was taken comes last.
 *
 * Begins empty and has no bounds: callers compare `size` and `countOf` with their limits. Keeps an entry for each owner
 * with items.
 */
export function createFairQueue<Item>() {
  /** By owner, without empty lists; the owner whose turn it is comes first. */
  const lists = new Map<string, Item[]>();
  let size = 0;

  /** Puts the items of an owner back, as the last of all; forgets an owner without items. */
  function putLast(owner: string, items: Item[]): void {
    // The only owner is the last one already.
    if (lists.size === 1 && items.length > 0) return;
    lists.delete(owner);
    if (items.length > 0) lists.set(owner, items);
  }

  /** The owner whose item is next: of those with the lowest rank, the first. */
  function next(rank?: Rank<Item>): string | undefined {
    let found: string | undefined;
    let lowest = Number.POSITIVE_INFINITY;
    for (const [owner, items] of lists) {
      const own = rank === undefined ? 0 : rank(owner, items);
      if (own === null || own >= lowest) continue;
      found = owner;
      lowest = own;
      if (own <= 0) break;
    }
    return found;
  }

  /** Takes an item of an owner, by default the first; the owner then comes last. */
  function takeOf(owner: string, index = 0): Item | undefined {
    const items = lists.get(owner);
    if (items === undefined || index >= items.length) return undefined;
    const item = index === 0 ? items.shift() : items.splice(index, 1)[0];
    size--;
    putLast(owner, items);
    return item;
  }

  return {
    /** Items of all owners. */
    get size(): number {
      return size;
    },
    /** Number of owners with items. */
    get owners(): number {
      return lists.size;
    },
    countOf: (owner: string): number => lists.get(owner)?.length ?? 0,
    /** The first item of an owner. */
    first: (owner: string): Item | undefined => lists.get(owner)?.[0],
    push: (owner: string, item: Item): void => {
      const items = lists.get(owner);
      if (items === undefined) lists.set(owner, [item]);
      else items.push(item);
      size++;
    },
    /** Puts an item before the others of its owner. */
    putBack: (owner: string, item: Item): void => {
      const items = lists.get(owner);
      if (items === undefined) lists.set(owner, [item]);
      else items.unshift(item);
      size++;
    },
    next,
    takeOf,
    /** Takes the first item of the next owner; undefined: there is none, or `rank` excludes all owners. */
    take: (rank?: Rank<Item>): { owner: string; item: Item } | undefined => {
      const owner = next(rank);
      const item = owner === undefined ? undefined : takeOf(owner);
      return owner === undefined || item === undefined ? undefined : { owner, item };
    },
    /** The owner misses its turn. */
    skip: (owner: string): void => putLast(owner, lists.get(owner) ?? []),
    /** Removes an item; returns false when it does not wait. The order of the owners does not change. */
    remove: (owner: string, item: Item): boolean => {
      const items = lists.get(owner);
      const at = items?.indexOf(item) ?? -1;
      if (items === undefined || at < 0) return false;
      items.splice(at, 1);
      if (items.length === 0) lists.delete(owner);
      size--;
      return true;
    },
    /** Removes and returns the items that `matches` accepts. The order of the owners does not change. */
    drop: (matches: (item: Item) => boolean): Item[] => {
      const dropped: Item[] = [];
      for (const [owner, items] of lists) {
        const kept = items.filter((item) => !matches(item));
        if (kept.length === items.length) continue;
        dropped.push(...items.filter(matches));
        if (kept.length > 0) lists.set(owner, kept);
        else lists.delete(owner);
      }
      size -= dropped.length;
      return dropped;
    },
    /** The owners in the order of their turns, with their items. */
    entries: (): Iterable<readonly [owner: string, items: readonly Item[]]> => lists,
    /** Removes and returns all items. */
    clear: (): Item[] => {
      const items = [...lists.values()].flat();
      lists.clear();
      size = 0;
      return items;
    },
  };
}

/** The rank of an owner from 0, of which the lowest is next; null: none of its items may be taken now. */
export type Rank<Item> = (owner: string, items: readonly Item[]) => number | null;
