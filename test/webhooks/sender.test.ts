import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR, iso, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createCallShares, createEndpointPace } from '../../src/webhooks/sender.ts';
import { DOMAIN_EVENT_FIELDS, exampleEvent } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { enqueue } from '../support/store.ts';
import { type Answering, type Received, startEndpoint } from '../support/webhook-endpoint.ts';
import { NO_RESPONSE, startWebhooks, type WebhookEnv } from './setup.ts';

/** The deliveries of a webhook as its account lists them. */
async function deliveriesOf(env: WebhookEnv, webhookId: string, accountId = 'acct_one') {
  return granted(await env.webhooks.deliveries(accountId, webhookId, { beforeSeq: null, limit: 1000 }))
    .deliveries;
}

async function statuses(env: WebhookEnv, webhookId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of await deliveriesOf(env, webhookId)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Advances the clock in steps, and sends what is due after each. */
async function pass(env: WebhookEnv, time: number, step: number): Promise<void> {
  for (let passed = 0; passed < time; passed += step) {
    env.clock.advance(step);
    await env.sendDue();
  }
}

function idOf({ headers }: Received): string {
  return String(headers['webhook-id']);
}

/** Waits for a condition. */
async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what, condition, { everyMs: 5 });
}

describe('an event', () => {
  it('has the documented form', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    await env.hook(endpoint.url);
    const message = await env.sent({ recipient: 'ada@example.net', subject: 'Grüße' });
    await env.sendDue();
    const [event] = env.tables.events.ofMessage(message.seq);
    expect(endpoint.received.map(({ json }) => json)).toEqual([
      {
        id: event?.event_id,
        type: 'email_sent',
        created: iso(env.clock.now()),
        timestamp: iso(env.clock.now()),
        livemode: true,
        data: {
          object: {
            eventId: event?.event_id,
            event: 'email_sent',
            timestamp: iso(env.clock.now()),
            accountId: 'acct_one',
            livemode: true,
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
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const { secret } = await env.hook(endpoint.url);
    // The library uses the real time.
    env.clock.advance(Date.now() - env.clock.now());
    await env.sent();
    await env.sendDue();
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
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    await env.hook(endpoint.url);
    await env.sent({ simulated: 1 });
    await env.sendDue();
    const domain = env.tables.domains.byId('domain_one');
    if (domain === null) throw new Error('the domain is missing');
    await env.writer.run((tx) => env.recorder.domain(tx, domain, 'domain_failing', DOMAIN_EVENT_FIELDS));
    await env.sendDue();
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

  it('is sent without a round as soon as it is committed', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await until('the call to arrive', () => endpoint.received.length === 1);
    await env.sender.idle();
    expect(await deliveriesOf(env, webhookId)).toMatchObject([
      { status: 'succeeded', attempts: 1, responseCode: 200 },
    ]);
  });

  it('of one account is sent to that account only', async () => {
    const env = await startWebhooks();
    const [mine, theirs] = [await startEndpoint(), await startEndpoint()];
    await env.hook(mine.url);
    const other = await env.hook(theirs.url, 'acct_two');
    await env.sent();
    await env.sendDue();
    expect(mine.received).toHaveLength(1);
    expect(theirs.received).toEqual([]);
    expect(await deliveriesOf(env, other.webhookId, 'acct_two')).toEqual([]);
  });
});

describe('a failure', () => {
  it.each([
    ['300', 300],
    ['302', 302],
    ['400', 400],
    ['404', 404],
    ['500', 500],
  ])('%s is retried by the schedule', async (_, status) => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(status);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    const [delivery] = await deliveriesOf(env, webhookId);
    expect(delivery).toMatchObject({ status: 'pending', attempts: 1, responseCode: status });
    expect(delivery?.error).toContain(`the endpoint responded with ${status}`);
    const wait = Date.parse(delivery?.nextAttemptAt ?? '') - env.clock.now();
    expect(wait).toBeGreaterThanOrEqual(4 * SECOND);
    expect(wait).toBeLessThanOrEqual(6 * SECOND);
    env.clock.advance(3 * SECOND);
    await env.sendDue();
    expect(endpoint.received).toHaveLength(1);
    endpoint.answer(200);
    env.clock.advance(3 * SECOND);
    await env.sendDue();
    expect(endpoint.received).toHaveLength(2);
    expect(await deliveriesOf(env, webhookId)).toMatchObject([{ status: 'succeeded', attempts: 2 }]);
  });

  it('has the same id and body in every attempt, and a new signature', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    await pass(env, 8 * HOUR, 10 * MINUTE);
    const ids = new Set(endpoint.received.map(idOf));
    const bodies = new Set(endpoint.received.map(({ body }) => body));
    const times = new Set(endpoint.received.map(({ headers }) => headers['webhook-timestamp']));
    expect([ids.size, bodies.size]).toEqual([1, 1]);
    expect(times.size).toBe(endpoint.received.length);
    expect(endpoint.received.length).toBeGreaterThanOrEqual(5);
  });

  it('is final after twelve attempts', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    await pass(env, 4 * DAY, 30 * MINUTE);
    expect(endpoint.received).toHaveLength(12);
    const [delivery] = await deliveriesOf(env, webhookId);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 12, responseCode: 500 });
    expect(delivery).not.toHaveProperty('nextAttemptAt');
  });

  it('waits as long as Retry-After requests', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => ({ status: 503, headers: { 'retry-after': '3600' } }));
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    expect((await deliveriesOf(env, webhookId))[0]?.nextAttemptAt).toBe(iso(env.clock.now() + HOUR));
    // The endpoint is not overloaded: the first attempts of other events follow.
    await env.sent();
    await env.sendDue();
    expect(endpoint.received).toHaveLength(2);
    await pass(env, 59 * MINUTE, MINUTE);
    expect(endpoint.received).toHaveLength(2);
    endpoint.answer(200);
    await pass(env, 2 * MINUTE, MINUTE);
    expect(endpoint.taken()).toHaveLength(2);
  });

  it('that shows an overload lets other events wait for the endpoint, until a time that is shown', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => ({ status: 429, headers: { 'retry-after': '3600' } }));
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    const nextProbeAt = iso(env.clock.now() + HOUR);
    await env.sent();
    await env.sendDue();
    await pass(env, 59 * MINUTE, MINUTE);
    expect(endpoint.received).toHaveLength(1);
    for (const delivery of await deliveriesOf(env, webhookId)) {
      expect(delivery).toMatchObject({ status: 'pending', nextProbeAt });
      expect(delivery).not.toHaveProperty('nextAttemptAt');
    }
    endpoint.answer(200);
    await pass(env, 2 * MINUTE, MINUTE);
    expect(endpoint.taken()).toHaveLength(2);
  });

  it.each([500, 503])(
    '%i of all calls does not delay the first attempts of further events',
    async (status) => {
      const env = await startWebhooks();
      const endpoint = await startEndpoint(status);
      const { webhookId } = await env.hook(endpoint.url);
      for (let round = 1; round <= 5; round++) {
        await env.sentTogether(20);
        await env.sendDue();
        expect(new Set(endpoint.received.map(idOf)).size).toBe(20 * round);
      }
      const now = env.clock.now();
      for (const delivery of await deliveriesOf(env, webhookId)) {
        expect(delivery).not.toHaveProperty('nextProbeAt');
        expect(Date.parse(delivery.nextAttemptAt ?? '')).toBeGreaterThan(now);
      }
    },
  );

  it('has no time of a next attempt in the past while it waits for a call', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => new Promise(() => {}));
    const { webhookId } = await env.hook(endpoint.url);
    await env.sentTogether(15);
    await env.sender.round();
    await until('ten calls to arrive', () => endpoint.received.length === 10);
    env.clock.advance(MINUTE);
    for (const delivery of await deliveriesOf(env, webhookId)) {
      expect(delivery.status).toBe('pending');
      expect(delivery).not.toHaveProperty('nextAttemptAt');
    }
  });

  it.each([
    [429, 'slows the endpoint down', 3],
    [502, 'slows the endpoint down', 3],
    [504, 'slows the endpoint down', 3],
    [500, 'does not slow the endpoint down', 6],
  ])('%i %s', async (status, _, calls) => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(status);
    await env.hook(endpoint.url);
    await env.sentTogether(3);
    await env.sendDue();
    endpoint.answer(200);
    await env.sentTogether(3);
    await env.sendDue();
    expect(endpoint.received).toHaveLength(calls);
    env.clock.advance(SECOND);
    await env.sendDue();
    expect(endpoint.received).toHaveLength(6);
  });

  it('of the service itself is retried', async () => {
    const env = await startWebhooks({
      caller: { call: () => Promise.reject(new Error('a bug')), close: () => Promise.resolve() },
    });
    const { webhookId } = await env.hook('http://127.0.0.1:1/');
    await env.sent();
    await env.sendDue();
    expect(await deliveriesOf(env, webhookId)).toMatchObject([
      { status: 'pending', attempts: 1, error: 'internal error of the service' },
    ]);
    expect(env.logged).toContainEqual(expect.objectContaining({ level: 'error' }));
  });

  it('is an address that may not be called, and a redirect', async () => {
    const env = await startWebhooks();
    env.dns.set('receiver.test', 'A', ['169.254.169.254']);
    const elsewhere = await startEndpoint();
    const redirecting = await startEndpoint(() => ({ status: 302, headers: { location: elsewhere.url } }));
    const forbidden = await env.hook('http://receiver.test/latest/meta-data/');
    const redirected = await env.hook(redirecting.url);
    await env.sent();
    await env.sendDue();
    expect(await deliveriesOf(env, forbidden.webhookId)).toMatchObject([
      { status: 'pending', error: 'receiver.test has no address that webhooks may call' },
    ]);
    expect(await deliveriesOf(env, redirected.webhookId)).toMatchObject([
      { status: 'pending', error: 'the endpoint responded with 302: redirects are not followed' },
    ]);
    expect(elsewhere.received).toEqual([]);
  });
});

describe('an endpoint that is down for 20 hours', () => {
  const failures: Record<string, Answering | number> = {
    'answers 500': 500,
    'sends Retry-After': () => ({ status: 503, headers: { 'retry-after': '60' } }),
    'breaks connections': (_, response) => {
      response.destroy();
      return 'nothing';
    },
  };

  it.each(Object.entries(failures))('and %s receives everything later', async (_, failure) => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const { webhookId } = await env.hook(endpoint.url);
    endpoint.answer(failure);
    const sent: number[] = [];
    for (let hour = 0; hour < 20; hour++) {
      sent.push(...(await env.sentTogether(3)).map(({ seq }) => seq));
      await env.sendDue();
      await pass(env, HOUR, 15 * MINUTE);
    }
    expect(endpoint.taken()).toEqual([]);
    endpoint.answer(200);
    await pass(env, 30 * HOUR, 30 * MINUTE);
    const events = sent.map((seq) => env.tables.events.ofMessage(seq)[0]?.event_id);
    expect(new Set(endpoint.taken())).toEqual(new Set(events));
    expect(await statuses(env, webhookId)).toEqual({ succeeded: sent.length });
    expect(granted(env.webhooks.get('acct_one', webhookId))).toMatchObject({ isActive: true });
  });
});

describe('an endpoint that does not answer', () => {
  it('delays no other endpoint', async () => {
    const env = await startWebhooks();
    const held: (() => void)[] = [];
    const slow = await startEndpoint(() => new Promise((resolve) => held.push(() => resolve(200))));
    const quick = await startEndpoint();
    const slowHook = await env.hook(slow.url);
    const quickHook = await env.hook(quick.url);
    await env.sentTogether(50);
    await env.sender.round();
    // The slow one holds ten calls; the other one has received everything.
    await until(
      'the quick endpoint to receive all',
      async () => (await statuses(env, quickHook.webhookId))['succeeded'] === 50,
    );
    expect(await statuses(env, slowHook.webhookId)).toEqual({ pending: 50 });
    expect(slow.received).toHaveLength(10);
    // Once it responds, it gets the rest.
    slow.answer(200);
    for (const release of held) release();
    await env.sendDue();
    expect(await statuses(env, slowHook.webhookId)).toEqual({ succeeded: 50 });
  });

  it('leaves at least one call for each other endpoint', async () => {
    const env = await startWebhooks();
    const slow = await startEndpoint(() => new Promise(() => {}));
    const quick = await startEndpoint();
    for (let n = 0; n < 40; n++) await env.hook(slow.url);
    await env.sentTogether(20);
    await env.sender.round();
    await until('256 calls to arrive', () => slow.received.length >= 256);
    const late = await env.hook(quick.url);
    await env.sentTogether(20);
    await until(
      'the late endpoint to receive all',
      async () => (await statuses(env, late.webhookId))['succeeded'] === 20,
    );
    // Above the limit: the capacity of the last one, and one call for each other.
    expect(env.sender.inFlight()).toBeLessThanOrEqual(256 + 10 + 40);
  });

  it('takes no calls from other accounts', async () => {
    const env = await startWebhooks();
    const slow = await startEndpoint(() => new Promise(() => {}));
    for (let n = 0; n < 40; n++) await env.hook(slow.url);
    await env.sentTogether(20);
    await env.sender.round();
    await until('256 calls to arrive', () => slow.received.length >= 256);
    const other = await startEndpoint(() => new Promise(() => {}));
    await env.hook(other.url, 'acct_two');
    await env.writer.run((tx) => {
      for (let n = 0; n < 20; n++) {
        const message = enqueue(tx, env.clock.now(), { account_id: 'acct_two' });
        env.recorder.message(tx, message, exampleEvent('email_sent'));
      }
    });
    await until('as many calls as an endpoint may have', () => other.received.length >= 10);
  });
});

describe('a deleted webhook', () => {
  it('gets no calls: those in progress are aborted, deliveries are deleted', async () => {
    const env = await startWebhooks();
    const closed: string[] = [];
    const endpoint = await startEndpoint((call, response) => {
      response.on('close', () => closed.push(idOf(call)));
      return 'nothing';
    });
    const { webhookId } = await env.hook(endpoint.url);
    await env.sentTogether(15);
    await env.sender.round();
    await until('ten calls to arrive', () => endpoint.received.length === 10);
    granted(await env.webhooks.remove('acct_one', webhookId));
    await env.sender.idle();
    await until('ten connections to be closed', () => closed.length === 10);
    await env.sent();
    await env.sendDue();
    await pass(env, DAY, HOUR);
    expect(endpoint.received).toHaveLength(10);
    expect(env.db.prepare('SELECT count(*) FROM webhook_deliveries').pluck().get()).toBe(0);
  });

  it('is noticed in the next round when another process deleted it', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => 'nothing');
    const { webhookId } = await env.hook(endpoint.url);
    await env.sentTogether(15);
    await env.sender.round();
    await until('ten calls to arrive', () => endpoint.received.length === 10);
    env.db.prepare('DELETE FROM webhooks WHERE webhook_id = ?').run(webhookId);
    await env.sendDue();
    expect(env.sender.inFlight()).toBe(0);
  });
});

describe('a disabled webhook', () => {
  it('keeps pending deliveries until it is enabled', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: false }));
    await env.sent();
    endpoint.answer(200);
    await pass(env, HOUR, 10 * MINUTE);
    expect(endpoint.received).toHaveLength(1);
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: true }));
    await env.sendDue();
    // The first event; the second happened while it was disabled.
    expect(endpoint.received).toHaveLength(2);
    expect(await statuses(env, webhookId)).toEqual({ succeeded: 1 });
  });
});

describe('disabling a webhook', () => {
  it('follows a 410 immediately', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(410);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    expect(await deliveriesOf(env, webhookId)).toMatchObject([{ status: 'failed', attempts: 1 }]);
    expect(granted(env.webhooks.get('acct_one', webhookId))).toMatchObject({
      isActive: false,
      offReason: 'gone',
    });
    expect(env.logged).toContainEqual(
      expect.objectContaining({ level: 'warn', webhookId, accountId: 'acct_one', reason: 'gone' }),
    );
    await env.sent();
    await pass(env, DAY, HOUR);
    expect(endpoint.received).toHaveLength(1);
  });

  it('follows five days in which all calls failed', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    const isActive = () => granted(env.webhooks.get('acct_one', webhookId)).isActive;
    for (let hour = 0; hour < 5 * 24; hour += 4) {
      await env.sent();
      await env.sendDue();
      expect(isActive()).toBe(true);
      env.clock.advance(4 * HOUR);
    }
    await env.sent();
    await env.sendDue();
    expect(granted(env.webhooks.get('acct_one', webhookId))).toMatchObject({
      isActive: false,
      offReason: 'failing',
      failingSince: iso(env.clock.now() - 5 * DAY),
    });
    expect(env.logged).toContainEqual(expect.objectContaining({ level: 'warn', reason: 'failing' }));
  });

  it('does not happen when one call succeeded', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    for (let day = 0; day < 12; day++) {
      endpoint.answer(day % 4 === 3 ? 200 : 500);
      await env.sent();
      await env.sendDue();
      env.clock.advance(DAY);
    }
    expect(granted(env.webhooks.get('acct_one', webhookId)).isActive).toBe(true);
  });
});

describe('a rotation', () => {
  it('signs with both secrets for a day, then only with the new one', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const old = await env.hook(endpoint.url);
    const { secret } = granted(await env.webhooks.rotateSecret('acct_one', old.webhookId));
    expect(secret).not.toBe(old.secret);
    const signatures = async () => {
      await env.sent();
      await env.sendDue();
      return String(endpoint.received.at(-1)?.headers['webhook-signature']).split(' ').length;
    };
    expect(await signatures()).toBe(2);
    env.clock.advance(DAY - SECOND);
    expect(await signatures()).toBe(2);
    env.clock.advance(SECOND);
    expect(await signatures()).toBe(1);
  });
});

describe('a restart', () => {
  it('repeats the calls that were in progress and loses none', async () => {
    const env = await startWebhooks({ caller: NO_RESPONSE });
    const endpoint = await startEndpoint();
    const { webhookId } = await env.hook(endpoint.url);
    await env.sentTogether(30);
    await env.sender.round();
    expect(env.sender.inFlight()).toBe(10);
    const next = env.restarted();
    await next.round();
    await next.idle();
    expect(new Set(endpoint.taken()).size).toBe(30);
    expect(await statuses(env, webhookId)).toEqual({ succeeded: 30 });
  });

  it('after a graceful stop repeats no finished call', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => new Promise((resolve) => setTimeout(() => resolve(200), 50)));
    await env.hook(endpoint.url);
    await env.sentTogether(5);
    await env.sender.round();
    await env.sender.stop();
    const next = env.restarted();
    await next.round();
    await next.idle();
    expect(endpoint.received).toHaveLength(5);
  });
});

describe('an event that is past its retention', () => {
  it('is not sent', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    env.tables.retention.events.purge({
      from: 0,
      before: env.clock.now() + 1,
      now: env.clock.now(),
      rows: 10,
    });
    await pass(env, HOUR, 10 * MINUTE);
    expect(endpoint.received).toHaveLength(1);
    expect(await deliveriesOf(env, webhookId)).toMatchObject([
      { status: 'failed', error: 'the event is past its retention' },
    ]);
  });
});

it('gives an account all calls while it is alone, and an equal share next to others', () => {
  const shares = createCallShares(4);
  for (let n = 0; n < 4; n++) {
    expect(shares.isBelowShare('one')).toBe(true);
    shares.started('one');
  }
  expect(shares.isBelowShare('one')).toBe(false);
  expect(shares.isBelowShare('two')).toBe(true);
  shares.started('two');
  shares.started('two');
  expect(shares.isBelowShare('two')).toBe(false);
  for (let n = 0; n < 3; n++) shares.ended('one');
  expect(shares.isBelowShare('one')).toBe(true);
  for (let n = 0; n < 2; n++) shares.ended('two');
  expect(shares.isBelowShare('two')).toBe(true);
});

it('lets each account have one call when there are more accounts than calls', () => {
  const shares = createCallShares(2);
  const accounts = ['one', 'two', 'three'];
  for (const account of accounts) {
    expect(shares.isBelowShare(account)).toBe(true);
    shares.started(account);
  }
  for (const account of accounts) expect(shares.isBelowShare(account)).toBe(false);
});

/** A pace with its own clock; each failure follows the end of the pause before. */
function start() {
  const pace = createEndpointPace();
  let now = 0;
  const pause = () => {
    const from = now;
    while (pace.width(now) === 0) now += SECOND / 2;
    return now - from;
  };
  return {
    pace,
    width: () => pace.width(now),
    pausedUntil: () => pace.pausedUntil(now),
    overload: (retryAfterMs: number | null = null, times = 1) => {
      for (let n = 0; n < times; n++) {
        pause();
        pace.overloaded(now, retryAfterMs);
      }
    },
    succeed: (times: number) => {
      for (let n = 0; n < times; n++) pace.succeeded();
    },
    pause,
    isInitial: () => pace.isInitial(now),
  };
}

describe('the pace of an endpoint', () => {
  it('allows ten concurrent calls', () => {
    expect(start().width()).toBe(10);
  });

  it('halves when the endpoint is overloaded, with growing pauses of at most a minute', () => {
    const endpoint = start();
    endpoint.overload();
    expect(endpoint.pausedUntil()).toBe(SECOND);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.pausedUntil()).toBeNull();
    expect(endpoint.width()).toBe(5);
    endpoint.overload();
    expect(endpoint.pause()).toBe(2 * SECOND);
    expect(endpoint.width()).toBe(2);
    endpoint.overload(null, 20);
    expect(endpoint.pause()).toBe(MINUTE);
    expect(endpoint.width()).toBe(1);
  });

  it('counts concurrent failures as one', () => {
    const endpoint = start();
    for (let n = 0; n < 10; n++) endpoint.pace.overloaded(0, null);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('pauses as long as Retry-After requests', () => {
    const endpoint = start();
    endpoint.overload(90 * SECOND);
    expect(endpoint.pause()).toBe(90 * SECOND);
  });

  it('grows by one call with each success', () => {
    const endpoint = start();
    endpoint.overload(null, 5);
    endpoint.pause();
    expect(endpoint.width()).toBe(1);
    endpoint.succeed(3);
    expect(endpoint.width()).toBe(4);
    expect(endpoint.isInitial()).toBe(false);
    endpoint.succeed(20);
    expect(endpoint.width()).toBe(10);
    expect(endpoint.isInitial()).toBe(true);
    endpoint.overload();
    expect(endpoint.pause()).toBe(SECOND);
  });
});
