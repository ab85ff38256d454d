import type { Block, ColumnBlock, Design } from './design.ts';

/*
 * Changes of a design, and its history. Each function returns a new design, and leaves the old one as it is; what did not
 * change is the same object.
 */

/** Where a block is: in the mail, or in a column of the block `parent`. */
export interface Place {
  readonly parent: string | null;
  readonly column: number;
  /** How many blocks of the list are before it. */
  readonly index: number;
}

/** An id that no other block has. */
function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => (byte % 36).toString(36)).join('');
}

/** A copy of a block with ids of its own, also for the blocks in it. */
export function withNewIds<B extends Block>(block: B): B;
export function withNewIds(block: Block): Block {
  if (block.type !== 'columns') return { ...block, id: newId() };
  const columns = block.columns.map((column) => ({
    ...column,
    blocks: column.blocks.map((inner) => ({ ...inner, id: newId() })),
  }));
  return { ...block, id: newId(), columns };
}

/** The blocks of the mail and, behind each block of columns, those in it. */
export function allBlocks({ blocks }: Design): Block[] {
  return blocks.flatMap((block) => [block, ...blocksIn(block)]);
}

/** The blocks in the columns of a block. */
export function blocksIn(block: Block): ColumnBlock[] {
  return block.type === 'columns' ? block.columns.flatMap((column) => column.blocks) : [];
}

export function findBlock(design: Design, id: string | null): Block | null {
  return allBlocks(design).find((block) => block.id === id) ?? null;
}

/** The list that a place is in. */
export function listAt(
  design: Design,
  { parent, column }: Pick<Place, 'parent' | 'column'>,
): readonly Block[] {
  if (parent === null) return design.blocks;
  const block = findBlock(design, parent);
  return (block?.type === 'columns' ? block.columns[column]?.blocks : undefined) ?? [];
}

export function placeOf(design: Design, id: string): Place | null {
  const at = design.blocks.findIndex((block) => block.id === id);
  if (at !== -1) return { parent: null, column: 0, index: at };
  for (const block of design.blocks) {
    if (block.type !== 'columns') continue;
    for (const [column, { blocks }] of block.columns.entries()) {
      const index = blocks.findIndex((inner) => inner.id === id);
      if (index !== -1) return { parent: block.id, column, index };
    }
  }
  return null;
}

/** Whether a block may be in a column. */
export function isColumnBlock(block: Block): block is ColumnBlock {
  return block.type !== 'columns' && block.type !== 'footer';
}

/** Whether a block may be at a place: columns are not in columns, and nothing is behind the footer. */
export function mayBeAt(design: Design, block: Block, place: Place): boolean {
  if (block.type === 'footer') return false;
  return place.parent === null ? place.index <= lastIndex(design) : isColumnBlock(block);
}

/** How many blocks are before the footer. */
export function lastIndex({ blocks }: Design): number {
  const footer = blocks.findIndex(({ type }) => type === 'footer');
  return footer === -1 ? blocks.length : footer;
}

/** The design with a block at a place, or the same one if the block may not be there. */
export function insert(design: Design, block: Block, place: Place): Design {
  if (!mayBeAt(design, block, place)) return design;
  const { parent, column, index } = place;
  if (parent === null) return { ...design, blocks: design.blocks.toSpliced(index, 0, block) };
  if (!isColumnBlock(block)) return design;
  return withColumn(design, parent, column, (blocks) => blocks.toSpliced(index, 0, block));
}

/** The design without a block; the footer remains. */
export function remove(design: Design, id: string): Design {
  const place = placeOf(design, id);
  if (place === null || findBlock(design, id)?.type === 'footer') return design;
  const { parent, column, index } = place;
  if (parent === null) return { ...design, blocks: design.blocks.toSpliced(index, 1) };
  return withColumn(design, parent, column, (blocks) => blocks.toSpliced(index, 1));
}

/** The design with a block moved to a place of the present design. */
export function move(design: Design, id: string, to: Place): Design {
  const from = placeOf(design, id);
  const block = findBlock(design, id);
  if (from === null || block === null || to.parent === id || !mayBeAt(design, block, to)) return design;
  const isSameList = from.parent === to.parent && from.column === to.column;
  const index = isSameList && from.index < to.index ? to.index - 1 : to.index;
  if (isSameList && index === from.index) return design;
  return insert(remove(design, id), block, { ...to, index });
}

export type Direction = 'up' | 'down' | 'left' | 'right';

/**
 * Where an arrow key moves a block; null: nowhere. Up and down: past its neighbor, at the ends of a column out of it. Left and
 * right: to the column at this side; to the right, a block that is next to columns enters them.
 */
export function placeTowards(design: Design, id: string, direction: Direction): Place | null {
  const from = placeOf(design, id);
  const block = findBlock(design, id);
  if (from === null || block === null) return null;
  const place = neighborPlace(design, from, direction);
  return place !== null && mayBeAt(design, block, place) ? place : null;
}

function neighborPlace(design: Design, from: Place, direction: Direction): Place | null {
  const list = listAt(design, from);
  const outer = from.parent === null ? null : placeOf(design, from.parent);
  if (direction === 'up' || direction === 'down') {
    if (direction === 'up' && from.index > 0) return { ...from, index: from.index - 1 };
    if (direction === 'down' && from.index < list.length - 1) return { ...from, index: from.index + 2 };
    return outer === null ? null : { ...outer, index: outer.index + (direction === 'up' ? 0 : 1) };
  }
  const side = direction === 'left' ? -1 : 1;
  if (outer !== null && from.parent !== null) {
    const column = from.column + side;
    const columns = findBlock(design, from.parent);
    const next = columns?.type === 'columns' ? columns.columns[column] : undefined;
    if (next !== undefined)
      return { parent: from.parent, column, index: Math.min(from.index, next.blocks.length) };
    return { ...outer, index: outer.index + (side === 1 ? 1 : 0) };
  }
  if (side === -1) return null;
  const [before, after] = [list[from.index - 1], list[from.index + 1]];
  if (before?.type === 'columns')
    return { parent: before.id, column: 0, index: before.columns[0]?.blocks.length ?? 0 };
  return after?.type === 'columns' ? { parent: after.id, column: 0, index: 0 } : null;
}

/** The design with a copy of a block behind it, and the copy's id. */
export function duplicate(design: Design, id: string): { design: Design; id: string } {
  const place = placeOf(design, id);
  const block = findBlock(design, id);
  if (place === null || block === null || block.type === 'footer') return { design, id };
  const copy = withNewIds(block);
  return { design: insert(design, copy, { ...place, index: place.index + 1 }), id: copy.id };
}

/** The design with another content of the block with this id. */
export function change(design: Design, block: Block): Design {
  const blocks = design.blocks.map((each) => {
    if (each.id === block.id) return block;
    if (each.type !== 'columns' || !isColumnBlock(block)) return each;
    if (!blocksIn(each).some(({ id }) => id === block.id)) return each;
    const columns = each.columns.map((column) => ({
      ...column,
      blocks: column.blocks.map((inner) => (inner.id === block.id ? block : inner)),
    }));
    return { ...each, columns };
  });
  return { ...design, blocks };
}

/** A block of columns with another number of them: the blocks of columns that are removed are in the last one. */
export function withColumnCount(block: Extract<Block, { type: 'columns' }>, count: number): typeof block {
  const { columns, split, ...rest } = block;
  const next = Array.from({ length: count }, (_, index) =>
    index < count - 1
      ? (columns[index] ?? { blocks: [] })
      : { blocks: columns.slice(index).flatMap(({ blocks }) => blocks) },
  );
  return { ...rest, columns: next, ...(split === undefined || count !== 2 ? {} : { split }) };
}

function withColumn(
  design: Design,
  parent: string,
  column: number,
  update: (blocks: ColumnBlock[]) => ColumnBlock[],
): Design {
  const blocks = design.blocks.map((block) => {
    if (block.id !== parent || block.type !== 'columns') return block;
    const columns = block.columns.map((each, index) =>
      index === column ? { ...each, blocks: update(each.blocks) } : each,
    );
    return { ...block, columns };
  });
  return { ...design, blocks };
}

/** A design with the block that is chosen in it. */
export interface Step {
  readonly design: Design;
  readonly chosen: string | null;
}

/** The design with those before and after it. */
export interface History extends Step {
  readonly past: readonly Step[];
  readonly future: readonly Step[];
  /** What the last change was about, such as the text of a block, and when it was. */
  readonly last: { readonly about: string; readonly at: number } | null;
}

/** Changes that can be undone. */
export const MAX_UNDO = 200;
/** Changes of one text with shorter pauses are undone together. */
const PAUSE_MS = 1000;

export function historyOf(design: Design): History {
  return { design, chosen: null, past: [], future: [], last: null };
}

/** The history after a change. `about`: changes about the same, shortly after each other, are undone together; '': alone. */
export function commit(history: History, next: Step, about = '', at = Date.now()): History {
  const { design, chosen, past, last } = history;
  if (next.design === design) return { ...history, ...next };
  const isSame = about !== '' && last?.about === about && at - last.at < PAUSE_MS;
  return {
    ...next,
    past: isSame ? past : [...past, { design, chosen }].slice(-MAX_UNDO),
    future: [],
    last: { about, at },
  };
}

export function undo(history: History): History {
  const { design, chosen, past, future } = history;
  const before = past.at(-1);
  if (before === undefined) return history;
  return { ...before, past: past.slice(0, -1), future: [{ design, chosen }, ...future], last: null };
}

export function redo(history: History): History {
  const { design, chosen, past, future } = history;
  const [next, ...later] = future;
  if (next === undefined) return history;
  return { ...next, past: [...past, { design, chosen }], future: later, last: null };
}
