import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import { mergedRows } from './merged-rows.ts';
import './live-rows.css';

interface LiveRowsProps<Row> {
  /** The list: its path with its filters. Other filters begin again with all rows. */
  of: string;
  /** Newest first, as they were read last. */
  rows: readonly Row[];
  /** Whether the rows are those of other filters, see `Loaded`. */
  isStale: boolean;
  keyOf: (row: Row) => string | number;
  /** How many times the person changed the list: the rows that are read after a change are all shown. */
  changes?: number;
  /** Shows the rows. */
  children: (rows: readonly Row[]) => ComponentChildren;
}

/** How many times the person changed a list, for its `LiveRows`; its `reload` reads the list after a change. */
export function useChanges(read: () => void): { changes: number; reload: () => void } {
  const [changes, setChanges] = useState(0);
  const reload = () => {
    setChanges((last) => last + 1);
    read();
  };
  return { changes, reload };
}

/**
 * The rows of a list that is read again while it is shown. New rows do not move the others: they wait behind a button that
 * shows how many there are.
 */
export function LiveRows<Row>({ of, rows, isStale, keyOf, changes = 0, children }: LiveRowsProps<Row>) {
  const { plural } = useTexts();
  const shown = useRef<{ of: string; rows: readonly Row[] }>({ of, rows: [] });
  const [, setTurn] = useState(0);
  /** `before`: the rows before the last change of the person, until others are read. */
  const change = useRef<{ count: number; before: readonly Row[] | null }>({ count: changes, before: null });
  if (isStale) return <>{children(rows)}</>;
  if (change.current.count !== changes) change.current = { count: changes, before: rows };
  const { before } = change.current;
  const isChanged = before !== null && before !== rows;
  if (isChanged) change.current.before = null;
  const last = shown.current.of === of && !isChanged ? shown.current.rows : [];
  const merged = last.length === 0 ? rows : mergedRows(last, rows, keyOf);
  shown.current = { of, rows: merged };
  const known = new Set(merged.map(keyOf));
  const waiting = rows.filter((row) => !known.has(keyOf(row))).length;
  return (
    <>
      <div class="live" role="status">
        {waiting > 0 && (
          <button
            type="button"
            class="button small"
            onClick={() => {
              shown.current = { of, rows: [] };
              setTurn((turn) => turn + 1);
            }}
          >
            <Icon name="arrow-up" />
            {plural('app.live.new', waiting)}
          </button>
        )}
      </div>
      {children(merged)}
    </>
  );
}
