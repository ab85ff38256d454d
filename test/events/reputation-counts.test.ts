import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { countAccepted } from '../../src/events/counts.ts';
import type { MessageEvent, MessageEventKind } from '../../src/events/event-types.ts';
import { REPUTATION_COUNTERS, reputationCountTable } from '../../src/store/reputation/reputation-counts.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue, startStore } from '../support/store.ts';

const ACCOUNT = 'acct_one';

function start() {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
  /** Records events of a new message; `source`: of its attempts. */
  const record = async (
    events: readonly (MessageEventKind | MessageEvent)[],
    { recipient = 'ann@gmail.com', source }: { recipient?: string; source?: string } = {},
  ) => {
    const { seq } = enqueue(tables, clock.now(), { recipient });
    if (source !== undefined)
      await writer.run((tx) =>
        tx.messages.insertAttempt({
          message_seq: seq,
          attempt: 1,
          at: clock.now(),
          lane: 'primary',
          report: {
            conclusion: 'replied',
            action: 'deliver',
            reply: null,
            sessions: [],
            egress: source,
            provider: 'Google',
          },
        }),
      );
    for (const event of events)
      await writer.run((tx) => {
        const message = tx.messages.bySeq(seq) ?? expect.unreachable();
        return recorder.message(tx, message, typeof event === 'string' ? exampleEvent(event) : event);
      });
  };
  /** The counts of the day that are not zero, by source address and provider. */
  const counts = () =>
    Object.fromEntries(
      tables.reputationCounts
        .ofDay(clock.now() - (clock.now() % DAY), ACCOUNT)
        .map((row) => [
          `${row.source} ${row.provider}`.trim(),
          Object.fromEntries(
            REPUTATION_COUNTERS.filter((name) => row[name] > 0).map((name) => [name, row[name]]),
          ),
        ]),
    );
  return { ...store, record, counts };
}

const bounce = (bounceType: 'hard' | 'soft' | 'block'): MessageEvent => {
  const event = exampleEvent('email_bounced');
  if (event.kind !== 'email_bounced') throw new Error('the example has another kind');
  return { ...event, fields: { ...event.fields, bounceType } };
};
const delay = (classification: 'greylisted' | 'reputation-block'): MessageEvent => {
  const event = exampleEvent('email_delayed');
  if (event.kind !== 'email_delayed') throw new Error('the example has another kind');
  return { ...event, fields: { ...event.fields, classification } };
};

describe('the counts of a reputation', () => {
  it('have each result of an attempt once', async () => {
    const { record, counts } = start();
    await record(['email_sent', delay('greylisted'), 'email_sent', 'email_delivered']);
    await record(['email_sent', delay('reputation-block'), 'email_sent', 'email_delivered']);
    await record(['email_sent', bounce('hard')]);
    await record(['email_sent', bounce('soft')]);
    await record(['email_sent', bounce('block')]);
    expect(counts()).toEqual({
      Google: { deferred: 1, delivered: 2, hardBounced: 1, softBounced: 1, blocked: 2 },
    });
  });

  it('add up unknown providers, and count for the source address of the last attempt', async () => {
    const { record, counts } = start();
    await record(['email_sent', 'email_delivered', 'email_complained'], { source: 'pool-a' });
    await record(['email_sent', 'email_delivered'], { recipient: 'bob@one.example' });
    await record(['email_sent', 'email_delivered'], { recipient: 'bob@two.example' });
    expect(counts()).toEqual({
      'pool-a Google': { delivered: 1, complained: 1 },
      other: { delivered: 2 },
    });
  });

  it('have accepted messages, without those of a unit that was rolled back', async () => {
    const { tables, writer, clock, counts } = start();
    const mail = {
      accountId: ACCOUNT,
      domainId: 'domain_one',
      stream: 'tx',
      destination: 'gmail.com',
      labels: null,
    } as const;
    await writer.run((tx) => countAccepted(tx, mail, clock.now()));
    await expect(
      writer.run((tx) => {
        countAccepted(tx, mail, clock.now());
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    expect(counts()).toEqual({ Google: { volume: 1 } });
    expect(tables.reputationCounts.ofDay(clock.now() - (clock.now() % DAY), 'acct_other')).toEqual([]);
  });

  it('of a day and account have a bounded number of rows', () => {
    const { db } = startStore();
    const table = reputationCountTable(db, 2);
    for (const provider of ['Google', 'Yahoo', 'Apple', 'Orange'])
      table.add({ day: 0, accountId: ACCOUNT, domainId: 'domain_one', source: '', provider }, 'delivered');
    table.endUnit(true);
    table.write();
    expect(table.ofDay(0, ACCOUNT).map(({ provider, delivered }) => [provider, delivered])).toEqual([
      ['Google', 1],
      ['Yahoo', 1],
      ['other', 2],
    ]);
  });
});
