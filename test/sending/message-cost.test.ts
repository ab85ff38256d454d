import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATABASE_FILE, type Database, openConnection } from '../../src/store/database/connection.ts';
import type { ApiClient, CreatedDomain, VerifiedDomain } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { countExecutions } from '../support/executions.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';

/*
 * What one message costs from the request to the recorded delivery, in counts, which do not depend on the machine: a change
 * that adds statements or pages for each message fails here. Messages are sent one after the other, so that no
 * commit is shared; under load, messages share them.
 */
const MESSAGES = 10;
/**
 * One of them reads the language of the recipient, one counts the message among those that share the texts of the template, two
 * count it and its outcome for the reputation by day, provider and source address.
 */
const MAX_STATEMENTS = 27;
/** Reads of `PRAGMA data_version`, by which the caches notice other processes: one microsecond each. */
const MAX_CACHE_CHECKS = 7;
const CACHE_CHECK = 'PRAGMA data_version';
/** One for the acceptance with the lease, one for the result. */
const COMMITS = 2;
/**
 * Pages of 4 KiB that the commits append to the write-ahead log; the content of a message has about 10 KB of HTML. One
 * of them counts the stored bytes of the account, two have the counts of the reputation. The empty columns of tags and of
 * scheduled mail have a byte each, a tenth of a page.
 */
const MAX_LOG_PAGES = 30.5;
const FRAME_BYTES = 4096 + 24;
const SUPPRESSIONS = /suppressions/;
const CACHED =
  /\b(?:FROM|JOIN) (?:accounts|account_limits|api_keys|compliance_templates|dkim_keys|domains|public_pages|settings|token_keys|webhooks)\b/;

describe('the cost of one message', () => {
  /** Executions by statement, while a message is on its way. */
  const executions = new Map<string, number>();
  /** The least of all messages: what the daemon does periodically falls on some of them only. */
  let perMessage = new Map<string, number>();
  let isCounting = false;
  let restore = () => {};
  let daemon: InProcess;
  let sink: Sink;
  let api: ApiClient;
  let logPages = 0;

  beforeAll(async () => {
    restore = countExecutions((sql) => {
      if (isCounting) executions.set(sql, (executions.get(sql) ?? 0) + 1);
    });
    sink = await startSink();
    daemon = await startInProcess({ 'delivery.port': sink.port, 'delivery.allowPrivateNetworks': true });
    publishMailHost(daemon.dns, 'recipient.example', sink.host);
    api = await daemon.account('Sender');
    await verify('sender.example');
    // The first messages find empty caches and a closed connection.
    for (let number = 0; number < 3; number++) await deliver(`first${number}`);
    const before = logBytes();
    for (let number = 0; number < MESSAGES; number++) {
      executions.clear();
      await deliver(`reader${number}`);
      if (number === 0) perMessage = new Map(executions);
      for (const [sql, count] of perMessage) perMessage.set(sql, Math.min(count, executions.get(sql) ?? 0));
    }
    logPages = (logBytes() - before) / FRAME_BYTES;
  });

  afterAll(async () => {
    restore();
    await daemon.stop();
    await sink.close();
  });

  async function verify(domain: string): Promise<void> {
    const { data } = await api.put<CreatedDomain>('/web-setup/domains', { domain, useCaseId: 'tx-local' });
    daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
    await daemon.publishPlatform();
    const verified = await api.post<VerifiedDomain>(`/web-setup/domains/${data.domainId}/verify`);
    expect(verified.data.status).toBe('SUCCESS');
  }

  /** Sends a message and waits until its delivery is recorded. */
  async function deliver(user: string): Promise<void> {
    isCounting = true;
    const rows = Array.from({ length: 250 }, (_, row) => `<tr><td>Article ${row}</td><td>1.90</td></tr>`);
    const html = `<table>${rows.join('\n')}</table>${SHORT_MAIL.html}`;
    const mail = { ...SHORT_MAIL, html, from: 'a@sender.example', to: `${user}@recipient.example` };
    const { data } = await api.send(mail);
    await eventually(
      `the mail to ${user} to be delivered`,
      () => {
        isCounting = false;
        const isDelivered = daemon.tables.messages.byId(data.messageId)?.status === 'delivered';
        isCounting = !isDelivered;
        return isDelivered;
      },
      { everyMs: 5 },
    );
  }

  /** The log only grows until its first checkpoint, which is far away. */
  function logBytes(): number {
    return statSync(join(daemon.dataDir, `${DATABASE_FILE}-wal`)).size;
  }

  it('is a bounded number of statements', () => {
    const { [CACHE_CHECK]: checks = 0, ...statements } = Object.fromEntries(perMessage);
    const sum = Object.values(statements).reduce((total, count) => total + count, 0);
    const list = Object.entries(statements).map(([sql, count]) => `${count} ${sql}`);
    expect(sum, list.join('\n')).toBeLessThanOrEqual(MAX_STATEMENTS);
    expect(checks).toBeLessThanOrEqual(MAX_CACHE_CHECKS);
    const inserted = [...perMessage].filter(([sql]) => sql.startsWith('INSERT INTO messages '));
    expect(inserted.map(([, count]) => count)).toEqual([1]);
  });

  it('fills no temporary table', () => {
    // A list of three or more values in a CHECK does. So does RETURNING, which is needed.
    // Not read-only: SQLite would ignore these constraints.
    const db = openConnection(join(daemon.dataDir, DATABASE_FILE), {});
    const filling = [...perMessage]
      .filter(([sql, count]) => count > 0 && !sql.includes('RETURNING') && opensTable(db, sql))
      .map(([sql]) => sql);
    db.close();
    expect(filling).toEqual([]);
  });

  it('reads no row that rarely changes', () => {
    const read = [...perMessage].filter(([sql, count]) => count > 0 && CACHED.test(sql));
    expect(read).toEqual([]);
  });

  it('reads the suppressions at acceptance and before delivery', () => {
    const read = [...perMessage].filter(([sql]) => SUPPRESSIONS.test(sql));
    expect(read.map(([, count]) => count)).toEqual([2]);
  });

  it('is one commit for each of its steps', () => {
    expect(perMessage.get('COMMIT')).toBe(COMMITS);
  });

  it('is a bounded number of pages in the write-ahead log', () => {
    expect(logPages / MESSAGES).toBeGreaterThan(COMMITS);
    expect(logPages / MESSAGES).toBeLessThanOrEqual(MAX_LOG_PAGES);
  });
});

/** Whether a statement opens a temporary table for its own use. */
function opensTable(db: Database, sql: string): boolean {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]);
  const positional = [...sql.matchAll(/\?/g)].map(() => 1);
  const values = names.length > 0 ? [Object.fromEntries(names)] : positional;
  const steps = db.prepare<unknown[], { opcode: string }>(`EXPLAIN ${sql}`).all(...values);
  return steps.some(({ opcode }) => opcode === 'OpenEphemeral');
}
