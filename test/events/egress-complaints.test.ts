import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { enqueue, startStore } from '../support/store.ts';

const REPORT = { conclusion: 'replied', action: 'deliver', reply: null, sessions: [] };
const COMPLAINT = {
  kind: 'email_complained',
  fields: { source: 'arf', feedbackType: 'abuse', verified: true },
} as const;

/** A message with these attempts about which its recipient complained. */
async function complainedAbout(
  reports: readonly object[],
  complaint: Parameters<ReturnType<typeof startStore>['recorder']['message']>[2] = COMPLAINT,
) {
  const { tables, writer, recorder, clock } = startStore();
  const { seq } = enqueue(tables, clock.now(), { recipient: 'ann@gmail.com' });
  await writer.run((tx) => {
    for (const [index, report] of reports.entries())
      tx.messages.insertAttempt({
        message_seq: seq,
        attempt: index + 1,
        at: clock.now(),
        lane: 'primary',
        report,
      });
    tx.messages.setState(seq, 'delivered', clock.now(), clock.now(), clock.now());
    tx.queue.remove(seq);
  });
  clock.advance(DAY);
  const message = tables.messages.bySeq(seq);
  if (message === null) throw new Error('the message was not stored');
  await writer.run((tx) => void recorder.message(tx, message, complaint));
  const day = Math.floor(clock.now() / DAY) * DAY;
  return ['a', 'b'].map(
    (entry) => tables.egressCounts.get({ day, entry, provider: 'Google' })?.complained ?? 0,
  );
}

describe('a complaint', () => {
  it('counts for the address that delivered the message, on the day of the complaint', async () => {
    const deferred = { ...REPORT, action: 'defer', egress: 'a', provider: 'Google' };
    expect(await complainedAbout([deferred, { ...REPORT, egress: 'b', provider: 'Google' }])).toEqual([0, 1]);
  });

  it('about mail from an address without a name counts nowhere', async () => {
    expect(await complainedAbout([REPORT])).toEqual([0, 0]);
  });

  it.each([
    { source: 'arf', feedbackType: 'abuse', verified: false },
    { source: 'report_link', feedbackType: 'fraud' },
  ] as const)('counts nowhere when nobody vouches for it: %j', async (fields) => {
    const reports = [{ ...REPORT, egress: 'a', provider: 'Google' }];
    expect(await complainedAbout(reports, { kind: 'email_complained', fields })).toEqual([0, 0]);
  });
});
