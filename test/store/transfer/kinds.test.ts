import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  columnsOf,
  TRANSFER_TYPES,
  type TransferChild,
  type TransferKind,
  transferKind,
} from '../../../src/store/transfer/kinds.ts';
import { COLUMNS_NOT_EXPORTED, NOT_EXPORTED } from '../../../src/store/transfer/policies.ts';
import { RECORD_SCHEMAS } from '../../../src/transfer/records.ts';
import { columnsByTable } from '../../support/schema.ts';
import { startStore } from '../../support/store.ts';

const schema = columnsByTable();
const kinds: (TransferKind | TransferChild)[] = TRANSFER_TYPES.flatMap((type) => [
  transferKind(type),
  ...Object.values(transferKind(type).children ?? {}),
]);

describe('an exported account', () => {
  it('has every table of the schema, or the reason why not', () => {
    const exported = kinds.map(({ table }) => table);
    expect([...exported, ...Object.keys(NOT_EXPORTED)].toSorted()).toEqual([...schema.keys()].toSorted());
  });

  it('names columns that exist', () => {
    const named = kinds.flatMap(({ table, fixed = {}, read = {} }) =>
      [...Object.keys(fixed), ...Object.keys(read)].map((column) => `${table}.${column}`),
    );
    const unknown = [...named, ...Object.keys(COLUMNS_NOT_EXPORTED)].filter((name) => {
      const [table = '', column = ''] = name.split('.');
      return !schema.get(table)?.includes(column);
    });
    expect(unknown).toEqual([]);
  });

  // The columns of moved messages have other names in a record.
  it.each(TRANSFER_TYPES.filter((type) => type !== 'moved_message'))(
    'has records of type %s with exactly the columns of its tables',
    (type) => {
      const { db } = startStore();
      const kind = transferKind(type);
      const { shape } = RECORD_SCHEMAS[type];
      const fields: Record<string, unknown> = shape;
      expect(Object.keys(fields).toSorted()).toEqual(
        [...columnsOf(db, kind), ...Object.keys(kind.children ?? {})].toSorted(),
      );
      for (const [field, child] of Object.entries(kind.children ?? {}))
        expect(fieldsOf(fields[field]), field).toEqual(columnsOf(db, child).toSorted());
    },
  );
});

/** The fields of the records in a list; the list may have a default. */
function fieldsOf(schema: unknown): string[] {
  const list = schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  if (!(list instanceof z.ZodArray) || !(list.element instanceof z.ZodObject))
    throw new Error('the field is no list of records');
  return Object.keys(list.element.shape).toSorted();
}
