import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR, iso, MINUTE, SECOND } from '../../src/core/clock.ts';
import { DOMAIN_EVENT_FIELDS } from '../support/events.ts';
import { type Answering, type Received, startEndpoint } from '../support/webhook-endpoint.ts';
import { granted, type House, startHouse, UNANSWERED } from './house.ts';

/** Rows of one webhook as its account sees them. */
async function deliveriesOf(house: House, webhookId: string, accountId = 'acct_one') {
  return granted(await house.webhooks.deliveries(accountId, webhookId, { beforeSeq: null, limit: 1000 }))
    .deliveries;
}

async function statuses(house: House, webhookId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of await deliveriesOf(house, webhookId)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Goes on in steps until that much time has passed. */
async function pass(house: House, time: number, step: number): Promise<void> {
  for (let passed = 0; passed < time; passed += step) {
    house.clock.advance(step);
    await house.tell();
  }
}

function idOf({ headers }: Received): string {
  return String(headers['webhook-id']);
}

/** Waits for something that another party does; the test's own time-out bounds it. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('an event', () => {
  it('is told in the shape that is written down', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    await house.hook(endpoint.url);
    const message = await house.sent({ recipient: 'ada@example.net', subject: 'Grüße' });
    await house.tell();
    const [event] = house.tables.events.ofMessage(message.seq);
    expect(endpoint.received.map(({ json }) => json)).toEqual([
      {
        id: event?.event_id,
        type: 'email_sent',
        created: iso(house.clock.now()),
        timestamp: iso(house.clock.now()),
        livemode: true,
        data: {
          object: {
            eventId: event?.event_id,
            event: 'email_sent',
            timestamp: iso(house.clock.now()),
            accountId: 'acct_one',
            emailId: message.message_id,
            messageId: message.message_id,
            useCase: 'tx',
            domainId: 'domain_one',
            from: 'shop@example.com',
            recipient: 'ada@example.net',
            to: ['ada@example.net'],
            contactIdentifier: message.recipient_hash,
            subject: 'Grüße',
          },
        },
      },
    ]);
  });

  it('is signed so that the Standard Webhooks library verifies it', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    const { secret } = await house.hook(endpoint.url);
    // The library looks at the real time.
    house.clock.advance(Date.now() - house.clock.now());
    await house.sent();
    await house.tell();
    const [call] = endpoint.received;
    if (call === undefined) throw new Error('nothing was received');
    const headers = {
      'webhook-id': String(call.headers['webhook-id']),
      'webhook-timestamp': String(call.headers['webhook-timestamp']),
      'webhook-signature': String(call.headers['webhook-signature']),
    };
    expect(new Webhook(secret).verify(call.body, headers)).toEqual(call.json);
    expect(call.headers['webhook-id']).toBe(call.json.id);
    expect(call.headers['content-type']).toBe('application/json');
  });

  it('of simulated mail is not live, one of a domain has no recipient', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    await house.hook(endpoint.url);
    await house.sent({ simulated: 1 });
    await house.tell();
    const domain = house.tables.domains.byId('domain_one');
    if (domain === null) throw new Error('the domain is missing');
    await house.writer.run((all) =>
      house.recorder.domain(all, domain, 'domain_failing', DOMAIN_EVENT_FIELDS),
    );
    await house.tell();
    expect(endpoint.received.map(({ json }) => json)).toMatchObject([
      { livemode: false, type: 'email_sent' },
      {
        livemode: true,
        type: 'domain_failing',
        data: { object: { domainId: 'domain_one', status: 'TEMPORARY_FAILURE' } },
      },
    ]);
    expect(endpoint.received[1]?.json.data.object).not.toHaveProperty('to');
  });

  it('is told without a round, as soon as it is committed', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await until(() => endpoint.received.length === 1);
    await house.sender.idle();
    expect(await deliveriesOf(house, webhookId)).toMatchObject([
      { status: 'succeeded', attempts: 1, responseCode: 200 },
    ]);
  });

  it('of one account is told to that account alone', async () => {
    const house = await startHouse();
    const [mine, theirs] = [await startEndpoint(), await startEndpoint()];
    await house.hook(mine.url);
    const other = await house.hook(theirs.url, 'acct_two');
    await house.sent();
    await house.tell();
    expect(mine.received).toHaveLength(1);
    expect(theirs.received).toEqual([]);
    expect(await deliveriesOf(house, other.webhookId, 'acct_two')).toEqual([]);
  });
});

describe('a failure', () => {
  it.each([
    ['300', 300],
    ['302', 302],
    ['400', 400],
    ['404', 404],
    ['500', 500],
  ])('%s is tried again, by the schedule', async (_, status) => {
    const house = await startHouse();
    const endpoint = await startEndpoint(status);
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    const [delivery] = await deliveriesOf(house, webhookId);
    expect(delivery).toMatchObject({ status: 'pending', attempts: 1, responseCode: status });
    expect(delivery?.error).toContain(`the endpoint answered ${status}`);
    const wait = Date.parse(delivery?.nextAttemptAt ?? '') - house.clock.now();
    expect(wait).toBeGreaterThanOrEqual(4 * SECOND);
    expect(wait).toBeLessThanOrEqual(6 * SECOND);
    house.clock.advance(3 * SECOND);
    await house.tell();
    expect(endpoint.received).toHaveLength(1);
    endpoint.answer(200);
    house.clock.advance(3 * SECOND);
    await house.tell();
    expect(endpoint.received).toHaveLength(2);
    expect(await deliveriesOf(house, webhookId)).toMatchObject([{ status: 'succeeded', attempts: 2 }]);
  });

  it('has the same id and body on every try, and a signature of its own time', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    await pass(house, 8 * HOUR, 10 * MINUTE);
    const ids = new Set(endpoint.received.map(idOf));
    const bodies = new Set(endpoint.received.map(({ body }) => body));
    const times = new Set(endpoint.received.map(({ headers }) => headers['webhook-timestamp']));
    expect([ids.size, bodies.size]).toEqual([1, 1]);
    expect(times.size).toBe(endpoint.received.length);
    expect(endpoint.received.length).toBeGreaterThanOrEqual(5);
  });

  it('is final after ten tries', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    await pass(house, 4 * DAY, 30 * MINUTE);
    expect(endpoint.received).toHaveLength(10);
    const [delivery] = await deliveriesOf(house, webhookId);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 10, responseCode: 500 });
    expect(delivery).not.toHaveProperty('nextAttemptAt');
  });

  it('waits as long as the endpoint asks', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(() => ({ status: 503, headers: { 'retry-after': '3600' } }));
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    expect((await deliveriesOf(house, webhookId))[0]?.nextAttemptAt).toBe(iso(house.clock.now() + HOUR));
    // It asked for itself, not for this event: another one waits as well.
    await house.sent();
    await house.tell();
    await pass(house, 59 * MINUTE, MINUTE);
    expect(endpoint.received).toHaveLength(1);
    endpoint.answer(200);
    await pass(house, 2 * MINUTE, MINUTE);
    expect(endpoint.taken()).toHaveLength(2);
  });

  it.each([
    [429, 'slows the endpoint down', 3],
    [502, 'slows the endpoint down', 3],
    [504, 'slows the endpoint down', 3],
    [500, 'may be about the event, and slows nothing', 6],
  ])('%i %s', async (status, _, calls) => {
    const house = await startHouse();
    const endpoint = await startEndpoint(status);
    await house.hook(endpoint.url);
    await house.sentAtOnce(3);
    await house.tell();
    endpoint.answer(200);
    await house.sentAtOnce(3);
    await house.tell();
    expect(endpoint.received).toHaveLength(calls);
    house.clock.advance(SECOND);
    await house.tell();
    expect(endpoint.received).toHaveLength(6);
  });

  it('of the service itself is tried again, too', async () => {
    const house = await startHouse({
      caller: { call: () => Promise.reject(new Error('a bug')), close: () => Promise.resolve() },
    });
    const { webhookId } = await house.hook('http://127.0.0.1:1/');
    await house.sent();
    await house.tell();
    expect(await deliveriesOf(house, webhookId)).toMatchObject([
      { status: 'pending', attempts: 1, error: 'a fault of the service' },
    ]);
    expect(house.logged).toContainEqual(expect.objectContaining({ level: 'error' }));
  });

  it('is an address that may not be called, and a redirect', async () => {
    const house = await startHouse();
    house.dns.set('receiver.test', 'A', ['169.254.169.254']);
    const elsewhere = await startEndpoint();
    const redirecting = await startEndpoint(() => ({ status: 302, headers: { location: elsewhere.url } }));
    const forbidden = await house.hook('http://receiver.test/latest/meta-data/');
    const redirected = await house.hook(redirecting.url);
    await house.sent();
    await house.tell();
    expect(await deliveriesOf(house, forbidden.webhookId)).toMatchObject([
      { status: 'pending', error: 'receiver.test has no address that webhooks may call' },
    ]);
    expect(await deliveriesOf(house, redirected.webhookId)).toMatchObject([
      { status: 'pending', error: 'the endpoint answered 302: redirects are not followed' },
    ]);
    expect(elsewhere.received).toEqual([]);
  });
});

describe('an endpoint that is down for 20 hours', () => {
  const troubles: Record<string, Answering | number> = {
    'answers 500': 500,
    'asks to be left alone': () => ({ status: 503, headers: { 'retry-after': '60' } }),
    'breaks connections': (_, response) => {
      response.destroy();
      return 'nothing';
    },
  };

  it.each(Object.entries(troubles))('and %s gets everything in the end', async (_, trouble) => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    const { webhookId } = await house.hook(endpoint.url);
    endpoint.answer(trouble);
    const sent: number[] = [];
    for (let hour = 0; hour < 20; hour++) {
      for (let n = 0; n < 3; n++) sent.push((await house.sent()).seq);
      await house.tell();
      await pass(house, HOUR, 15 * MINUTE);
    }
    expect(endpoint.taken()).toEqual([]);
    endpoint.answer(200);
    await pass(house, 30 * HOUR, 30 * MINUTE);
    const events = sent.map((seq) => house.tables.events.ofMessage(seq)[0]?.event_id);
    expect(new Set(endpoint.taken())).toEqual(new Set(events));
    expect(await statuses(house, webhookId)).toEqual({ succeeded: sent.length });
    expect(granted(house.webhooks.get('acct_one', webhookId))).toMatchObject({ isActive: true });
  });
});

describe('an endpoint that does not answer', () => {
  it('holds up nobody but itself', async () => {
    const house = await startHouse();
    const held: (() => void)[] = [];
    const slow = await startEndpoint(() => new Promise((resolve) => held.push(() => resolve(200))));
    const quick = await startEndpoint();
    const slowHook = await house.hook(slow.url);
    const quickHook = await house.hook(quick.url);
    for (let n = 0; n < 50; n++) await house.sent();
    await house.sender.round();
    // The slow one holds ten calls; its neighbour has had everything meanwhile.
    await until(async () => (await statuses(house, quickHook.webhookId))['succeeded'] === 50);
    expect(await statuses(house, slowHook.webhookId)).toEqual({ pending: 50 });
    expect(slow.received).toHaveLength(10);
    // It answers in the end, and gets the rest.
    slow.answer(200);
    for (const release of held) release();
    await house.tell();
    expect(await statuses(house, slowHook.webhookId)).toEqual({ succeeded: 50 });
  });

  it('leaves a call to each of the others, however many do so', async () => {
    const house = await startHouse();
    const slow = await startEndpoint(() => new Promise(() => {}));
    const quick = await startEndpoint();
    for (let n = 0; n < 40; n++) await house.hook(slow.url);
    for (let n = 0; n < 20; n++) await house.sent();
    await house.sender.round();
    await until(() => slow.received.length >= 256);
    const late = await house.hook(quick.url);
    for (let n = 0; n < 20; n++) await house.sent();
    await until(async () => (await statuses(house, late.webhookId))['succeeded'] === 20);
    // Beyond the bound: what the last of them still had room for, and one for each of the others.
    expect(house.sender.inFlight()).toBeLessThanOrEqual(256 + 10 + 40);
  });
});

describe('a deleted webhook', () => {
  it('is told nothing more: what is under way ends, what waits is dropped', async () => {
    const house = await startHouse();
    const closed: string[] = [];
    const endpoint = await startEndpoint((call, response) => {
      response.on('close', () => closed.push(idOf(call)));
      return 'nothing';
    });
    const { webhookId } = await house.hook(endpoint.url);
    for (let n = 0; n < 15; n++) await house.sent();
    await house.sender.round();
    await until(() => endpoint.received.length === 10);
    granted(await house.webhooks.remove('acct_one', webhookId));
    await house.sender.idle();
    await until(() => closed.length === 10);
    await house.sent();
    await house.tell();
    await pass(house, DAY, HOUR);
    expect(endpoint.received).toHaveLength(10);
    expect(house.db.prepare('SELECT count(*) FROM webhook_deliveries').pluck().get()).toBe(0);
  });

  it('by another process is noticed in the next round', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(() => 'nothing');
    const { webhookId } = await house.hook(endpoint.url);
    await house.sentAtOnce(15);
    await house.sender.round();
    await until(() => endpoint.received.length === 10);
    house.db.prepare('DELETE FROM webhooks WHERE webhook_id = ?').run(webhookId);
    await house.tell();
    expect(house.sender.inFlight()).toBe(0);
  });
});

describe('a webhook that is off', () => {
  it('keeps what waited, and goes on with it when it is on again', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    granted(await house.webhooks.update('acct_one', webhookId, { isActive: false }));
    await house.sent();
    endpoint.answer(200);
    await pass(house, HOUR, 10 * MINUTE);
    expect(endpoint.received).toHaveLength(1);
    granted(await house.webhooks.update('acct_one', webhookId, { isActive: true }));
    await house.tell();
    // The first event; the second happened while it was off.
    expect(endpoint.received).toHaveLength(2);
    expect(await statuses(house, webhookId)).toEqual({ succeeded: 1 });
  });
});

describe('turning off', () => {
  it('follows a 410, at once', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(410);
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    expect(await deliveriesOf(house, webhookId)).toMatchObject([{ status: 'failed', attempts: 1 }]);
    expect(granted(house.webhooks.get('acct_one', webhookId))).toMatchObject({
      isActive: false,
      offReason: 'gone',
    });
    expect(house.logged).toContainEqual(
      expect.objectContaining({ level: 'warn', webhookId, accountId: 'acct_one', reason: 'gone' }),
    );
    await house.sent();
    await pass(house, DAY, HOUR);
    expect(endpoint.received).toHaveLength(1);
  });

  it('follows five days of nothing but failures', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await house.hook(endpoint.url);
    const isActive = () => granted(house.webhooks.get('acct_one', webhookId)).isActive;
    for (let hour = 0; hour < 5 * 24; hour++) {
      await house.sent();
      await house.tell();
      expect(isActive()).toBe(true);
      house.clock.advance(HOUR);
    }
    await house.sent();
    await house.tell();
    expect(granted(house.webhooks.get('acct_one', webhookId))).toMatchObject({
      isActive: false,
      offReason: 'failing',
      failingSince: iso(house.clock.now() - 5 * DAY),
    });
    expect(house.logged).toContainEqual(expect.objectContaining({ level: 'warn', reason: 'failing' }));
  });

  it('does not, when one call in between succeeded', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await house.hook(endpoint.url);
    for (let day = 0; day < 12; day++) {
      endpoint.answer(day % 4 === 3 ? 200 : 500);
      await house.sent();
      await house.tell();
      house.clock.advance(DAY);
    }
    expect(granted(house.webhooks.get('acct_one', webhookId)).isActive).toBe(true);
  });
});

describe('a rotation', () => {
  it('signs with both secrets for a day, then with the new one alone', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint();
    const old = await house.hook(endpoint.url);
    const { secret } = granted(await house.webhooks.rotateSecret('acct_one', old.webhookId));
    expect(secret).not.toBe(old.secret);
    const signatures = async () => {
      await house.sent();
      await house.tell();
      return String(endpoint.received.at(-1)?.headers['webhook-signature']).split(' ').length;
    };
    expect(await signatures()).toBe(2);
    house.clock.advance(DAY - SECOND);
    expect(await signatures()).toBe(2);
    house.clock.advance(SECOND);
    expect(await signatures()).toBe(1);
  });
});

describe('a new start', () => {
  it('tells again what the old daemon had under way, and loses nothing', async () => {
    const house = await startHouse({ caller: UNANSWERED });
    const endpoint = await startEndpoint();
    const { webhookId } = await house.hook(endpoint.url);
    for (let n = 0; n < 30; n++) await house.sent();
    await house.sender.round();
    expect(house.sender.inFlight()).toBe(10);
    const next = house.restarted();
    await next.round();
    await next.idle();
    expect(new Set(endpoint.taken()).size).toBe(30);
    expect(await statuses(house, webhookId)).toEqual({ succeeded: 30 });
  });

  it('after an orderly end begins nothing anew that was told', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(() => new Promise((resolve) => setTimeout(() => resolve(200), 50)));
    await house.hook(endpoint.url);
    for (let n = 0; n < 5; n++) await house.sent();
    await house.sender.round();
    await house.sender.stop();
    const next = house.restarted();
    await next.round();
    await next.idle();
    expect(endpoint.received).toHaveLength(5);
  });
});

describe('an event that is past its retention', () => {
  it('is told no more', async () => {
    const house = await startHouse();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await house.hook(endpoint.url);
    await house.sent();
    await house.tell();
    house.tables.retention.events.purge({
      from: 0,
      before: house.clock.now() + 1,
      now: house.clock.now(),
      rows: 10,
    });
    await pass(house, HOUR, 10 * MINUTE);
    expect(endpoint.received).toHaveLength(1);
    expect(await deliveriesOf(house, webhookId)).toMatchObject([
      { status: 'failed', error: 'the event is past its retention' },
    ]);
  });
});
