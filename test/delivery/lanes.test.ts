import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createLog } from '../../src/core/log.ts';
import { type AttemptLog, evaluateReport } from '../../src/delivery/attempt-result.ts';
import { createFailover, reportFailover, secondaryObstacle } from '../../src/delivery/lanes.ts';
import type { AttemptReport, SessionRecord } from '../../src/delivery/worker/protocol.ts';
import { classify } from '../../src/mail/classify/classify.ts';
import type { SmtpPhase } from '../../src/mail/reply.ts';
import { toml } from '../support/daemon.ts';
import { enqueue, startStore } from '../support/store.ts';

const SECOND_POOL = [
  { name: 'main', address: '192.0.2.1', pools: ['default'] },
  { name: 'second', address: '192.0.2.2', pools: ['secondary'] },
];
const LISTED = '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org';

interface Options {
  egress?: object[];
  secondary?: object;
  routes?: object[];
  altStatus?: 'ACTIVE' | 'PENDING';
}

function setup({ egress = SECOND_POOL, secondary, routes = [], altStatus = 'ACTIVE' }: Options = {}) {
  const { dir, db, tables, clock } = startStore();
  const config = loadConfig({
    cwd: dir,
    env: {
      POSTRIDER_DELIVERY__EGRESS: toml(egress),
      POSTRIDER_DELIVERY__ROUTES: toml(routes),
      ...(secondary === undefined ? {} : { POSTRIDER_SECONDARY: toml(secondary) }),
    },
  });
  db.prepare('UPDATE domains SET alt_status = ?').run(altStatus);
  const observed: string[] = [];
  const deps = { config, clock, monotonic: clock, tables };
  let failover = createFailover(deps);
  const log = createLog({ level: 'silent', hashAddresses: true });
  const message = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
  let attempts = 0;
  const session = (phase: SmtpPhase): SessionRecord => ({
    host: 'mx.one.test',
    address: '198.51.100.1',
    port: 25,
    localAddress: '192.0.2.1',
    tls: null,
    phase,
    reply: null,
    error: null,
    startedAt: 0,
    endedAt: 0,
  });
  /** Records an attempt, as attempt-result does, and decides. */
  const decide = (
    report: Pick<AttemptReport, 'conclusion' | 'phase' | 'reply'>,
    lane: AttemptLog['lane'] = 'primary',
  ) => {
    const sessions = [{ ...session(report.phase), reply: report.reply }];
    const result = evaluateReport({ id: message.seq, ...report, sessions }, classify);
    tables.messages.insertAttempt({
      message_seq: message.seq,
      attempt: ++attempts,
      at: clock.now(),
      lane,
      report: { conclusion: report.conclusion },
    });
    const attempt = { lane, conclusion: report.conclusion, sessions };
    const decision = failover.decide(tables, message, result, attempt);
    if (decision === null) return null;
    reportFailover(decision, { log, observe: (each) => void observed.push(each) });
    return decision.isAdmitted ? decision.cause : null;
  };
  const replied = (text: string, phase: SmtpPhase = 'rcpt') => {
    const [, code = '', enhanced = '', rest = ''] = /^(\d+) ([\d.]+) (.*)$/.exec(text) ?? [];
    return decide({ conclusion: 'replied', phase, reply: { code: Number(code), enhanced, text: rest } });
  };
  const unreachable = (phase: SmtpPhase = 'connect') =>
    decide({ conclusion: 'unreachable', phase, reply: null });
  return {
    decide,
    replied,
    unreachable,
    observed,
    tables,
    message,
    db,
    restart: () => {
      failover = createFailover(deps);
    },
  };
}

describe('a reply', () => {
  it.each([
    LISTED,
    '421 4.7.0 [192.0.2.1] has a bad reputation, blocked using dnsbl.example',
    '550 5.7.1 Fix reverse DNS for 192.0.2.1',
  ])('changes the lane after a reply that names the listing of our address: %s', (text) => {
    const { replied, observed } = setup();
    expect(replied(text)).toBe('listing');
    expect(observed).toEqual(['listing']);
  });

  it.each([
    ['250 2.0.0 OK'],
    ['550 5.1.1 No such user'],
    ['550 5.7.1 Email rejected per DMARC policy for example.com'],
    ['550 5.7.23 SPF check failed'],
    ['554 5.7.1 Message content rejected as spam'],
    ['450 4.2.0 Greylisted, try again in 5 minutes'],
    ['421 4.7.0 blocked: too many complaints about 192.0.2.1, see our blocklist'],
    ['452 4.2.2 Mailbox full'],
  ])('keeps the lane after another reply: %s', (text) => {
    const { replied, observed } = setup();
    expect(replied(text)).toBeNull();
    expect(observed).toEqual([]);
  });

  it('changes the lane after a rejection in reply to the final dot, and never without a reply', () => {
    const { replied, decide } = setup();
    for (let n = 0; n < 3; n++)
      expect(decide({ conclusion: 'unanswered', phase: 'dot', reply: null })).toBeNull();
    expect(replied(LISTED, 'dot')).toBe('listing');
  });
});

describe('an attempt without a connection', () => {
  it('changes the lane the second time', () => {
    const { unreachable } = setup();
    expect(unreachable()).toBeNull();
    expect(unreachable('greeting')).toBe('connection');
  });

  it('does not count if the connection was lost during DATA', () => {
    const { unreachable } = setup();
    for (let n = 0; n < 3; n++) expect(unreachable('data')).toBeNull();
  });

  it('does not count if TLS failed', () => {
    const { unreachable } = setup();
    for (let n = 0; n < 3; n++) expect(unreachable('starttls')).toBeNull();
  });
});

describe('a message stays in its lane', () => {
  it.each<[string, Options]>([
    ['when the lane is not active for its domain', { altStatus: 'PENDING' }],
    ['without source addresses for the lane', { egress: [] }],
    [
      'when the lane has the addresses of the primary one',
      { egress: [{ name: 'both', address: '192.0.2.1', pools: ['default', 'secondary'] }] },
    ],
    ['when its destination has a configured route', { routes: [{ match: 'one.test', host: 'gw.test' }] }],
    ['with a share of 0', { secondary: { type: 'builtin', share: 0 } }],
  ])('%s', (_, options) => {
    const { replied, observed } = setup(options);
    expect(replied(LISTED)).toBeNull();
    expect(observed).toEqual([]);
  });

  it('when it is in the secondary lane already', () => {
    const { decide, tables, message } = setup();
    const reply = { code: 554, enhanced: '5.7.1', text: LISTED.slice(10) };
    expect(decide({ conclusion: 'replied', phase: 'rcpt', reply }, 'secondary')).toBeNull();
    tables.queue.moveToSecondary(message.seq, 0);
    expect(decide({ conclusion: 'replied', phase: 'rcpt', reply })).toBeNull();
  });

  it('when it was rerouted', () => {
    const { replied, tables, message } = setup();
    const reroute = tables.queueReroutes.number({ host: 'relay.test', port: 25, tls: null, pool: null });
    tables.queueReroutes.assign(message.seq, reroute);
    expect(replied(LISTED)).toBeNull();
  });

  it('when the cap is reached, which is observed', () => {
    const { replied, observed } = setup({ secondary: { type: 'builtin', perHour: 1 } });
    expect(replied(LISTED)).toBe('listing');
    expect(replied(LISTED)).toBeNull();
    expect(observed).toEqual(['listing', 'capped']);
  });
});

it('changes the lane to a pool whose only source address is that of a proxy', () => {
  const [main] = SECOND_POOL;
  const far = {
    name: 'far',
    publicAddress: '192.0.2.2',
    proxy: 'socks5://192.0.2.9:1080',
    pools: ['secondary'],
  };
  expect(setup({ egress: [main ?? {}, far] }).replied(LISTED)).toBe('listing');
});

it('counts toward the cap after a restart', () => {
  const { replied, observed, restart } = setup({ secondary: { type: 'builtin', perHour: 1 } });
  expect(replied(LISTED)).toBe('listing');
  restart();
  expect(replied(LISTED)).toBeNull();
  expect(observed).toEqual(['listing', 'capped']);
});

it('accepts a relay as the alternative to every pool', () => {
  const relay = {
    type: 'relay',
    host: 'relay.test',
    port: 587,
    tls: 'verified',
    allowUnverifiedAuth: false,
    share: 0.1,
    perHour: 1,
  } as const;
  const { delivery } = loadConfig({ cwd: '/', env: {} });
  expect(secondaryObstacle({ secondary: relay, delivery }, 'default')).toBeNull();
});
