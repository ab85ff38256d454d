import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../../src/store/suppressions.ts';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { enqueue, insertDomain } from '../support/store.ts';

/*
 * Whether a recipient is eligible: every combination of what an account can know about a person with every kind of send,
 * checked by the whole daemon at acceptance (`POST …/send`) and when a message leaves the queue.
 */

/** What is known of a person. */
interface Person {
  /** 'withdrawn': a contact who withdrew the consent. */
  contact: 'missing' | 'consenting' | 'withdrawn';
  /** In the groups that a send may name. */
  member: 'no' | 'active' | 'inactive';
  /** In the order in which they were created: `hard_bounce for all`. */
  suppressions: readonly Suppression[];
}

type Reason = (typeof SUPPRESSION_REASONS)[number];
type Stream = (typeof SUPPRESSION_STREAMS)[number];
type Suppression = `${Reason} for ${Stream}`;

const SEND_KINDS = [
  'marketing',
  'marketing to a group',
  'marketing to an inactive group',
  'transactional',
] as const;
type SendKind = (typeof SEND_KINDS)[number];

type Verdict =
  | 'allowed'
  | `${'CONSENT_REQUIRED' | 'RECIPIENT_UNSUBSCRIBED' | 'RECIPIENT_SUPPRESSED'} ${string}`;

/**
 * The expected result, written without the code under test: the first rule that applies decides. Only suppressions of the
 * stream or of all streams count, and an opt-out has the lowest rank.
 */
function allowed(person: Person, kind: SendKind): Verdict {
  const marketing = kind !== 'transactional';
  const counting = person.suppressions
    .map((text) => text.split(' for '))
    .filter(([, stream]) => stream === 'all' || stream === (marketing ? 'mk' : 'tx'))
    .map(([reason]) => reason);
  const severe = counting.find((reason) => reason !== 'unsubscribe');
  const lines: [applies: boolean, verdict: Verdict][] = [
    [severe === 'hard_bounce' || severe === 'soft_bounces', 'RECIPIENT_SUPPRESSED bounced'],
    [severe === 'complaint', 'RECIPIENT_SUPPRESSED complained'],
    [severe === 'manual', 'RECIPIENT_SUPPRESSED suppressed'],
    [counting.includes('unsubscribe'), 'RECIPIENT_UNSUBSCRIBED unsubscribed'],
    [!marketing, 'allowed'],
    [person.contact === 'missing', 'CONSENT_REQUIRED not_subscribed'],
    [kind === 'marketing to an inactive group', 'CONSENT_REQUIRED not_subscribed'],
    [kind === 'marketing to a group' && person.member === 'no', 'CONSENT_REQUIRED not_subscribed'],
    [kind === 'marketing to a group' && person.member === 'inactive', 'RECIPIENT_UNSUBSCRIBED unsubscribed'],
    [person.contact === 'withdrawn', 'CONSENT_REQUIRED not_subscribed'],
  ];
  return lines.find(([applies]) => applies)?.[1] ?? 'allowed';
}

/** The expected status of the contact, which opt-outs of transactional mail do not change. */
function globalStatus({ suppressions }: Person): string {
  const reasons = suppressions.filter((text) => !text.endsWith(' tx')).map((text) => text.split(' for ')[0]);
  const deciding = reasons.find((reason) => reason !== 'unsubscribe') ?? reasons[0];
  const statuses: Record<string, string> = {
    hard_bounce: 'bounced',
    soft_bounces: 'bounced',
    complaint: 'complained',
    manual: 'suppressed',
    unsubscribe: 'unsubscribed',
  };
  return deciding === undefined ? 'active' : (statuses[deciding] ?? '');
}

const WHO: Pick<Person, 'contact' | 'member'>[] = [
  { contact: 'missing', member: 'no' },
  ...(['consenting', 'withdrawn'] as const).flatMap((contact) =>
    (['no', 'active', 'inactive'] as const).map((member) => ({ contact, member })),
  ),
];
const SINGLE = SUPPRESSION_REASONS.flatMap((reason) =>
  SUPPRESSION_STREAMS.map((stream): Suppression[] => [`${reason} for ${stream}`]),
);
/** Of two suppressions the more severe decides, else the first. */
const PAIRS: Suppression[][] = [
  ...SUPPRESSION_REASONS.filter((reason) => reason !== 'unsubscribe').flatMap((reason): Suppression[][] => [
    ['unsubscribe for mk', `${reason} for all`],
    [`${reason} for mk`, 'unsubscribe for all'],
  ]),
  ['hard_bounce for all', 'complaint for mk'],
  ['complaint for mk', 'hard_bounce for all'],
  ['complaint for tx', 'unsubscribe for mk'],
  ['unsubscribe for tx', 'manual for mk'],
];
const PEOPLE: Person[] = WHO.flatMap((who) =>
  [[], ...SINGLE, ...PAIRS].map((suppressions) => ({ ...who, suppressions })),
);
const NAMED = PEOPLE.map((person, index): [name: string, person: Person, index: number] => [
  `contact ${person.contact}, member ${person.member}, ${person.suppressions.join(' then ') || 'nothing suppressed'}`,
  person,
  index,
]);

const HTML = '<p>News</p>{{company_address_html}}{{unsubscribe_email_html}}';
/** Sends do not affect each other: the domain does not exist, and its bounces suppress only on a second day. */
const addressOf = (index: number) => `p${index}@reader.test`;

let env: InProcess;
let client: ApiClient;
let groups: Record<SendKind, string | null>;

beforeAll(async () => {
  env = await startInProcess();
  client = await env.account('Shop');
  const [group] = env.tables.domainGroups.list(client.accountId);
  for (const [use_case, name] of [
    ['mk', 'news.test'],
    ['tx', 'shop.test'],
  ] as const) {
    const row = { account_id: client.accountId, group_id: group?.group_id ?? '', use_case, name };
    const next_check_at = Date.now() + DAY;
    insertDomain(env.tables, { ...row, domain_id: `domain_1_${use_case}`, next_check_at }, Date.now());
  }
  groups = {
    marketing: null,
    'marketing to a group': await newGroup(),
    'marketing to an inactive group': await newGroup(),
    transactional: null,
  };
  await inPortions(
    NAMED.map(
      ([, person, index]) =>
        () =>
          createPerson(person, addressOf(index)),
    ),
  );
  await request('PATCH', `${GROUPS}/${groups['marketing to an inactive group']}`, { isActive: false });
});
afterAll(() => env.stop());

const GROUPS = '/web-setup/contacts/subscription-groups';

async function newGroup(): Promise<string> {
  const { data } = await client.post<{ group: { subscriptionGroupId: string } }>(GROUPS, { name: 'News' });
  return data.group.subscriptionGroupId;
}

/** Creates a person through the API, as an account does. */
async function createPerson({ contact, member, suppressions }: Person, email: string): Promise<void> {
  if (contact !== 'missing') await request('POST', '/web-setup/contacts', { email });
  if (member !== 'no') {
    for (const kind of ['marketing to a group', 'marketing to an inactive group'] as const) {
      await request('POST', `${GROUPS}/${groups[kind]}/subscriptions`, { email });
      if (member === 'inactive') {
        const path = `${GROUPS}/${groups[kind]}/subscriptions/${emailIdentifier(email)}`;
        await request('PATCH', path, { isActive: false });
      }
    }
  }
  if (contact === 'withdrawn')
    await request('PATCH', `/web-setup/contacts/${emailIdentifier(email)}`, { consentMethod: null });
  for (const text of suppressions) {
    const [reason, stream] = text.split(' for ');
    await request('POST', '/web-setup/suppressions', { email, reason, stream });
  }
}

/** Sends a request that must succeed. */
async function request(method: string, path: string, body: object): Promise<void> {
  const { status, text } = await client.call(method, path, { body });
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
}

async function inPortions(steps: (() => Promise<void>)[]): Promise<void> {
  for (let next = 0; next < steps.length; next += 25)
    await Promise.all(steps.slice(next, next + 25).map((step) => step()));
}

it('covers every combination', () => {
  expect(PEOPLE).toHaveLength(7 * (1 + 5 * 3 + 12));
  const verdicts = PEOPLE.flatMap((person) => SEND_KINDS.map((kind) => allowed(person, kind)));
  expect(new Set(verdicts).size).toBe(6);
});

it('sets the globalStatus of every contact', async () => {
  const contacts = NAMED.filter(([, { contact }]) => contact !== 'missing');
  const actual = await collect(contacts, async (_person, index) => {
    const id = emailIdentifier(addressOf(index));
    const { data } = await client.get<{ contact: { globalStatus: string } }>(`/web-setup/contacts/${id}`);
    return data.contact.globalStatus;
  });
  expect(actual).toEqual(await collect(contacts, globalStatus));
});

/** The result for each row, by its name. */
async function collect<Result>(
  rows: typeof NAMED,
  resultOf: (person: Person, index: number) => Result | Promise<Result>,
): Promise<Record<string, Result>> {
  const results: Record<string, Result> = {};
  await inPortions(
    rows.map(([name, person, index]) => async () => {
      results[name] = await resultOf(person, index);
    }),
  );
  return results;
}

describe('at acceptance', () => {
  it('refuses and accepts sends in every combination', async () => {
    const actual = await collect(NAMED, (_person, index) =>
      Promise.all(SEND_KINDS.map(async (kind) => [kind, await sendTo(index, kind)])),
    );
    expect(actual).toEqual(
      await collect(NAMED, (person) => SEND_KINDS.map((kind) => [kind, allowed(person, kind)])),
    );
  });

  async function sendTo(index: number, kind: SendKind): Promise<string> {
    const transactional = kind === 'transactional';
    const group = groups[kind];
    const body = {
      to: addressOf(index),
      from: transactional ? 'a@shop.test' : 'a@news.test',
      subject: 'News',
      html: HTML,
      ...(group === null ? {} : { subscriptionGroupId: group }),
    };
    const { status, text } = await client.call(
      'POST',
      `/${transactional ? 'transactional' : 'marketing'}/send`,
      {
        body,
      },
    );
    if (status === (transactional ? 200 : 202)) return 'allowed';
    expect(status).toBe(403);
    const refusal: { reasonCode: string; subscriptionStatus: string } = JSON.parse(text);
    return `${refusal.reasonCode} ${refusal.subscriptionStatus}`;
  }
});

describe('when it leaves the queue', () => {
  /** Ids of messages that are queued although not all of them would be accepted. */
  const queued = new Map<string, string>();
  const keyOf = (index: number, kind: SendKind) => `${index} ${kind}`;
  let recorded: Map<string, { event: string; reasonCode?: string; reason?: string }>;

  beforeAll(async () => {
    const now = Date.now();
    for (const [, , index] of NAMED) {
      for (const kind of SEND_KINDS) {
        const stream = kind === 'transactional' ? 'tx' : 'mk';
        const message = enqueue(env.tables, now, {
          account_id: client.accountId,
          domain_id: `domain_1_${stream}`,
          priority: stream === 'tx' ? 0 : 1,
          from_address: stream === 'tx' ? 'a@shop.test' : 'a@news.test',
          recipient: addressOf(index),
          subscription_group_id: groups[kind],
        });
        queued.set(keyOf(index, kind), message.message_id);
      }
    }
    const waiting = new Set(queued.values());
    // No recipient domain has a mail host, so messages that are sent fail immediately.
    recorded = await eventually(
      'every message to have left the queue',
      async () => {
        const events = await client.allEvents();
        const first = new Map<string, (typeof events)[number]>();
        for (const event of events) {
          const id = event.messageId ?? '';
          if (waiting.has(id) && !first.has(id)) first.set(id, event);
        }
        return first.size === waiting.size ? first : null;
      },
      { everyMs: 500 },
    );
  });

  it('sends and drops messages in every combination', async () => {
    const actual = await collect(NAMED, (_person, index) =>
      SEND_KINDS.map((kind) => {
        const { event, reasonCode, reason } = recorded.get(queued.get(keyOf(index, kind)) ?? '') ?? {
          event: 'none',
        };
        return [kind, event, reasonCode, reason];
      }),
    );
    expect(actual).toEqual(
      await collect(NAMED, (person) => SEND_KINDS.map((kind) => [kind, ...leaving(person, kind)])),
    );
  });

  /** Messages that are no longer allowed are dropped; for marketing mail the reason is withdrawn consent. */
  function leaving(person: Person, kind: SendKind): (string | undefined)[] {
    const verdict = allowed(person, kind);
    if (verdict === 'allowed') return ['email_sent', undefined, undefined];
    const [code, status] = verdict.split(' ');
    if (kind !== 'transactional') return ['email_suppressed', 'CONSENT_WITHDRAWN', status];
    return ['email_suppressed', code, expect.any(String)];
  }
});
