// Long: kills the daemon several times during a sequence of thousands of messages.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { type KillSetup, startKillSetup } from '../support/kill-setup.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';

/*
 * The daemon is killed three times while a sequence sends three messages to each of 600 people who join a group.
 *
 *   test ──HTTP──▶ postrider (kill -9, start, …) ──SMTP──▶ sink, a separate process
 */
const MEMBERS = 600;
const MESSAGES = 3;
const DOMAINS = ['eins.example', 'zwei.example'];
/** Number of messages at the sink. */
const KILL_AT = [150, 700, 1200];
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';

let setup: KillSetup;

beforeAll(async () => {
  setup = await startKillSetup(DOMAINS, { useCaseId: 'mk-local' });
});
afterAll(() => setup?.stop());

it('sends each step once to each person, and repeats at most the messages in flight', async () => {
  const { daemon, sink, messagesAtSink, kill } = setup;
  const { api } = daemon;
  const { subscriptionGroupId } = await startGroup(api, []);
  const created = await api.post<{ sequence: Sequence }>('/web-setup/sequences', {
    name: 'Welcome',
    trigger: { joined: subscriptionGroupId },
    steps: Array.from({ length: MESSAGES }, (_, n) => ({
      send: { from: 'a@kunde.example', subject: `Message ${n}`, html: `<p>Hello {{firstName}}</p>${FOOTER}` },
    })),
    status: 'active',
  });
  expect(created.status, created.text).toBe(201);
  const members = Array.from({ length: MEMBERS }, (_, n) => ({
    email: `user${n}@${DOMAINS[n % DOMAINS.length]}`,
    firstName: `User ${n}`,
  }));
  const imported = await api.call(
    'POST',
    `/web-setup/contacts/import?subscriptionGroupId=${subscriptionGroupId}`,
    {
      rawBody: members.map((member) => JSON.stringify(member)).join('\n'),
      headers: { 'Content-Type': 'application/x-ndjson' },
    },
  );
  expect(imported.status, imported.text).toBe(200);

  let unrecorded = 0;
  for (const at of KILL_AT) {
    await messagesAtSink(at);
    unrecorded += (await kill()).unrecorded;
    await daemon.restart();
  }

  const path = `/web-setup/sequences/${created.data.sequence.sequenceId}`;
  const sequence = await eventually(
    'everybody to complete the sequence',
    async () => {
      const { data } = await api.get<{ sequence: Sequence }>(path);
      return data.sequence.people.ended['completed'] === MEMBERS ? data.sequence : null;
    },
    { ms: LONG_PATIENCE_MS, everyMs: 250 },
  );
  await eventually(
    'the queue to be empty',
    async () => (await daemon.metric('postrider_queue_messages')) === 0,
    { ms: LONG_PATIENCE_MS, everyMs: 250 },
  );
  const counts = await sink.counts();
  console.log(
    `${counts.ids} messages to ${counts.recipients} recipients, ${counts.duplicates} sent twice, of which ${unrecorded} were accepted before a kill`,
  );
  expect(counts.recipients).toBe(MEMBERS);
  expect(counts.ids).toBe(MEMBERS * MESSAGES);
  // Sent twice: the destination accepted it before the outcome was stored.
  expect(counts.duplicates).toBe(unrecorded);
  expect(sequence.people.inProgress).toBe(0);
  expect(sequence.stepCounts.map(({ sent }) => sent)).toEqual(
    Array.from({ length: MESSAGES }, () => MEMBERS),
  );
});

interface Sequence {
  sequenceId: string;
  people: { inProgress: number; ended: Record<string, number> };
  stepCounts: { sent: number }[];
}
