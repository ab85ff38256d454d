import { describe, expect, it } from 'vitest';
import { DAY, iso, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createControlIndex } from '../../src/delivery/control.ts';
import { reasonsOf } from '../../src/delivery/waits.ts';
import { BY_OPERATOR } from '../../src/delivery/warmup.ts';
import { builtThread } from '../support/built-thread.ts';
import { publishMailHost } from '../support/recipients.ts';
import { insertAccount } from '../support/store.ts';
import { createTestDelivery, GOOD, newSink, users } from './setup.ts';

const corrupt = (): never => {
  throw new Error('database disk image is malformed');
};

describe('a domain whose DKIM key cannot be read', () => {
  it('is parked while the mail of others is sent, and its mail is sent when the key can be read again', async () => {
    let broken = true;
    const env = await createTestDelivery({
      deps: {
        signersOf: (domain) => {
          if (broken && domain.domain_id === 'domain_bad') corrupt();
          return [];
        },
      },
    });
    const { delivery, put, sink, clock, status, leases, lines } = env;
    env.addDomain('domain_bad');
    const bad = put(users(5, `bad.${GOOD}`), { domain_id: 'domain_bad' });
    publishMailHost(env.dns, `bad.${GOOD}`, sink.host);
    put(users(20));
    delivery.start();
    await expect.poll(() => sink.count).toBe(20);
    await expect
      .poll(() => delivery.waits.parked())
      .toMatchObject([{ kind: 'domain', id: 'domain_bad', reason: 'database disk image is malformed' }]);
    await expect.poll(delivery.inFlight).toBe(0);
    expect(delivery.bytesInFlight()).toBe(0);
    await expect.poll(leases).toBe(0);
    expect(bad.map(status)).toEqual(bad.map(() => 'queued'));
    expect(lines.map(({ msg }) => msg)).toContain('message cannot be prepared');
    expect(env.tables.events.ofMessage(bad[0]?.seq ?? 0)).toEqual([]);

    broken = false;
    clock.advance(2 * MINUTE);
    await expect.poll(() => bad.map(status)).toEqual(bad.map(() => 'delivered'));
    expect(delivery.waits.parked()).toEqual([]);
  });

  it('is why its message waits, also before the domain is parked', async () => {
    const env = await createTestDelivery({ deps: { signersOf: corrupt } });
    const [{ seq } = expect.fail('no message')] = env.put(users(1));
    env.delivery.start();
    await expect.poll(() => env.tables.queue.listed(seq)?.ready).toBe(0);
    const queued = env.tables.queue.listed(seq) ?? expect.fail('not queued');
    expect(env.delivery.waits.parked()).toEqual([]);
    const live = env.delivery.waits.message(queued);
    const [reason] = reasonsOf(queued, createControlIndex([]), live, env.clock.now());
    expect(reason).toMatchObject({ code: 'parked', text: 'It cannot be prepared.' });
  });

  it('fails its message when it expires', async () => {
    const env = await createTestDelivery({ deps: { signersOf: corrupt } });
    const [message] = env.put(users(1), { expires_at: env.clock.now() + 30_000 });
    if (message === undefined) throw new Error('no message');
    env.delivery.start();
    await expect.poll(() => env.status(message)).toBe('failed');
    const [event] = env.tables.events.ofMessage(message.seq);
    expect(JSON.parse(event?.data ?? '')).toEqual({
      reason: 'expired',
      attempts: 0,
      lastDiagnostic: 'the message cannot be prepared: database disk image is malformed',
    });
  });
});

describe('mail of several pools that waits for a source address', () => {
  it('is sent when the operator skips the warm-up', async () => {
    const started = iso(Date.now()).slice(0, 10);
    const { delivery, put, sink, tables, clock, config } = await createTestDelivery({
      config: { 'delivery.warmup.transactionalFactor': 1 },
    });
    config.delivery.egress = [
      { name: 'new', address: '127.0.0.5', pools: ['default'], warmup: { started, days: 2 } },
    ];
    config.delivery.warmup.schedule = [1, 1];
    config.regions = ['default', 'other'].map((pool) => ({
      code: pool,
      name: pool,
      pools: { tx: pool, mk: pool },
    }));
    const messages = put(users(3));
    delivery.start();
    const postponed = () => messages.filter(({ seq }) => tables.queue.get(seq)?.ready === 0).length;
    await expect.poll(() => [sink.count, postponed()]).toEqual([1, 2]);
    const skipped = {
      entry: 'new',
      provider: '',
      started,
      shift: 0,
      finished: 1,
      changed_at: clock.now(),
    } as const;
    tables.egressWarmup.put({ ...skipped, reason: `skipped ${BY_OPERATOR} on ${started}` });
    await expect.poll(() => sink.count).toBe(3);
  });
});

describe('content that cannot be composed', () => {
  it('fails immediately and permanently, and is logged as an error', async () => {
    const { delivery, put, sink, status, tables, lines } = await createTestDelivery();
    const [bad] = put(['bad@empfang.example'], { body: '{}' });
    put(users(3));
    delivery.start();
    if (bad === undefined) throw new Error('no message');
    await expect.poll(() => status(bad)).toBe('failed');
    await expect.poll(() => sink.count).toBe(3);
    const last = tables.events.ofMessage(bad.seq).at(-1);
    expect(last?.kind).toBe('email_failed');
    expect(JSON.parse(last?.data ?? '')).toMatchObject({
      reason: 'content_invalid',
      smtpCode: 554,
      enhancedCode: '5.6.0',
    });
    expect(tables.queue.get(bad.seq)).toBeNull();
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        messageId: bad.message_id,
        msg: 'message cannot be composed; it fails',
      }),
    );
  });
});

describe('while outcomes cannot be recorded', () => {
  it('sends nothing and leases nothing; sends the mail when they can be recorded again', async () => {
    const { delivery, put, sink, status, leases, tables } = await createTestDelivery();
    const { insert } = tables.events;
    tables.events.insert = corrupt;
    const messages = put(users(10));
    delivery.start();
    await expect.poll(delivery.waits.unrecorded).toMatch(/^outcomes could not be recorded for/);
    expect(sink.count).toBe(0);
    expect(leases()).toBe(0);
    expect(delivery.inFlight()).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'queued'));
    tables.events.insert = insert;
    await expect.poll(() => messages.map(status)).toEqual(messages.map(() => 'delivered'));
    expect(delivery.waits.unrecorded()).toBeNull();
    expect(sink.count).toBe(10);
  });

  it('retries during a stop until its time is over and returns how many are left', async () => {
    const { delivery, put, sink, stop, tables, lines } = await createTestDelivery({
      deps: { firstRetryMs: 20, graceMs: 1000 },
    });
    let tries = 0;
    tables.messages.insertAttempt = () => {
      tries++;
      return corrupt();
    };
    put(users(5));
    delivery.start();
    await expect.poll(() => sink.count).toBe(5);
    await expect.poll(() => tries).toBeGreaterThanOrEqual(5);
    const before = tries;
    expect(await stop()).toBe(5);
    expect(tries).toBeGreaterThan(before + 5);
    expect(lines.at(-1)).toMatchObject({ level: 'error', messages: 5 });
  });

  it('ends a stop as soon as they are recorded', async () => {
    const { delivery, put, sink, stop, tables, status } = await createTestDelivery({
      deps: { firstRetryMs: 20, graceMs: 600_000 },
    });
    const { insertAttempt } = tables.messages;
    let tries = 0;
    tables.messages.insertAttempt = () => {
      tries++;
      return corrupt();
    };
    const messages = put(users(5));
    delivery.start();
    await expect.poll(() => sink.count).toBe(5);
    await expect.poll(() => tries).toBeGreaterThanOrEqual(5);
    const left = stop();
    tables.messages.insertAttempt = insertAttempt;
    expect(await left).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'delivered'));
  });
});

describe('workers that die at random times', () => {
  it('lose no message and no slot, and do not delay the stop', async () => {
    // Exits while it sends some of its first fifty messages.
    const mortal = `import { parentPort } from 'node:worker_threads';
      let left = 1 + Math.random() * 50;
      parentPort.on('message', ({ jobs = [] }) => {
        left -= jobs.length;
        if (left < 0) setTimeout(() => process.exit(1), Math.random() * 60);
      });`;
    const { delivery, put, sink, status, stop, leases, lines } = await createTestDelivery({
      config: { 'delivery.workers': 2, 'delivery.retry.first': '300ms', 'delivery.retry.factor': 1 },
      sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 40 } } },
      deps: { workerScript: builtThread('delivery/worker/main.ts', mortal) },
    });
    const messages = put(users(200));
    delivery.start();
    await expect.poll(() => messages.filter((message) => status(message) !== 'delivered').length).toBe(0);
    const got = new Set(sink.messages.flatMap(({ to }) => to));
    expect(got.size).toBe(200);
    const deaths = lines.filter(({ msg }) => String(msg).startsWith('delivery worker ended;'));
    expect(deaths.length).toBeGreaterThan(1);
    await expect.poll(delivery.inFlight).toBe(0);
    expect(delivery.bytesInFlight()).toBe(0);
    expect(leases()).toBe(0);
    expect(await stop()).toBe(0);
  });

  it('do not prevent the stop from ending', async () => {
    const { delivery, put, stop, leases, status } = await createTestDelivery({
      deps: { workerScript: new URL('data:text/javascript,process.exit(1)') },
    });
    const messages = put(users(5));
    delivery.start();
    // The connections of a new site.
    await expect.poll(delivery.inFlight).toBe(2);
    expect(await stop()).toBe(0);
    expect(leases()).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'queued'));
  });
});

describe('the budgets', () => {
  it('bound the bytes in flight to hosts that stall and admit mail of other accounts', async () => {
    const LIMIT = 8 << 20;
    const env = await createTestDelivery({ config: { 'delivery.inFlightBytes': LIMIT } });
    const { delivery, put, sink, dns } = env;
    insertAccount(env.tables, 'acct_two', env.clock.now());
    env.addDomain('domain_two', 'acct_two');
    for (let n = 0; n < 20; n++) {
      const stalled = await newSink({ host: `127.0.1.${n + 1}`, port: sink.port, script: { dot: 'silent' } });
      publishMailHost(dns, `stall${n}.example`, stalled.host);
      put(users(10, `stall${n}.example`), { bytes: 500_000 });
    }
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, delivery.bytesInFlight());
    }, 5);
    delivery.start();
    await expect.poll(delivery.inFlight).toBeGreaterThan(8);
    put(users(20), { account_id: 'acct_two', domain_id: 'domain_two', bytes: 100_000 });
    await expect.poll(() => sink.count).toBe(20);
    clearInterval(watch);
    expect(most).toBeLessThanOrEqual(LIMIT);
    expect(most).toBeGreaterThan(LIMIT / 2);
  });

  it("admit an account's ordinary mail while hosts that stall have its large mail", async () => {
    const { delivery, put, sink, dns } = await createTestDelivery({
      config: { 'delivery.inFlightBytes': 2 << 20 },
    });
    const stalled = await newSink({ host: '127.0.1.31', port: sink.port, script: { dot: 'silent' } });
    publishMailHost(dns, 'stall.example', stalled.host);
    put(users(10, 'stall.example'), { bytes: 800_000 });
    delivery.start();
    await expect.poll(() => stalled.open).toBeGreaterThan(0);
    // A refused message does not block the smaller ones behind it.
    put(['large@empfang.example'], { bytes: 1_900_000 });
    put(users(20), { bytes: 20_000 });
    await expect.poll(() => sink.count).toBe(20);
    await expect.poll(delivery.inFlight).toBe(stalled.open);
  });

  it('bound the sessions of all sites together', async () => {
    const env = await createTestDelivery({
      config: { 'delivery.connections': 6 },
      sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 10 } } },
    });
    const { delivery, put, sink, dns } = env;
    const sinks = [sink];
    for (let n = 1; n < 4; n++) {
      const other = await newSink({
        host: `127.0.2.${n}`,
        port: sink.port,
        script: { dot: { reply: '250 2.0.0 taken', delayMs: 10 } },
      });
      publishMailHost(dns, `d${n}.example`, other.host);
      put(users(30, `d${n}.example`));
      sinks.push(other);
    }
    put(users(30));
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, delivery.inFlight());
    }, 2);
    delivery.start();
    await expect.poll(() => sinks.reduce((sum, { count }) => sum + count, 0)).toBe(120);
    clearInterval(watch);
    expect(most).toBeLessThanOrEqual(6);
    expect(most).toBeGreaterThan(1);
  });

  it('leave half of the sessions to sites that have answered', async () => {
    const { delivery, put, sink, dns } = await createTestDelivery({ config: { 'delivery.connections': 8 } });
    put(users(1));
    delivery.start();
    await expect.poll(() => sink.count).toBe(1);
    const silent: Awaited<ReturnType<typeof newSink>>[] = [];
    for (let n = 1; n <= 6; n++) {
      const host = `127.0.3.${n}`;
      const other = await newSink({ host, port: sink.port, script: { greeting: 'silent' } });
      publishMailHost(dns, `silent${n}.example`, host);
      put(users(4, `silent${n}.example`));
      silent.push(other);
    }
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, delivery.inFlight());
    }, 2);
    // The scan finds them. Each would have two sessions: twelve.
    await expect.poll(() => silent.reduce((sum, { open }) => sum + open, 0)).toBe(4);
    put(users(30));
    delivery.announce({ priority: 0, account_id: 'acct_one', destination: GOOD });
    await expect.poll(() => sink.count).toBe(31);
    clearInterval(watch);
    expect(silent.reduce((sum, { peak }) => sum + peak, 0)).toBe(4);
    expect(most).toBeGreaterThan(4);
    expect(most).toBeLessThanOrEqual(8);
  });
});

describe('a short outage', () => {
  it('delays mail for about as long as it lasts and leaves messages without an attempt in their state', async () => {
    const env = await createTestDelivery({
      config: { 'delivery.retry.first': '60s', 'delivery.retry.factor': 1 },
    });
    const { delivery, put, sink, status, clock } = env;
    sink.program({ script: { greeting: 'drop' } });
    const messages = put(users(60));
    delivery.start();
    const count = (state: string) => messages.filter((message) => status(message) === state).length;
    // A third session may begin between the failures of the first two, which suspend the site.
    await expect.poll(() => count('deferred') >= 2 && count('queued') + count('deferred') === 60).toBe(true);
    expect(count('deferred')).toBeLessThanOrEqual(3);
    const waiting = messages.find((message) => status(message) === 'queued');
    const queued = waiting && env.tables.queue.ready(waiting.seq);
    expect(queued && delivery.waits.obstacle(queued)).toMatch(
      /^the mail hosts of empfang\.example cannot be reached/,
    );
    sink.program({ script: {} });
    const since = clock.now();
    // The suspension, and the wait of the two messages with its spread.
    clock.advance(70_000);
    await expect.poll(() => messages.map(status)).toEqual(messages.map(() => 'delivered'));
    // Failures counted one by one would mean a wait of half an hour.
    expect(clock.now() - since).toBeLessThan(5 * MINUTE);
  });
});

/** A log at level info that stores its lines. */
function infoLog() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const attempts = () => lines.filter(({ msg }) => msg === 'delivery attempt');
  return { log, lines, attempts };
}

describe('a domain with neither MX nor address', () => {
  it('defers mail on the first day and bounces it with 5.1.2 when the result is the same on another day', async () => {
    const { log, attempts } = infoLog();
    const env = await createTestDelivery({ deps: { log } });
    env.dns.set('textonly.example', 'TXT', ['nothing else']);
    const [message] = env.put(['ada@textonly.example']);
    if (message === undefined) throw new Error('nothing was queued');
    env.delivery.start();
    await expect.poll(() => env.status(message)).toBe('deferred');
    env.clock.advance(DAY);
    await expect.poll(() => env.status(message)).toBe('bounced');
    const bounce = env.tables.events.ofMessage(message.seq).at(-1);
    expect(JSON.parse(bounce?.data ?? '')).toMatchObject({
      smtpCode: 550,
      enhancedCode: '5.1.2',
      diagnostic: expect.stringContaining('does not accept mail'),
    });
    const common = { accountId: 'acct_one', recipientDomain: 'textonly.example', source: 'local' };
    expect(attempts()).toMatchObject([
      { ...common, action: 'defer', smtpCode: 450, enhancedCode: '4.1.2' },
      { ...common, action: 'bounce', smtpCode: 550, enhancedCode: '5.1.2' },
    ]);
  });
});

describe('the log of delivery attempts', () => {
  it('has account, domain, site, codes and reply of each attempt, failed lookups included', async () => {
    const { log, attempts } = infoLog();
    const env = await createTestDelivery({ deps: { log } });
    env.dns.set('broken.example', 'MX', 'SERVFAIL');
    const messages = env.put([`ada@${GOOD}`, 'ada@broken.example', 'ada@nowhere.example']);
    env.delivery.start();
    await expect.poll(() => messages.map(env.status)).toEqual(['delivered', 'deferred', 'bounced']);
    const byDomain = attempts().toSorted((a, b) =>
      String(a['recipientDomain']).localeCompare(String(b['recipientDomain'])),
    );
    expect(byDomain).toMatchObject([
      { recipientDomain: 'broken.example', conclusion: 'dns-trouble', smtpCode: 451, enhancedCode: '4.4.3' },
      {
        accountId: 'acct_one',
        recipientDomain: GOOD,
        site: expect.stringContaining('via'),
        action: 'deliver',
        smtpCode: 250,
        reply: expect.any(String),
        source: 'smtp',
      },
      {
        recipientDomain: 'nowhere.example',
        conclusion: 'no-such-domain',
        action: 'bounce',
        enhancedCode: '5.1.2',
        reply: 'The domain does not exist',
      },
    ]);
  });
});
