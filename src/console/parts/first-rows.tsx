import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';

const FIRST_ROWS = 10;

interface FirstRowsProps<Row> {
  rows: readonly Row[];
  /** Shows the rows. */
  children: (rows: readonly Row[]) => ComponentChildren;
}

/** The first rows of a list that is one of several on a page, and the others on request. */
export function FirstRows<Row>({ rows, children }: FirstRowsProps<Row>) {
  const { t } = useTexts();
  const [isAll, setAll] = useState(false);
  const isCut = !isAll && rows.length > FIRST_ROWS;
  return (
    <div class="rows">
      {children(isCut ? rows.slice(0, FIRST_ROWS) : rows)}
      {isCut && (
        <p class="actions pager screen">
          <button class="button" type="button" onClick={() => setAll(true)}>
            {t('app.rows.all', { count: rows.length })}
          </button>
        </p>
      )}
    </div>
  );
}
