import { JsonElement } from '../../body/json-parse.ts';

/** Items in progress at the same time, so that they share commits. Each item waits for its own turn. */
const MAX_ITEMS_IN_PROGRESS = 32;
/** Bytes of the items in progress, at least one item: bounds the size of a commit. */
const MAX_BYTES_IN_PROGRESS = 512 * 1024;

/**
 * Calls `send` for each item of a list that a route reads as `JsonElement`s, some at a time; the results are in the order of
 * the items. `send` must not reject: items before may have been accepted.
 */
export async function sendItems<Result>(
  items: readonly unknown[],
  send: (item: JsonElement, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const group of groupsOf(items)) {
    const from = results.length;
    results.push(...(await Promise.all(group.map((item, index) => send(item, from + index)))));
  }
  return results;
}

/** Groups of items that are in progress together, in order. */
function* groupsOf(items: readonly unknown[]): Generator<JsonElement[]> {
  let group: JsonElement[] = [];
  let bytes = 0;
  for (const item of items) {
    if (!(item instanceof JsonElement)) throw new Error('the list of the route is not read as elements');
    if (
      group.length === MAX_ITEMS_IN_PROGRESS ||
      (group.length > 0 && bytes + item.byteLength > MAX_BYTES_IN_PROGRESS)
    ) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(item);
    bytes += item.byteLength;
  }
  if (group.length > 0) yield group;
}
