import { describe, expect, it } from 'vitest';
import {
  DATA_POLICIES,
  EXPORT_OF_TABLE,
  EXPORT_SECTIONS,
  OTHER_TABLES,
  RETENTION_RULES,
} from '../../src/store/data-policies.ts';
import type { DataPolicy } from '../../src/store/data-policy.ts';
import { columnsByTable } from '../support/schema.ts';

const POLICIES: readonly DataPolicy[] = DATA_POLICIES;

/** Names that columns with data of recipients and contacts have. */
const PERSONAL_NAME =
  /email|phone|recipient|subject|sender|ip_address|user_agent|remote_address|person|_hash$/;
/** Columns with such a name and without such data. */
const IMPERSONAL = new Set([
  // Data of the account, and of its templates.
  'accounts.abuse_email',
  'templates.subject',
  'template_versions.subject',
  // A count.
  'campaign_sends.without_email',
]);

describe('the data policies of tables', () => {
  const schema = columnsByTable();

  it('cover every table of the schema once', () => {
    const declared = [...POLICIES.map(({ table }) => table), ...OTHER_TABLES];
    expect(declared.toSorted()).toEqual([...schema.keys()].toSorted());
  });

  it('name columns that exist', () => {
    const unknown = POLICIES.flatMap(({ table, personal }) =>
      personal.filter((column) => !schema.get(table)?.includes(column)).map((column) => `${table}.${column}`),
    );
    expect(unknown).toEqual([]);
  });

  it('declare every column whose name indicates personal data', () => {
    const declared = new Set(
      POLICIES.flatMap(({ table, personal }) => personal.map((column) => `${table}.${column}`)),
    );
    const undeclared = [...schema]
      .flatMap(([table, columns]) => columns.map((column) => [`${table}.${column}`, column] as const))
      .filter(([name, column]) => PERSONAL_NAME.test(column) && !declared.has(name) && !IMPERSONAL.has(name));
    expect(undeclared.map(([name]) => name)).toEqual([]);
  });

  it('state for personal data how it is erased and how long it is retained', () => {
    const incomplete = POLICIES.filter(
      ({ personal, erasure, retention }) =>
        personal.length > 0 &&
        (erasure === undefined ||
          retention === undefined ||
          (Array.isArray(erasure) && erasure.length === 0)),
    );
    expect(incomplete.map(({ table }) => table)).toEqual([]);
  });

  it('are all exported for a person, or state why they are not', () => {
    const personal = POLICIES.filter(({ personal: columns }) => columns.length > 0).map(({ table }) => table);
    expect(Object.keys(EXPORT_OF_TABLE).toSorted()).toEqual(personal.toSorted());
    const sections = new Set(Object.values(EXPORT_OF_TABLE).filter((each) => typeof each === 'string'));
    expect([...sections].toSorted()).toEqual([...EXPORT_SECTIONS].toSorted());
  });

  it('have a distinct kind for each rule of retention', () => {
    const kinds = RETENTION_RULES.map(({ kind }) => kind);
    expect(kinds).toEqual([...new Set(kinds)]);
  });
});
