import { expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { accountAttention } from '../../src/doctor/attention.ts';
import type { DomainStatus } from '../../src/store/domains/domains.ts';
import { insertCampaignSend } from '../support/campaign-sends.ts';
import { exampleEvent } from '../support/events.ts';
import { limitRow } from '../support/sending-limits.ts';
import { enqueue, insertDomain, startStore } from '../support/store.ts';

const ACCOUNT = 'acct_one';

function start() {
  const store = startStore();
  const { tables, clock } = store;
  const now = clock.now();
  return {
    ...store,
    read: (accountId = ACCOUNT, mayErase = true) =>
      accountAttention.run(tables, { accountId, now, mayErase }),
    domain: (id: string, status: DomainStatus, failing_since: number | null = null) =>
      insertDomain(
        tables,
        {
          account_id: ACCOUNT,
          domain_id: id,
          name: `${id}.test`,
          status,
          failing_since,
          next_check_at: now + DAY,
        },
        now,
      ),
    webhook: (
      id: string,
      row: { is_active: 0 | 1; off_reason: 'failing' | null; failing_since: number | null },
    ) =>
      tables.webhooks.insert({
        webhook_id: id,
        account_id: ACCOUNT,
        name: '',
        description: null,
        url: `https://${id}.test/secret-path`,
        events: '["*"]',
        format: 'postrider',
        filter: null,
        headers: null,
        created_at: now - DAY,
        updated_at: now - HOUR,
        ...row,
      }),
    count: (domainId: string, accepted: number, bounced: number, complained: number, at = now - 2 * HOUR) => {
      const key = {
        hour: at - (at % HOUR),
        accountId: ACCOUNT,
        domainId,
        provider: 'gmail',
        stream: 'tx',
        outcomeClass: '',
      } as const;
      tables.hourlyCounts.add({ ...key, outcome: 'accepted' }, accepted);
      tables.hourlyCounts.add({ ...key, outcome: 'bounced' }, bounced);
      tables.hourlyCounts.add({ ...key, outcome: 'complained' }, complained);
    },
  };
}

it('is empty while nothing needs a person', () => {
  const setup = start();
  setup.domain('fine', 'SUCCESS');
  setup.webhook('works', { is_active: 1, off_reason: null, failing_since: null });
  setup.webhook('disabled-by-its-account', { is_active: 0, off_reason: null, failing_since: null });
  expect(setup.read()).toEqual({ items: [], counts: { domains: 0, webhooks: 0, campaigns: 0 } });
});

it('names domains that do not send first, each with what waits for it', () => {
  const setup = start();
  const { clock, tables } = setup;
  setup.domain('new', 'PENDING');
  setup.domain('lost', 'FAILED', clock.now() - HOUR);
  for (let n = 0; n < 3; n++) enqueue(tables, clock.now(), { domain_id: 'lost' });
  expect(setup.read()).toEqual({
    items: [
      {
        kind: 'domain',
        id: 'lost',
        name: 'lost.test',
        status: 'FAILED',
        since: clock.now() - HOUR,
        waiting: 3,
      },
      { kind: 'domain', id: 'new', name: 'new.test', status: 'PENDING', since: null, waiting: 0 },
    ],
    counts: { domains: 2, webhooks: 0, campaigns: 0 },
  });
  expect(setup.read('acct_two').items).toEqual([]);
});

it('names webhooks that fail, and those that were disabled for it, without the path of their address', async () => {
  const setup = start();
  const { clock, tables, writer, recorder } = setup;
  const failing = setup.webhook('failing', {
    is_active: 1,
    off_reason: null,
    failing_since: clock.now() - HOUR,
  });
  setup.webhook('off', { is_active: 0, off_reason: 'failing', failing_since: clock.now() - DAY });
  const message = enqueue(tables, clock.now(), { account_id: ACCOUNT });
  await writer.run((tx) => recorder.message(tx, message, exampleEvent('email_sent')));
  const { items, counts } = setup.read();
  expect(counts).toEqual({ domains: 0, webhooks: 2, campaigns: 0 });
  expect(items).toEqual([
    {
      kind: 'webhook',
      id: 'failing',
      name: 'failing.test',
      isActive: true,
      since: clock.now() - HOUR,
      waiting: 1,
    },
    { kind: 'webhook', id: 'off', name: 'off.test', isActive: false, since: clock.now() - HOUR, waiting: 0 },
  ]);
  expect(tables.webhooks.byNumber(failing)?.url).toContain('secret-path');
});

it('names domains whose bounces or complaints are above what receivers accept, if they sent enough', async () => {
  const setup = start();
  for (const id of ['many', 'few', 'small', 'old']) setup.domain(id, 'SUCCESS');
  await setup.writer.run(() => {
    setup.count('many', 1000, 60, 2);
    setup.count('few', 1000, 50, 1);
    setup.count('small', 99, 99, 99);
    setup.count('old', 1000, 500, 500, setup.clock.now() - 3 * DAY);
  });
  expect(setup.read().items).toEqual([
    expect.objectContaining({ kind: 'rate', id: 'many', outcome: 'complained', share: 0.002, limit: 0.001 }),
    expect.objectContaining({ kind: 'rate', id: 'many', outcome: 'bounced', share: 0.06, limit: 0.05 }),
  ]);
});

it('names paused campaigns with the members and messages that wait', () => {
  const setup = start();
  const { tables, clock } = setup;
  const now = clock.now();
  insertCampaignSend(tables, { id: 'one', status: 'paused' }, now);
  insertCampaignSend(tables, { id: 'two', status: 'sending' }, now);
  expect(setup.read()).toEqual({
    items: [{ kind: 'campaign', id: 'one', name: 'Name of one', reason: null, since: now, waiting: 6 }],
    counts: { domains: 0, webhooks: 0, campaigns: 1 },
  });
});

it('names automatic limits in force, those of the account and of a domain at a provider', () => {
  const { tables, clock, domain, read } = start();
  domain('shop', 'SUCCESS');
  const since = clock.now() - HOUR;
  tables.sendingLimits.put(limitRow({ since }));
  tables.sendingLimits.put(
    limitRow({ limit_id: 'limit_2', domain_id: 'shop', provider: 'Google', level: 'slow', since: since - 1 }),
  );
  tables.sendingLimits.put(limitRow({ limit_id: 'limit_3', stream: 'tx', level: null }));
  expect(read().items).toEqual([
    { kind: 'limit', id: 'limit_1', name: '', level: 'pause', provider: null, since, waiting: 0 },
    {
      kind: 'limit',
      id: 'limit_2',
      name: 'shop.test',
      level: 'slow',
      provider: 'Google',
      since: since - 1,
      waiting: 0,
    },
  ]);
});
