import { describe, expect, it } from 'vitest';
import { TRANSFER_KINDS, TRANSFER_TYPES, transferKind } from '../../../src/store/transfer/kinds.ts';
import { COLUMNS_NOT_EXPORTED, NOT_EXPORTED } from '../../../src/store/transfer/policies.ts';
import type { TransferChild, TransferKind } from '../../../src/store/transfer/transfer-kind.ts';
import { RECORD_SCHEMAS } from '../../../src/transfer/records.ts';
import { columnsByTable } from '../../support/schema.ts';

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

  it('has every column of its tables, or the reason why not', () => {
    const missing = kinds
      // The columns of moved messages have other names in a record.
      .filter(({ table }) => table !== TRANSFER_KINDS.moved_message.table)
      .flatMap(({ table, columns, fixed = {}, ...kind }) => {
        const linked = 'link' in kind ? [kind.link.column] : ['account_id'];
        const known = new Set([...columns, ...Object.keys(fixed), ...linked]);
        return (schema.get(table) ?? [])
          .filter((column) => !known.has(column))
          .map((column) => `${table}.${column}`);
      });
    const omitted = Object.keys(COLUMNS_NOT_EXPORTED).filter((name) => !name.startsWith('moved_messages.'));
    expect(missing.toSorted()).toEqual(omitted.toSorted());
  });

  it('names columns that exist', () => {
    const unknown = kinds
      .filter(({ table }) => table !== TRANSFER_KINDS.moved_message.table)
      .flatMap(({ table, columns, fixed = {} }) =>
        [...columns, ...Object.keys(fixed)].filter((column) => !schema.get(table)?.includes(column)),
      );
    expect(unknown).toEqual([]);
  });

  it.each(TRANSFER_TYPES)('has records of type %s with exactly these columns', (type) => {
    const { columns, children = {} } = transferKind(type);
    const { shape } = RECORD_SCHEMAS[type];
    expect(Object.keys(shape).toSorted()).toEqual([...columns, ...Object.keys(children)].toSorted());
  });
});
