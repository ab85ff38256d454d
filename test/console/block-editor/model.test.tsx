import { describe, expect, it } from 'vitest';
import type { Block, Design } from '../../../src/console/parts/block-editor/design.ts';
import {
  allBlocks,
  change,
  commit,
  duplicate,
  findBlock,
  historyOf,
  insert,
  MAX_UNDO,
  move,
  type Place,
  placeTowards,
  redo,
  remove,
  undo,
  withColumnCount,
} from '../../../src/console/parts/block-editor/model.ts';

const THEME = {
  accent: '#0055aa',
  background: '#eeeeee',
  text: '#111111',
  width: 600,
  font: 'system',
} as const;
const spacer = (id: string) => ({ id, type: 'spacer', height: 10 }) as const;
const columns = (id: string, ...lists: string[][]): Block => ({
  id,
  type: 'columns',
  columns: lists.map((ids) => ({ blocks: ids.map(spacer) })),
});
const FOOTER: Block = { id: 'footer', type: 'footer' };
const design = (...blocks: Block[]): Design => ({ version: 1, theme: THEME, blocks: [...blocks, FOOTER] });
const root = (index: number): Place => ({ parent: null, column: 0, index });

/** The ids of the blocks: `a b[c,d|e] footer`. */
function shown({ blocks }: Design): string {
  return blocks
    .map((block) =>
      block.type === 'columns'
        ? `${block.id}[${block.columns.map((column) => column.blocks.map(({ id }) => id).join(',')).join('|')}]`
        : block.id,
    )
    .join(' ');
}

describe('a design', () => {
  it('gets a block at any place before the footer, and none behind it', () => {
    const first = design(spacer('a'), columns('c', ['x'], []));
    expect(shown(insert(first, spacer('n'), root(0)))).toBe('n a c[x|] footer');
    expect(shown(insert(first, spacer('n'), { parent: 'c', column: 1, index: 0 }))).toBe('a c[x|n] footer');
    expect(insert(first, spacer('n'), root(3))).toBe(first);
    expect(insert(first, columns('d', [], []), { parent: 'c', column: 0, index: 0 })).toBe(first);
  });

  it('moves a block in its list, into columns and out of them', () => {
    const first = design(spacer('a'), spacer('b'), columns('c', ['x', 'y'], []));
    expect(shown(move(first, 'a', root(2)))).toBe('b a c[x,y|] footer');
    expect(shown(move(first, 'b', root(0)))).toBe('b a c[x,y|] footer');
    expect(shown(move(first, 'a', { parent: 'c', column: 0, index: 1 }))).toBe('b c[x,a,y|] footer');
    expect(shown(move(first, 'x', root(1)))).toBe('a x b c[y|] footer');
    expect(shown(move(first, 'x', { parent: 'c', column: 1, index: 0 }))).toBe('a b c[y|x] footer');
  });

  it('does not move the footer, columns into columns, or a block to where it is', () => {
    const first = design(spacer('a'), columns('c', ['x'], []), columns('d', [], []));
    expect(move(first, 'footer', root(0))).toBe(first);
    expect(move(first, 'd', { parent: 'c', column: 0, index: 0 })).toBe(first);
    expect(move(first, 'a', root(0))).toBe(first);
    expect(move(first, 'a', root(1))).toBe(first);
  });

  it('moves blocks by arrow keys: out of columns at their ends, and into those next to it', () => {
    const first = design(spacer('a'), columns('c', ['x'], ['y']));
    const after = (id: string, direction: 'up' | 'down' | 'left' | 'right') => {
      const place = placeTowards(first, id, direction);
      return place === null ? null : shown(move(first, id, place));
    };
    expect(after('a', 'up')).toBeNull();
    expect(after('a', 'down')).toBe('c[x|y] a footer');
    expect(after('a', 'right')).toBe('c[a,x|y] footer');
    expect(after('x', 'up')).toBe('a x c[|y] footer');
    expect(after('x', 'down')).toBe('a c[|y] x footer');
    expect(after('x', 'right')).toBe('a c[|x,y] footer');
    expect(after('y', 'right')).toBe('a c[x|] y footer');
    expect(after('x', 'left')).toBe('a x c[|y] footer');
    expect(after('c', 'down')).toBeNull();
    expect(after('footer', 'up')).toBeNull();
  });

  it('copies a block with other ids, also for the blocks in it', () => {
    const first = design(columns('c', ['x'], ['y']));
    const { design: next, id } = duplicate(first, 'c');
    const ids = allBlocks(next).map((block) => block.id);
    expect(new Set(ids).size).toBe(7);
    expect(next.blocks.map((block) => block.id)).toEqual(['c', id, 'footer']);
    expect(duplicate(first, 'footer').design).toBe(first);
  });

  it('keeps its footer, and the blocks of a column that is removed', () => {
    const first = design(columns('c', ['x'], ['y'], ['z']));
    expect(remove(first, 'footer')).toBe(first);
    expect(shown(remove(first, 'y'))).toBe('c[x||z] footer');
    const block = findBlock(first, 'c');
    if (block?.type !== 'columns') throw new Error('no columns');
    expect(shown(change(first, withColumnCount(block, 2)))).toBe('c[x|y,z] footer');
  });

  it('changes a block in a column', () => {
    const next = change(design(columns('c', ['x'], ['y'])), { id: 'y', type: 'spacer', height: 50 });
    expect(findBlock(next, 'y')).toEqual({ id: 'y', type: 'spacer', height: 50 });
    expect(shown(next)).toBe('c[x|y] footer');
  });
});

describe('its history', () => {
  const versions = Array.from({ length: MAX_UNDO + 5 }, (_, index) => design(spacer(`s${index}`)));

  it('undoes and repeats changes, with the block that was chosen', () => {
    let history = historyOf(design());
    history = commit(history, { design: versions[0] ?? design(), chosen: 's0' });
    history = commit(history, { design: versions[1] ?? design(), chosen: 's1' });
    expect(undo(history)).toMatchObject({ design: versions[0], chosen: 's0' });
    expect(redo(undo(history))).toMatchObject({ design: versions[1], chosen: 's1' });
    const other = commit(undo(history), { design: versions[2] ?? design(), chosen: null });
    expect(redo(other)).toBe(other);
  });

  it('undoes what was typed without a pause at once', () => {
    let history = historyOf(design());
    for (const [at, version] of versions.slice(0, 3).entries())
      history = commit(history, { design: version, chosen: null }, 'text a', at * 500);
    expect(undo(history).past).toEqual([]);
    history = commit(history, { design: versions[3] ?? design(), chosen: null }, 'text a', 10_000);
    history = commit(history, { design: versions[4] ?? design(), chosen: null }, 'text b', 10_100);
    expect(undo(history).design).toBe(versions[3]);
    expect(undo(undo(history)).design).toBe(versions[2]);
  });

  it('has a bound', () => {
    let history = historyOf(design());
    for (const version of versions) history = commit(history, { design: version, chosen: null });
    expect(history.past).toHaveLength(MAX_UNDO);
    expect(undo({ ...history, past: [] })).toMatchObject({ design: history.design });
  });
});
