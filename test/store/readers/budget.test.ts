import { describe, expect, it, vi } from 'vitest';
import { openForReading } from '../../../src/store/database/database.ts';
import { BudgetExceeded, boundedStatement, boundReads } from '../../../src/store/readers/budget.ts';
import { createTables, prepareTables, type Tables } from '../../../src/store/tables.ts';
import { enqueue, startStore } from '../../support/store.ts';

const ENDLESS =
  'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i > 0) SELECT count(*) FROM n';

function startBounded(budgetMs: number, now?: () => number) {
  const store = startStore();
  const reader = openForReading(store.db.name);
  const budget = boundReads(reader, now);
  return { ...store, reader, begin: () => budget.begin(budgetMs) };
}

describe('the time budget', () => {
  it('ends a statement that would not end', () => {
    const { reader, begin } = startBounded(20);
    const statement = reader.prepare(ENDLESS);
    begin();
    expect(() => statement.get()).toThrow(BudgetExceeded);
    // The connection can still be used.
    expect(reader.prepare('SELECT 1 AS one').get()).toEqual({ one: 1 });
    expect(reader.inTransaction).toBe(false);
  });

  it('applies to all statements of a read together, and begins again with each read', () => {
    let time = 0;
    const { tables, clock, reader, begin } = startBounded(1000, () => time);
    enqueue(tables, clock.now());
    const bounded = createTables(reader);
    const rows = (times: number) => {
      for (let n = 0; n < times; n++) bounded.messages.bySeq(1);
    };
    begin();
    rows(1000);
    time = 1001;
    expect(() => rows(1000)).toThrow(BudgetExceeded);
    begin();
    rows(1000);
  });

  it('does not change statements that write', () => {
    const sql = 'UPDATE t SET a = 1 WHERE b = 2';
    expect(boundedStatement(sql)).toBe(sql);
  });

  it('does not change the plan of any reading statement', () => {
    const { db, reader } = startBounded(1000);
    const plan = (of: typeof db, sql: string) => {
      const statement = of.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
      const names = Array.from(sql.matchAll(/@(\w+)/g), ([, name]) => [name, null] as const);
      const blanks = Array.from(sql.matchAll(/\?/g), () => null);
      const steps = names.length > 0 ? statement.all(Object.fromEntries(names)) : statement.all(...blanks);
      return steps.map(({ detail }) => detail);
    };
    const statements = readingStatements(db);
    expect(statements.length).toBeGreaterThan(100);
    for (const sql of statements)
      expect([sql, plan(reader, boundedStatement(sql))]).toEqual([sql, plan(db, sql)]);
  });
});

/** The statements that tables prepare when they are created, and those of filtered lists. */
function readingStatements(db: ReturnType<typeof startStore>['db']): string[] {
  const prepare = vi.spyOn(db, 'prepare');
  const tables = createTables(db);
  prepareTables(tables);
  callLists(tables);
  const statements = prepare.mock.calls.map(([sql]) => sql);
  prepare.mockRestore();
  return [...new Set(statements)].filter((sql) => /^\s*(?:SELECT|WITH)\b/.test(sql));
}

function callLists(tables: Tables): void {
  const some = { domainId: 'd', campaignId: 'c', jobId: 'j', from: 1, to: 2, limit: 5 };
  const page = { accountId: 'acct_one', beforeSeq: 9, limit: 5 };
  for (const accountId of ['acct_one', null]) {
    tables.messages.list({ accountId, limit: 5 });
    tables.messages.list({ accountId, ...some, recipientHash: 'r', beforeSeq: 9, status: 'failed' });
    tables.messages.list({ accountId, sender: 's', subject: 's', limit: 5 });
  }
  tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 5 });
  tables.events.feed({ accountId: 'acct_one', afterSeq: 0, kind: 'email_sent', ...some });
  tables.events.feed({ accountId: 'acct_one', afterSeq: 0, recipientHash: 'r', limit: 5 });
  tables.events.feed({ accountId: 'acct_one', afterSeq: 0, messageId: 'm', status: 'failed', limit: 5 });
  tables.suppressions.list(page);
  tables.suppressions.list({ ...page, recipientHash: 'r' });
  tables.suppressions.list({ ...page, stream: 'tx', reason: 'manual' });
  tables.complianceTemplates.list({ ...page, type: 'unsubscribe', domain: 'example.com' });
  tables.webhookDeliveries.list({ webhook: 1, states: [], beforeSeq: 9, limit: 5 });
  tables.webhookDeliveries.list({ webhook: 1, states: ['ready', 'succeeded'], beforeSeq: 9, limit: 5 });
}
