import { expect, it } from 'vitest';
import { createSegmentCopies } from '../../../src/audience/segments/copies.ts';
import { NOTHING_EXCLUDED, nextSelected } from '../../../src/audience/segments/evaluate.ts';
import type { SegmentFilter } from '../../../src/audience/segments/filter.ts';
import { matchesContact } from '../../../src/audience/segments/match.ts';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { countExecutions } from '../../support/executions.ts';
import { granted } from '../../support/refusal.ts';
import { CALLER, startAudience } from '../setup.ts';

/** More than MIN_CONTACTS of copies. */
const CONTACTS = 600;

/** An audience with contacts that differ, some of them members and some with engagement. */
async function start() {
  const audience = await startAudience();
  const { tables, writer, groupId, clock } = audience;
  const people = await Promise.all(
    Array.from({ length: CONTACTS }, (_, index) =>
      audience.add(`person-${index}@${index % 3 === 0 ? 'example.com' : 'example.org'}`, {
        customFields: {
          plan: ['free', 'pro', 'gold'][index % 3],
          visits: index,
          ...(index % 5 === 0 ? { tags: ['a', `b${index}`] } : {}),
          ...(index === 7 ? { long: 'x'.repeat(5000) } : {}),
        },
      }),
    ),
  );
  const group = tables.subscriptionGroups.get('acct_one', groupId);
  await writer.run((tx) => {
    const at = clock.now();
    const campaign = {
      campaign_id: 'campaign_1',
      account_id: 'acct_one',
      name: 'One',
      description: null,
      prepared: null,
      status: 'sent',
      created_at: at,
      updated_at: at,
    } as const;
    const campaignSeq = tx.campaigns.insert(campaign);
    for (const [index, { seq }] of people.entries())
      if (index % 3 === 0) tx.engagement.addOfCampaign(campaignSeq, seq, index % 6 === 0 ? 3 : 1);
    for (const [index, { seq }] of people.entries()) {
      const at = clock.now() - index * DAY;
      if (index % 2 === 0)
        tx.subscriptions.insert({
          group_seq: group?.seq ?? 0,
          contact_seq: seq,
          is_active: index % 4 === 0 ? 1 : 0,
          source: 'api',
          consent_method: 'implicit_api',
          consent_details: null,
          joined_at: at,
          updated_at: at,
        });
      if (index % 7 === 0)
        tx.engagement.insert({ contact_seq: seq, received_at: at, opened_at: at, clicked_at: null });
    }
  });
  const context = { tables, writer, log: createLog({ level: 'silent', hashAddresses: false }) };
  const copies = createSegmentCopies({ ...context, reader: createLocalReader(tables) });
  const expected = (filter: SegmentFilter) =>
    people.filter(({ seq }) => {
      const contact = tables.contacts.bySeq(seq);
      return contact !== null && matchesContact(tables, contact, filter, clock.now());
    }).length;
  const counted = async (filter: SegmentFilter) =>
    granted(await audience.segments.preview('acct_one', filter, 3)).count;
  return { ...audience, people, copies, expected, counted };
}

it('counts the same contacts with and without copies, and after changes', async () => {
  const { groupId, people, copies, expected, counted, tables, writer, clock, ...audience } = await start();
  const filters: SegmentFilter[] = [
    { field: 'customFields.plan', op: 'is', value: 'pro' },
    { field: 'customFields.tags', op: 'exists' },
    { field: 'customFields.long', op: 'exists' },
    { field: 'customFields.visits', op: 'greaterThan', value: 299 },
    { field: 'email', op: 'contains', value: '@example.com' },
    { field: 'globalStatus', op: 'isNot', value: 'active' },
    { group: groupId },
    { group: groupId, active: false },
    { opened: { withinDays: 100 } },
    { clicked: { notWithinDays: 1 } },
    { joined: { withinDays: 50 } },
    { all: [{ received: { campaignId: 'campaign_1' } }, { not: { opened: { campaignId: 'campaign_1' } } }] },
    { not: { clicked: { campaignId: 'campaign_1' } } },
    {
      all: [
        { not: { field: 'customFields.plan', op: 'is', value: 'free' } },
        { any: [{ group: groupId }, { opened: { withinDays: 300 } }] },
      ],
    },
  ];
  const compare = async () => {
    for (const filter of filters) expect([filter, await counted(filter)]).toEqual([filter, expected(filter)]);
  };
  await compare();
  await copies.run();
  expect(tables.segmentColumns.copied(0, 'acct_one')?.copied.length).toBe(2 * (CONTACTS - 1));
  await compare();

  // Changes of contacts, memberships and engagement, and a contact that is erased.
  await audience.suppress('person-4@example.org', 'manual');
  granted(
    await audience.contacts.update(
      'acct_one',
      people[1]?.email_hash ?? '',
      { customFields: { plan: 'gold' } },
      { ...CALLER, merge: true },
    ),
  );
  granted(await audience.subscriptions.add('acct_one', groupId, { email: 'person-1@example.org' }, CALLER));
  await audience.add('new@example.com', { customFields: { plan: 'pro' } });
  const newest = tables.contacts.list({ accountId: 'acct_one', beforeSeq: null, limit: 1 }).rows;
  people.push(...newest);
  expect(tables.segmentColumns.changes(0, 4095)).toHaveLength(3);
  await compare();
  await writer.run((tx) => {
    for (const { seq } of people.slice(100, 300)) tx.contacts.setConsent(seq, null, clock.now());
  });
  await copies.run();
  expect(tables.segmentColumns.changes(0, 4095)).toEqual([]);
  await compare();
  granted(await audience.erasure.erase('acct_one', people[0]?.email_hash ?? ''));
  expect(tables.segmentColumns.copied(0, 'acct_one')).toBeNull();
  await compare();
});

it('counts contacts that are added, changed or deleted while their chunk is copied', async () => {
  const { people, counted, tables, writer, clock, ...audience } = await start();
  const reader = createLocalReader(tables);
  const log = createLog({ level: 'silent', hashAddresses: false });
  let between = async (): Promise<unknown> => null;
  const query: typeof reader.query = async (...args) => {
    const copies = await reader.query(...args);
    await between();
    return copies;
  };
  const copies = createSegmentCopies({ tables, writer, log, reader: { ...reader, query } });
  const isGold: SegmentFilter = { field: 'customFields.plan', op: 'is', value: 'gold' };
  const gold = CONTACTS / 3;

  between = async () => {
    await audience.add('new@example.com', { customFields: { plan: 'gold' } });
    granted(
      await audience.contacts.update(
        'acct_one',
        people[1]?.email_hash ?? '',
        { customFields: { plan: 'gold' } },
        { ...CALLER, merge: true },
      ),
    );
  };
  await copies.run();
  expect(tables.segmentColumns.copied(0, 'acct_one')).not.toBeNull();
  expect(await counted(isGold)).toBe(gold + 2);

  await writer.run((tx) => {
    for (const { seq } of people.slice(100, 300)) tx.contacts.setConsent(seq, null, clock.now());
  });
  between = () => audience.erasure.erase('acct_one', people[2]?.email_hash ?? '');
  await copies.run();
  expect(tables.segmentColumns.copied(0, 'acct_one')).toBeNull();
  expect(await counted(isGold)).toBe(gold + 1);
  between = async () => null;
  await copies.run();
  expect(tables.segmentColumns.copied(0, 'acct_one')).not.toBeNull();
  expect(await counted(isGold)).toBe(gold + 1);
});

it('deletes what contacts did with a deleted campaign, however many campaigns there are', async () => {
  const { people, copies, writer, clock } = await start();
  const at = clock.now();
  const seqs = await writer.run((tx) =>
    Array.from({ length: 150 }, (_, index) => {
      const seq = tx.campaigns.insert({
        campaign_id: `campaign_of_many_${index}`,
        account_id: 'acct_one',
        name: `${index}`,
        description: null,
        prepared: null,
        status: 'sent',
        created_at: at,
        updated_at: at,
      });
      for (const person of people.slice(0, 2)) tx.engagement.addOfCampaign(seq, person.seq, 1);
      return seq;
    }),
  );
  const deleted = [20, 120, 149];
  await writer.run((tx) => {
    for (const index of deleted) tx.campaigns.remove(seqs[index] ?? 0);
  });
  for (let run = 0; run < 5; run++) await copies.run();
  const left = await writer.run((tx) => seqs.map((seq) => tx.engagement.removeOfCampaign(seq, 10)));
  expect(left).toEqual(seqs.map((_, index) => (deleted.includes(index) ? 0 : 2)));
});

it('reads no contact again that had its turn in a campaign, however many of them changed', async () => {
  const { people, tables, writer, clock, ...audience } = await start();
  const log = createLog({ level: 'silent', hashAddresses: true });
  await createSegmentCopies({ ...audience, tables, writer, log, reader: createLocalReader(tables) }).run();
  const filter: SegmentFilter = { field: 'email', op: 'exists' };
  const selection = {
    ...NOTHING_EXCLUDED,
    accountId: 'acct_one',
    filters: [JSON.stringify(filter)],
    excludedCampaigns: ['campaign_1'],
    now: clock.now(),
  };
  // As copies of a campaign that arrive, and a contact that changes before its turn.
  const changed = [...people.slice(0, 400), ...people.slice(450, 451)];
  await writer.run((tx) => {
    for (const { seq } of changed) tx.contacts.setConsent(seq, null, clock.now());
  });
  const range = { after: people[399]?.seq ?? 0, last: people[549]?.seq ?? 0 };
  const executed: string[] = [];
  const restore = countExecutions((sql) => executed.push(sql));
  let seqs: number[];
  try {
    ({ seqs } = nextSelected.run(tables, selection, range, 1000));
  } finally {
    restore();
  }
  expect(executed.filter((sql) => sql.includes('FROM contacts c'))).toHaveLength(1);
  const expected = people.filter((_, index) => index >= 400 && index < 550 && index % 3 !== 0);
  expect(seqs).toEqual(expected.map(({ seq }) => seq));
});
