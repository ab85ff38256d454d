import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { publishMailHost } from '../support/recipients.ts';
import { insertAccount } from '../support/store.ts';
import { threadFromSource } from '../support/thread-from-source.ts';
import { GOOD, newSink, startEngine, users } from './setup.ts';

const corrupt = (): never => {
  throw new Error('database disk image is malformed');
};
const WAIT = { timeout: 20_000 };

describe('a domain whose DKIM key cannot be read', { timeout: 30_000 }, () => {
  it('is parked; the mail of others flows, and its own is sent when the key can be read again', async () => {
    let broken = true;
    const rig = await startEngine({
      engine: {
        signersOf: (domain) => {
          if (broken && domain.domain_id === 'domain_bad') corrupt();
          return [];
        },
      },
    });
    const { engine, put, sink, clock, status, leases, lines } = rig;
    rig.addDomain('domain_bad');
    const bad = put(users(5, `bad.${GOOD}`), { domain_id: 'domain_bad' });
    publishMailHost(rig.dns, `bad.${GOOD}`, sink.host);
    put(users(20));
    engine.start();
    await expect.poll(() => sink.count, WAIT).toBe(20);
    await expect
      .poll(() => engine.parked(), WAIT)
      .toMatchObject([{ kind: 'domain', id: 'domain_bad', reason: 'database disk image is malformed' }]);
    await expect.poll(engine.inFlight, WAIT).toBe(0);
    expect(engine.bytesInFlight()).toBe(0);
    expect(leases()).toBe(0);
    expect(bad.map(status)).toEqual(bad.map(() => 'queued'));
    expect(lines.map(({ msg }) => msg)).toContain('message cannot be prepared');
    expect(rig.tables.events.ofMessage(bad[0]?.seq ?? 0)).toEqual([]);

    broken = false;
    clock.advance(2 * MINUTE);
    await expect.poll(() => bad.map(status), WAIT).toEqual(bad.map(() => 'delivered'));
    expect(engine.parked()).toEqual([]);
  });

  it('fails as expired when the time of the message is over', async () => {
    const rig = await startEngine({ engine: { signersOf: corrupt } });
    const [message] = rig.put(users(1), { expires_at: rig.clock.now() + 30_000 });
    if (message === undefined) throw new Error('no message');
    rig.engine.start();
    await expect.poll(() => rig.status(message), WAIT).toBe('failed');
    const [event] = rig.tables.events.ofMessage(message.seq);
    expect(JSON.parse(event?.data ?? '')).toEqual({
      reason: 'expired',
      attempts: 0,
      lastDiagnostic: 'the message cannot be prepared: database disk image is malformed',
    });
  });
});

describe('content that cannot be composed', { timeout: 30_000 }, () => {
  it('is an immediate permanent failure of this side, logged as an error', async () => {
    const { engine, put, sink, status, tables, lines } = await startEngine();
    const [bad] = put(['bad@empfang.example'], { body: '{}' });
    put(users(3));
    engine.start();
    if (bad === undefined) throw new Error('no message');
    await expect.poll(() => status(bad), WAIT).toBe('failed');
    await expect.poll(() => sink.count, WAIT).toBe(3);
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

describe('while outcomes cannot be recorded', { timeout: 40_000 }, () => {
  it('nothing is sent and no claim is kept; it is sent when they can be again', async () => {
    const { engine, put, sink, status, leases, tables } = await startEngine();
    const { insert } = tables.events;
    tables.events.insert = corrupt;
    const messages = put(users(10));
    engine.start();
    await expect.poll(engine.unrecorded, WAIT).toMatch(/^outcomes cannot be recorded since/);
    expect(sink.count).toBe(0);
    expect(leases()).toBe(0);
    expect(engine.inFlight()).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'queued'));
    tables.events.insert = insert;
    await expect.poll(() => messages.map(status), WAIT).toEqual(messages.map(() => 'delivered'));
    expect(engine.unrecorded()).toBeNull();
    expect(sink.count).toBe(10);
  });

  it('a stop keeps trying until its time is over, and says how many are left', async () => {
    const { engine, put, sink, stop, tables, lines } = await startEngine();
    let tries = 0;
    tables.messages.insertAttempt = () => {
      tries++;
      return corrupt();
    };
    put(users(5));
    engine.start();
    await expect.poll(() => sink.count, WAIT).toBe(5);
    await expect.poll(() => tries, WAIT).toBeGreaterThanOrEqual(5);
    const before = tries;
    expect(await stop()).toBe(5);
    expect(tries).toBeGreaterThan(before + 5);
    expect(lines.at(-1)).toMatchObject({ level: 'error', messages: 5 });
  });

  it('a stop ends at once when they can be recorded in time', async () => {
    const { engine, put, sink, stop, tables, status } = await startEngine({ engine: { graceMs: 600_000 } });
    const { insertAttempt } = tables.messages;
    let tries = 0;
    tables.messages.insertAttempt = () => {
      tries++;
      return corrupt();
    };
    const messages = put(users(5));
    engine.start();
    await expect.poll(() => sink.count, WAIT).toBe(5);
    await expect.poll(() => tries, WAIT).toBeGreaterThanOrEqual(5);
    const left = stop();
    tables.messages.insertAttempt = insertAttempt;
    expect(await left).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'delivered'));
  });
});

describe('workers that die at random', { timeout: 120_000 }, () => {
  it('lose no message and no slot, and the stop is in time', async () => {
    // Dies within two seconds of being ready.
    const mortal = 'setTimeout(() => process.exit(1), 300 + Math.random() * 1700);';
    const { engine, put, sink, status, stop, leases, lines } = await startEngine({
      settings: { 'delivery.retry.first': '300ms', 'delivery.retry.factor': 1 },
      sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 40 } } },
      engine: { workerScript: threadFromSource('delivery/worker/main.ts', mortal) },
    });
    const messages = put(users(560));
    engine.start();
    await expect
      .poll(() => messages.filter((message) => status(message) !== 'delivered').length, { timeout: 90_000 })
      .toBe(0);
    const got = new Set(sink.messages.flatMap(({ to }) => to));
    expect(got.size).toBe(560);
    const deaths = lines.filter(({ msg }) => String(msg).startsWith('delivery worker ended;'));
    expect(deaths.length).toBeGreaterThan(1);
    await expect.poll(engine.inFlight).toBe(0);
    expect(engine.bytesInFlight()).toBe(0);
    expect(leases()).toBe(0);
    expect(await stop()).toBe(0);
  });

  it('do not keep a stop from ending', async () => {
    const { engine, put, stop, leases, status } = await startEngine({
      engine: { workerScript: new URL('data:text/javascript,process.exit(1)') },
    });
    const messages = put(users(5));
    engine.start();
    await expect.poll(engine.inFlight, WAIT).toBe(5);
    expect(await stop()).toBe(0);
    expect(leases()).toBe(0);
    expect(messages.map(status)).toEqual(messages.map(() => 'queued'));
  });
});

describe('the limits of the engine', { timeout: 60_000 }, () => {
  it('bound the octets in flight to hosts that stall, and leave room for other accounts', async () => {
    const LIMIT = 8 << 20;
    const rig = await startEngine({ settings: { 'delivery.inFlightBytes': LIMIT } });
    const { engine, put, sink, dns } = rig;
    insertAccount(rig.tables, 'acct_two', rig.clock.now());
    rig.addDomain('domain_two', 'acct_two');
    for (let n = 0; n < 20; n++) {
      const stalled = await newSink({ host: `127.0.1.${n + 1}`, port: sink.port, script: { dot: 'silent' } });
      publishMailHost(dns, `stall${n}.example`, stalled.host);
      put(users(10, `stall${n}.example`), { bytes: 500_000 });
    }
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, engine.bytesInFlight());
    }, 5);
    engine.start();
    await expect.poll(engine.inFlight, WAIT).toBeGreaterThan(8);
    put(users(20), { account_id: 'acct_two', domain_id: 'domain_two', bytes: 100_000 });
    await expect.poll(() => sink.count, WAIT).toBe(20);
    clearInterval(watch);
    expect(most).toBeLessThanOrEqual(LIMIT);
    expect(most).toBeGreaterThan(LIMIT / 2);
  });

  it("let an account's ordinary mail out while hosts that stall have its large mail", async () => {
    const { engine, put, sink, dns } = await startEngine({ settings: { 'delivery.inFlightBytes': 2 << 20 } });
    const stalled = await newSink({ host: '127.0.1.31', port: sink.port, script: { dot: 'silent' } });
    publishMailHost(dns, 'stall.example', stalled.host);
    put(users(10, 'stall.example'), { bytes: 800_000 });
    engine.start();
    await expect.poll(() => stalled.open, WAIT).toBeGreaterThan(0);
    // One that is refused does not hold back the smaller ones behind it.
    put(['large@empfang.example'], { bytes: 1_900_000 });
    put(users(20), { bytes: 20_000 });
    await expect.poll(() => sink.count, WAIT).toBe(20);
    expect(engine.inFlight()).toBe(stalled.open);
  });

  it('bound the sessions over all sites', async () => {
    const rig = await startEngine({
      settings: { 'delivery.connections': 6 },
      sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 10 } } },
    });
    const { engine, put, sink, dns } = rig;
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
      most = Math.max(most, engine.inFlight());
    }, 2);
    engine.start();
    await expect.poll(() => sinks.reduce((sum, { count }) => sum + count, 0), WAIT).toBe(120);
    clearInterval(watch);
    expect(most).toBeLessThanOrEqual(6);
    expect(most).toBeGreaterThan(1);
  });
});

describe('a short outage', { timeout: 60_000 }, () => {
  it('delays mail for about as long as it lasts, and leaves what was not attempted as it was', async () => {
    const rig = await startEngine({ settings: { 'delivery.retry.first': '1s', 'delivery.retry.factor': 1 } });
    const { engine, put, sink, status, clock } = rig;
    sink.program({ script: { greeting: 'drop' } });
    const messages = put(users(60));
    engine.start();
    await expect
      .poll(() => messages.filter((message) => status(message) === 'deferred').length, WAIT)
      .toBe(10);
    expect(messages.filter((message) => status(message) === 'queued')).toHaveLength(50);
    const waiting = messages.find((message) => status(message) === 'queued');
    const queued = waiting && rig.tables.queue.ready(waiting.seq);
    expect(queued && engine.obstacle(queued)).toMatch(
      /^the mail hosts of empfang\.example cannot be reached/,
    );
    sink.program({ script: {} });
    const since = clock.now();
    await expect.poll(() => messages.map(status), WAIT).toEqual(messages.map(() => 'delivered'));
    // Ten failures in a row would have been half an hour.
    expect(clock.now() - since).toBeLessThan(5 * MINUTE);
  });
});

/** A log at level info whose lines are kept. */
function infoLog() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const attempts = () => lines.filter(({ msg }) => msg === 'delivery attempt');
  return { log, lines, attempts };
}

describe('a domain with neither MX nor address', { timeout: 30_000 }, () => {
  it('defers mail on the first day, and bounces it with 5.1.2 when it is the same on another day', async () => {
    const { log, attempts } = infoLog();
    const rig = await startEngine({ engine: { log } });
    rig.dns.set('textonly.example', 'TXT', ['nothing else']);
    const [message] = rig.put(['ada@textonly.example']);
    if (message === undefined) throw new Error('nothing was queued');
    rig.engine.start();
    await expect.poll(() => rig.status(message), { timeout: 10_000 }).toBe('deferred');
    rig.clock.advance(DAY);
    await expect.poll(() => rig.status(message), { timeout: 10_000 }).toBe('bounced');
    const bounce = rig.tables.events.ofMessage(message.seq).at(-1);
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

describe('the log of delivery attempts', { timeout: 30_000 }, () => {
  it('has account, domain, site, codes and reply of each, look-ups that failed included', async () => {
    const { log, attempts } = infoLog();
    const rig = await startEngine({ engine: { log } });
    rig.dns.set('broken.example', 'MX', 'SERVFAIL');
    const messages = rig.put([`ada@${GOOD}`, 'ada@broken.example', 'ada@nowhere.example']);
    rig.engine.start();
    await expect
      .poll(() => messages.map(rig.status), { timeout: 10_000 })
      .toEqual(['delivered', 'deferred', 'bounced']);
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
