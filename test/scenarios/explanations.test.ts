import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { HOUR, iso, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createControlIndex } from '../../src/delivery/control.ts';
import { type MessageFacts, reasonsOf, WAIT_REASON_CODES } from '../../src/delivery/waits.ts';
import type { ListedInQueue } from '../../src/store/messages/queue-list.ts';
import { readyMessage } from '../delivery/messages.ts';
import { eventually } from '../support/eventually.ts';
import { heldClock } from '../support/store.ts';
import { inTurn, onConnection } from './support/answers.ts';
import { deferred, delivered } from './support/attempts.ts';
import { control, resume } from './support/controls.ts';
import { type ExplainedScenario, explained, type ReasonCode } from './support/explained.ts';
import { many } from './support/many.ts';
import { registerScenarios } from './support/register.ts';
import type { ScenarioRun } from './support/run.ts';
import { addressSettings, startWarmup } from './support/source-addresses.ts';

const EARLY = {
  attempts: [deferred('554', 'reputation-block', 5 * MINUTE, 'mx greeting 554'), delivered('mx dot 250')],
  status: 'delivered',
} as const;

const DEAD = { name: 'far', address: '127.0.0.13', proxy: 'socks5://127.0.0.1:9' };
const FAILED_EXPLAINED_ADDRESS_UNUSABLE = {
  attempts: [deferred('451 4.4.4', 'network-error', undefined), delivered('mx dot 250')],
  status: 'delivered',
} as const;

const POOL = { scope: 'pool', target: 'default' } as const;

const whereExplainedPausedAccount = (run: ScenarioRun) =>
  ({ scope: 'account', target: run.env.api.accountId }) as const;

const whereExplainedPausedSite = (run: ScenarioRun) =>
  ({ scope: 'site', target: `mx.${run.domain} via default` }) as const;

const LOST = 'mx greeting: server closed the connection before the greeting';
const FAILED_EXPLAINED_SITE_SUSPENDED = {
  attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
  status: 'delivered',
} as const;

const SCENARIOS = {
  'explained-account-limited': explained({
    explains: 'account_limited',
    text: 'asked to send less mail of this account',
    user: 'bob',
    hosts: {
      mx: { script: { dot: inTurn('451 4.7.28 unusual rate of unsolicited mail from your domain') } },
    },
    messages: {
      ada: {
        attempts: [deferred('451 4.7.28', 'rate-limited', 5 * MINUTE, 'mx dot 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
    },
  }),
  'explained-address-blocked': explained({
    explains: 'address_blocked',
    text: 'blocks mail from',
    user: 'late',
    hosts: { mx: { script: { greeting: '554 IP=192.0.2.25 - None/bad reputation. (NOWL)' } } },
    messages: {
      early0: EARLY,
      early1: EARLY,
      early2: EARLY,
      late: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      for (const user of ['early0', 'early1', 'early2']) {
        await run.send(user);
        await run.settle();
      }
      await run.send('late');
    },
    end: async (run) => run.sink('mx').program({ script: {} }),
  }),
  'explained-address-unusable': explained({
    explains: 'address_unusable',
    text: 'cannot be used now',
    user: 'kim',
    hosts: { mx: {} },
    messages: {
      ada: FAILED_EXPLAINED_ADDRESS_UNUSABLE,
      bob: FAILED_EXPLAINED_ADDRESS_UNUSABLE,
      kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.configure(addressSettings(run.domain, [DEAD]));
      for (const user of ['ada', 'bob']) {
        await run.send(user);
        await run.settle();
      }
      await run.send('kim');
      await run.settle();
    },
    end: (run) => run.configure({}),
  }),
  'explained-deferred': explained({
    explains: 'deferred',
    text: 'The last attempt was deferred',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    cause: async (run) => {
      await run.sendAll();
      await run.settle();
    },
  }),
  'explained-final': explained({
    explains: 'final',
    text: 'It is delivered',
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    cause: async (run) => {
      await run.sendAll();
      await run.finish();
    },
  }),
  'explained-held': explained({
    explains: 'held',
    text: 'verification of its sending domain has failed',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    cause: async (run) => {
      await run.sendAll();
      await run.settle();
      run.env.setDomainStatus('transactional', 'FAILED');
      await run.env.advance(HOUR);
    },
    end: async (run) => {
      run.env.setDomainStatus('transactional', 'SUCCESS');
      await eventually(
        'the message to be sent',
        async () => (await run.message('ada')).status === 'delivered',
      );
    },
  }),
  'explained-no-route': explained({
    explains: 'no_route',
    text: 'There is no route',
    // The pause of the pool decides; without it, the message would be deferred.
    decides: false,
    hosts: { mx: {} },
    zone: () => ({ '@': { MX: 'SERVFAIL', A: 'SERVFAIL', AAAA: 'SERVFAIL' } }),
    messages: {
      ada: {
        attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    cause: async (run) => {
      await control(run, 'pause', POOL);
      await run.sendAll();
    },
    end: async (run) => {
      await resume(run, POOL);
      await run.settle();
      run.publish({ '@': { MX: ['10 mx'] } });
    },
  }),
  'explained-paused-account': explained({
    title: 'explains mail of an account that the operator has paused',
    explains: 'paused',
    text: 'maintenance',
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    cause: async (run) => {
      await control(run, 'pause', whereExplainedPausedAccount(run));
      await run.sendAll();
      await run.settle();
    },
    end: (run) => resume(run, whereExplainedPausedAccount(run)),
  }),
  'explained-paused-site': explained({
    title: 'explains mail of a site that the operator has paused',
    explains: 'paused',
    text: 'maintenance',
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    cause: async (run) => {
      await control(run, 'pause', whereExplainedPausedSite(run));
      await run.sendAll();
      await run.settle();
    },
    end: (run) => resume(run, whereExplainedPausedSite(run)),
  }),
  'explained-rejected': explained({
    explains: 'rejected',
    text: 'maintenance',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    cause: async (run) => {
      await run.sendAll();
      await run.settle();
      await control(run, 'bounce');
    },
    end: (run) => resume(run),
  }),
  'explained-route-unknown': explained({
    explains: 'route_unknown',
    text: 'being looked up in DNS',
    hosts: { mx: {} },
    zone: () => ({ '@': { MX: 'silent' } }),
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    cause: (run) => run.sendAll(),
    end: async (run) => {
      run.publish({ '@': { MX: ['10 mx'] } });
      // A reload discards the lookup in progress.
      await run.configure({});
    },
  }),
  'explained-scheduled': explained({
    explains: 'scheduled',
    text: 'It is scheduled for',
    hosts: { mx: {} },
    messages: { ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' } },
    cause: async (run) => {
      await run.send('ada', { scheduledAt: iso(run.env.clock.now() + HOUR) });
    },
  }),
  'explained-sending': explained({
    explains: 'sending',
    text: 'being sent now',
    hosts: { mx: { script: { mail: onConnection(1, 'silent') } } },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'mx mail: timed out after 5 min waiting for the reply to MAIL',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    cause: (run) => run.sendAll(),
  }),
  'explained-sessions-used': explained({
    title: 'explains mail to a new site while sites that do not respond use their share of the sessions',
    explains: 'sessions_used',
    text: 'sites without an answer',
    user: 'bob',
    hosts: { mx: { script: { mail: onConnection(1, 'silent') } } },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'mx mail: timed out after 5 min waiting for the reply to MAIL',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await eventually(
        'the first message to be sent',
        async () => (await run.message('ada')).status === 'sending',
      );
      await run.send('bob');
    },
  }),
  'explained-site-busy': explained({
    explains: 'site_busy',
    text: 'connections that the site',
    user: 'bob',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { mail: onConnection(1, 'silent') } } },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'mx mail: timed out after 5 min waiting for the reply to MAIL',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await eventually(
        'the first message to be sent',
        async () => (await run.message('ada')).status === 'sending',
      );
      await run.send('bob');
    },
  }),
  'explained-site-limited': explained({
    explains: 'site_limited',
    text: 'asked to send less',
    user: 'bob',
    hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, slow down') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.7.1', 'rate-limited', 5 * MINUTE, 'mx mail 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
    },
  }),
  'explained-site-rate': explained({
    explains: 'site_rate',
    text: 'allows its next message at',
    user: 'bob',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, perSecond: 0.01 }] }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
    },
  }),
  'explained-site-suspended': explained({
    explains: 'site_suspended',
    text: 'could not be reached',
    user: 'kim',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
    hosts: { mx: { script: { greeting: 'drop' } } },
    messages: {
      ada: FAILED_EXPLAINED_SITE_SUSPENDED,
      bob: FAILED_EXPLAINED_SITE_SUSPENDED,
      kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    cause: async (run) => {
      await run.send('ada');
      await run.send('bob');
      await run.settle();
      await run.send('kim');
      await run.settle();
    },
    end: async (run) => run.sink('mx').program({ script: {} }),
  }),
  'explained-warmup': explained({
    explains: 'warmup',
    text: "waits for tomorrow's warm-up quota",
    user: 'user2',
    hosts: { mx: {} },
    messages: many(3, 'user'),
    // Transactional mail may use twice the quota.
    cause: async (run) => {
      await startWarmup(run, [1, 10]);
      await run.sendAll();
      await run.settle();
    },
  }),
} satisfies Record<string, ExplainedScenario>;

// One of two sessions is for sites without an answer.
registerScenarios('explanations', SCENARIOS, { settings: { 'delivery.connections': 2 } });

/** The facts of a message that nothing delays. */
const FACTS: MessageFacts = {
  path: { pool: 'default', lane: 'primary', via: null },
  route: { kind: 'hosts', hosts: [], route: null, ttl: 60 },
  site: null,
  accountLimitedMs: 0,
  slowedTo: null,
  obstacle: null,
  parked: null,
  isWithoutSite: false,
  isAccountBusy: false,
  unreadable: null,
  isUnrecorded: false,
  exhausted: null,
  stopped: null,
  sessions: { used: 0, limit: 2 },
};

/** Reasons that no mail host causes: failures of this server, and states that last only a moment. */
const WITHOUT_SCENARIO: [
  code: ReasonCode,
  text: string,
  facts: Partial<MessageFacts>,
  stopped: string | null,
  queued?: Partial<ListedInQueue>,
][] = [
  ['in_line', 'sent within a second or two', {}, null],
  ['parked', 'Mail of this domain cannot be prepared.', { parked: { kind: 'domain', ms: SECOND } }, null],
  ['stopped', 'No mail is sent: the disk is full.', {}, 'the disk is full'],
  ['unreadable', 'It could not be read or updated', { unreadable: { what: 'message', ms: SECOND } }, null],
  ['unreadable', 'The queued mail of its account', { unreadable: { what: 'key', ms: SECOND } }, null],
  ['unrecorded', 'its outcome could not be recorded yet', { isUnrecorded: true }, null, { lease: 1 }],
  [
    'sites_full',
    'mail waits for 10000 sites, or for 2500 because of mail of its account',
    { isWithoutSite: true },
    null,
  ],
  ['account_limited', 'and what is sent of it now uses its limit up.', { isAccountBusy: true }, null],
  ['sending_slowed', 'Mail of its stream is slowed to 60 messages per minute', { slowedTo: 60 }, null],
  [
    'ramp',
    "It waits for tomorrow's messages of the new account (10 of 10 used).",
    {
      obstacle: {
        kind: 'ramp',
        until: heldClock().now() + SECOND,
        text: "waits for tomorrow's messages of the new account (10 of 10 used)",
      },
    },
    null,
  ],
  ['bytes_used', 'delivery.inFlightBytes', { exhausted: 'bytes' }, null],
];

describe('a message that no mail host delays', () => {
  it.each(WITHOUT_SCENARIO)('has the reason %s', (code, text, facts, stopped, columns = {}) => {
    const queued: ListedInQueue = {
      ...readyMessage(1),
      ready: 1,
      paused: 0,
      hold_reason: null,
      ...columns,
    };
    const live = { ...FACTS, ...facts, stopped };
    const reasons = reasonsOf(queued, createControlIndex([]), live, heldClock().now());
    expect(reasons).toEqual([expect.objectContaining({ code, text: expect.stringContaining(text) })]);
  });
});

it('every reason has a scenario or a test, and is documented', () => {
  const tested = new Set<string>([
    ...Object.values(SCENARIOS).map(({ explains }) => explains),
    ...WITHOUT_SCENARIO.map(([code]) => code),
  ]);
  expect([...tested].toSorted()).toEqual(WAIT_REASON_CODES.toSorted());
  const table = readFileSync(new URL('../../docs/reference/wait-reasons.md', import.meta.url), 'utf8');
  expect(WAIT_REASON_CODES.filter((code) => !table.includes(`\`${code}\``))).toEqual([]);
});
