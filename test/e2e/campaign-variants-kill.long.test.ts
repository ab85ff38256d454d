// Long: kills the daemon in each phase of an A/B test of a campaign to thousands of recipients.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { testedVariant } from '../../src/campaigns/variants.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createTables } from '../../src/store/tables.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type KillSetup, startKillSetup } from '../support/kill-setup.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { SHORT_MAIL } from '../support/recipients.ts';

/*
 * Half of 2,400 people receive one of two subjects. The daemon is killed while the test is sent, while it waits for its decision, and
 * while the rest receives the winner. The time of the decision is moved while it is down: a wait takes an hour at least.
 */
const MEMBERS = 2400;
const SHARE = 50;
const DOMAINS = ['eins.example', 'zwei.example', 'drei.example', 'vier.example'];

let setup: KillSetup;

beforeEach(async () => {
  setup = await startKillSetup(DOMAINS, { useCaseId: 'mk-local' });
});
afterEach(() => setup?.stop());

interface Progress {
  members: number;
  queued: number;
  test: {
    state: string;
    decidesAt: string | null;
    variants: { queued: number }[];
    decision: { variant: string; reason: string } | null;
  };
}

it('gives each member one variant once, and the rest the winner, whenever the daemon is killed', async () => {
  const { daemon, sink, messagesAtSink } = setup;
  const { api } = daemon;
  const addressOf = (n: number) => `user${n}@${DOMAINS[n % DOMAINS.length]}`;
  const members = Array.from({ length: MEMBERS }, (_, n) => ({ email: addressOf(n) }));
  const { subscriptionGroupId, campaignId } = await startGroup(api, members);
  const path = `/web-setup/campaigns/${campaignId}`;
  const campaign = async () =>
    (await api.get<{ campaign: { status: string; progress: Progress } }>(path)).data.campaign;
  const sent = await api.post(`${path}/send`, {
    ...SHORT_MAIL,
    subject: 'First',
    from: 'a@kunde.example',
    subscriptionGroupId,
    enableOpenTracking: true,
    variants: [{}, { subject: 'Second' }],
    test: { share: SHARE, winner: 'opens', waitHours: 1 },
  });
  expect(sent.status, sent.text).toBe(202);
  const patience = { ms: LONG_PATIENCE_MS, everyMs: 25 };
  /** Messages that the sink accepted and the database does not know as sent: they are sent again. */
  let unrecorded = 0;
  const kill = async () => {
    unrecorded += (await setup.kill()).unrecorded;
  };

  await messagesAtSink(200);
  await kill();
  await daemon.restart();
  await eventually(
    'the time of the decision',
    async () => (await campaign()).progress.test.decidesAt,
    patience,
  );
  const { queued } = (await campaign()).progress;
  const tested = await eventually(
    'the test to be delivered',
    async () => {
      const counts = await sink.counts();
      return counts.ids >= queued ? counts.ids : null;
    },
    patience,
  );
  // Nobody else has a message before the decision.
  expect(tested).toBe(queued);
  await kill();
  const db = openDatabase(daemon.dataDir);
  db.prepare('UPDATE campaign_sends SET decide_at = 1').run();
  db.close();
  await daemon.restart();
  await messagesAtSink(queued + 200);
  await kill();
  await daemon.restart();
  const done = await eventually(
    'the campaign to be sent',
    async () => {
      const now = await campaign();
      return now.status === 'sent' ? now : null;
    },
    { ...patience, everyMs: 250 },
  );
  await eventually(
    'the queue to be empty',
    async () => (await daemon.metric('postrider_queue_messages')) === 0,
  );

  const counts = await sink.counts();
  expect([counts.recipients, counts.ids, counts.duplicates]).toEqual([MEMBERS, MEMBERS, unrecorded]);
  expect(done.progress).toMatchObject({ members: MEMBERS, queued: MEMBERS });
  const { decision, variants } = done.progress.test;
  // Nobody opened a message.
  expect(decision).toMatchObject({ variant: 'A', reason: 'notSignificant' });
  expect(variants.reduce((sum, one) => sum + one.queued, 0)).toBe(queued);

  const disk = openDatabase(daemon.dataDir);
  const tables = createTables(disk);
  const { rows } = tables.messages.list({ accountId: api.accountId, campaignId, limit: MEMBERS + 1 });
  const subjects = new Map(rows.map(({ recipient, subject }) => [recipient, subject]));
  expect([rows.length, subjects.size]).toEqual([MEMBERS, MEMBERS]);
  const test = { share: SHARE, variants: ['A', 'B'].map((name) => ({ name, subject: name })) };
  for (const { email } of members) {
    const seq = tables.contacts.seqOf(api.accountId, emailIdentifier(email)) ?? 0;
    const variant = testedVariant(test, campaignId, seq);
    expect([email, subjects.get(email)]).toEqual([email, variant === 1 ? 'Second' : 'First']);
  }
  disk.close();
  console.log(`${queued} of ${MEMBERS} in the test, ${unrecorded} messages sent twice after three kills`);
}, 600_000);
