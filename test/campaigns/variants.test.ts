import { describe, expect, it } from 'vitest';
import type { CampaignRequest } from '../../src/campaigns/mail.ts';
import { testedVariant } from '../../src/campaigns/variants.ts';
import { HOUR } from '../../src/core/clock.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { CampaignRow } from '../../src/store/campaigns/campaigns.ts';
import { exampleEvent } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { addMembers, BODY, type CampaignSetup, refusal, startCampaigns } from './setup.ts';

/** Two subjects on half of the audience. */
const TESTED = {
  enableOpenTracking: true,
  enableClickTracking: true,
  variants: [{}, { subject: 'Good day' }],
  test: { share: 50, winner: 'opens', waitHours: 4 },
} satisfies Partial<CampaignRequest>;
const MEMBERS = 400;

const testOf = (setup: CampaignSetup, row: CampaignRow) => {
  const { test } = setup.progress(row.campaign_id);
  if (test === undefined) throw new Error('the campaign has no test');
  return test;
};
const until = (setup: CampaignSetup, row: CampaignRow, state: string) =>
  eventually(`the test to be ${state}`, () => (testOf(setup, row).state === state ? true : null));

/** Delivers what is queued until the test waits for its decision. */
async function waitForDecision(setup: CampaignSetup, row: CampaignRow): Promise<void> {
  await until(setup, row, 'waiting');
  await setup.deliverAll();
  await eventually('the time of the decision', () => testOf(setup, row).decidesAt);
}

/** The first `count` recipients with this subject open their message. */
async function open(setup: CampaignSetup, row: CampaignRow, subject: RegExp, count: number, isBot = false) {
  const messages = setup.messages(row).filter((message) => subject.test(message.subject));
  await setup.writer.run((tx) => {
    for (const message of messages.slice(0, count))
      setup.recorder.message(tx, message, exampleEvent('email_opened', { isBot, isFirst: true }));
  });
}

async function startTest(changes: Partial<CampaignRequest> = {}, members = MEMBERS) {
  const setup = await startCampaigns();
  await addMembers(setup, members);
  const row = granted(await setup.send({ ...TESTED, ...changes }));
  setup.runner.start();
  return { setup, row };
}

/** Sends the rest and returns how many messages have each subject; each member has one. */
async function finish(setup: CampaignSetup, row: CampaignRow, members = MEMBERS) {
  await eventually('the campaign to be sent', async () => {
    await setup.deliverAll();
    setup.runner.wake();
    return setup.campaign(row.campaign_id).status === 'sent' ? true : null;
  });
  const messages = setup.messages(row);
  expect([messages.length, new Set(messages.map(({ recipient }) => recipient)).size]).toEqual([
    members,
    members,
  ]);
  expect(setup.progress(row.campaign_id)).toMatchObject({ members, queued: members });
  return messages.filter(({ subject }) => subject === 'Good day').length;
}

describe('an A/B test', () => {
  it('sends variants to a share, and the winner to the others after the time', async () => {
    const { setup, row } = await startTest();
    await waitForDecision(setup, row);
    const before = setup.messages(row).length;
    const tested = testOf(setup, row);
    expect(tested.variants.map(({ name, subject }) => [name, subject])).toEqual([
      ['A', 'Hello {{firstName}}'],
      ['B', 'Good day'],
    ]);
    const [a = 0, b = 0] = tested.variants.map(({ delivered }) => delivered);
    expect(a + b).toBe(before);
    for (const part of [a, b]) expect(Math.abs(part - MEMBERS / 4)).toBeLessThan(40);
    await open(setup, row, /^Good day$/, 60);
    await open(setup, row, /^Hello/, 20);
    // Programs do not count.
    await open(setup, row, /^Hello/, 80, true);
    await setup.severalRounds();
    expect(setup.messages(row)).toHaveLength(before);
    setup.clock.advance(4 * HOUR - 1);
    await setup.severalRounds();
    expect(setup.messages(row)).toHaveLength(before);
    setup.clock.advance(1);
    await until(setup, row, 'decided');
    expect(await finish(setup, row)).toBe(MEMBERS - a);
    const { decision, variants } = testOf(setup, row);
    expect(decision).toMatchObject({
      variant: 'B',
      reason: 'better',
      counts: [
        { variant: 'A', queued: a, delivered: a, opened: 20, clicked: 0 },
        { variant: 'B', queued: b, delivered: b, opened: 60, clicked: 0 },
      ],
    });
    // The rest is not part of the test.
    expect(variants.map(({ queued }) => queued)).toEqual([a, b]);
    expect(variants[1]?.opens).toEqual({ people: 60, rate: 60 / b, difference: null });
    expect(variants[0]?.opens.difference?.high).toBeLessThan(0);
  });

  it('sends the first variant to the others without a significant difference', async () => {
    const { setup, row } = await startTest();
    await waitForDecision(setup, row);
    await open(setup, row, /^Good day$/, 21);
    await open(setup, row, /^Hello/, 20);
    const tested = testOf(setup, row).variants[1]?.delivered;
    setup.clock.advance(4 * HOUR);
    expect(await finish(setup, row)).toBe(tested);
    expect(testOf(setup, row).decision).toMatchObject({ variant: 'A', reason: 'notSignificant' });
  });

  it('is decided by clicks of people where clicks count', async () => {
    const { setup, row } = await startTest({ test: { share: 50, winner: 'clicks', waitHours: 1 } });
    await waitForDecision(setup, row);
    await open(setup, row, /^Hello/, 90);
    const clicked = setup.messages(row).filter(({ subject }) => subject === 'Good day');
    await setup.writer.run((tx) => {
      // Twice: people are counted.
      for (const message of [...clicked.slice(0, 50), ...clicked.slice(0, 50)])
        setup.recorder.message(tx, message, exampleEvent('email_clicked', { isBot: false, isFirst: true }));
    });
    expect(testOf(setup, row).variants[1]).toMatchObject({ opens: { people: 50 }, clicks: { people: 50 } });
    setup.clock.advance(HOUR);
    await finish(setup, row);
    expect(testOf(setup, row).decision).toMatchObject({ variant: 'B', reason: 'better' });
  });

  it('waits while a message of the test waits for its first attempt', async () => {
    const { setup, row } = await startTest();
    await until(setup, row, 'waiting');
    setup.clock.advance(10 * HOUR);
    await setup.severalRounds();
    expect(testOf(setup, row)).toMatchObject({ decidesAt: null, decision: null });
    await setup.deliverAll();
    await eventually('the time of the decision', () => testOf(setup, row).decidesAt);
    await setup.severalRounds();
    expect(testOf(setup, row).decision).toBeNull();
  });

  it('gives everybody one variant with a share of 100', async () => {
    const { setup, row } = await startTest({ test: { share: 100, winner: 'none' } });
    await finish(setup, row);
    const { state, decision, variants } = testOf(setup, row);
    expect([state, decision]).toEqual(['split', null]);
    expect(variants.reduce((sum, { queued }) => sum + queued, 0)).toBe(MEMBERS);
    for (const { queued } of variants) expect(Math.abs(queued - MEMBERS / 2)).toBeLessThan(60);
  });

  it('decides nothing while the campaign is paused, and ends when it is cancelled', async () => {
    const { setup, row } = await startTest();
    const { sending, clock } = setup;
    await waitForDecision(setup, row);
    const before = setup.messages(row).length;
    granted(await sending.pause('acct_one', row.campaign_id));
    clock.advance(5 * HOUR);
    await setup.severalRounds();
    expect(testOf(setup, row)).toMatchObject({ state: 'waiting', decision: null });
    granted(await sending.resume('acct_one', row.campaign_id, { by: 'key_one' }));
    await until(setup, row, 'decided');
    granted(await sending.cancel('acct_one', row.campaign_id));
    await setup.severalRounds();
    expect(setup.messages(row).length).toBeLessThanOrEqual(MEMBERS);
    expect(before).toBeLessThan(MEMBERS);
    expect(setup.campaign(row.campaign_id).status).toBe('cancelled');
  });

  it('sends no second message to people who leave, join or are erased while it waits', async () => {
    const { setup, row } = await startTest();
    await waitForDecision(setup, row);
    const received = new Set(setup.messages(row).map(({ recipient }) => recipient));
    await setup.member('late@example.net');
    const others = Array.from({ length: MEMBERS }, (_, n) => `user${n}@d${n % 3}.example`);
    const [gone = ''] = others.filter((email) => !received.has(email));
    const [tested = ''] = others.filter((email) => received.has(email));
    for (const email of [gone, tested]) {
      const hash = emailIdentifier(email);
      expect(setup.tables.contacts.seqOf('acct_one', hash)).not.toBeNull();
      granted(await setup.audience.erasure.erase('acct_one', hash));
    }
    setup.clock.advance(4 * HOUR);
    await eventually('the campaign to be sent', async () => {
      await setup.deliverAll();
      setup.runner.wake();
      return setup.campaign(row.campaign_id).status === 'sent' ? true : null;
    });
    const recipients = setup.messages(row).map(({ recipient }) => recipient);
    expect(new Set(recipients).size).toBe(recipients.length);
    expect(recipients).not.toContain('late@example.net');
    expect(recipients).not.toContain(gone);
  });
});

describe('the winner that a person chooses', () => {
  it('goes to everybody who has no message, from then on', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, MEMBERS);
    const row = granted(await setup.send(TESTED));
    setup.limitQueue(60);
    setup.runner.start();
    await eventually('the first messages', () => setup.progress(row.campaign_id).queued === 60);
    const choose = (variant: string) =>
      setup.sending.choose('acct_one', row.campaign_id, { variant, by: 'key_one' });
    expect(refusal(await choose('C'))).toEqual(['VALIDATION_ERROR', ['variant']]);
    granted(await choose('B'));
    expect(refusal(await choose('A'))[0]).toBe('INVALID_STATE');
    const [a = 0] = testOf(setup, row).variants.map(({ queued }) => queued);
    const tested = setup.messages(row).length;
    setup.limitQueue(Number.POSITIVE_INFINITY);
    expect(await finish(setup, row)).toBe(MEMBERS - a);
    const { decision, variants } = testOf(setup, row);
    expect(decision).toMatchObject({ variant: 'B', reason: 'chosen', by: 'key_one' });
    expect(variants.reduce((sum, { queued }) => sum + queued, 0)).toBe(tested);
  });

  it('cannot be chosen without a test that has a rest', async () => {
    const setup = await startCampaigns();
    for (const changes of [{}, { ...TESTED, test: { share: 100, winner: 'none' as const } }]) {
      const row = granted(await setup.send(changes));
      const chosen = await setup.sending.choose('acct_one', row.campaign_id, { variant: 'A', by: 'key_one' });
      expect(refusal(chosen)[0]).toBe('INVALID_STATE');
    }
  });
});

describe('variants', () => {
  it('can be of any syntax, language and audience', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 200);
    const second = await setup.createGroup('Offers');
    // In both groups: the first one counts.
    for (const { seq } of [1, 2, 3].map((n) => ({ seq: n }))) await setup.join(seq, second);
    for (let n = 0; n < 40; n++) await setup.member(`other${n}@example.org`, {}, second);
    const row = granted(
      await setup.send({
        ...TESTED,
        subscriptionGroupId: undefined,
        subscriptionGroupIds: [setup.groupId, second],
        variants: [
          { name: 'Simple' },
          {
            name: 'Liquid',
            subject: '{% if firstName %}Dear {{ firstName }}{% else %}Dear reader{% endif %}',
            html: `<p>{{ firstName | upcase }}</p>${BODY.html?.slice(BODY.html.indexOf('</p>') + 4)}`,
            syntax: 'liquid',
          },
          { name: 'Plain', html: `<p>Short</p>{{company_address_html}}{{unsubscribe_email_html}}` },
        ],
        test: { share: 60, winner: 'opens', waitHours: 2 },
      }),
    );
    setup.runner.start();
    await waitForDecision(setup, row);
    await open(setup, row, /^Dear/, 100);
    setup.clock.advance(2 * HOUR);
    await eventually('the campaign to be sent', async () => {
      await setup.deliverAll();
      setup.runner.wake();
      return setup.campaign(row.campaign_id).status === 'sent' ? true : null;
    });
    const messages = setup.messages(row);
    expect([messages.length, new Set(messages.map(({ recipient }) => recipient)).size]).toEqual([240, 240]);
    const { variants, decision } = testOf(setup, row);
    expect(decision?.variant).toBe('Liquid');
    const dear = messages.filter(({ subject }) => subject.startsWith('Dear '));
    expect(dear.length).toBe(240 - (variants[0]?.queued ?? 0) - (variants[2]?.queued ?? 0));
    expect(dear.some(({ subject }) => subject === 'Dear reader')).toBe(true);
    const [first] = dear;
    if (first !== undefined) expect(setup.content(first).html).toContain('USER');
    const content = granted(setup.sending.content('acct_one', row.campaign_id));
    expect(content.variants.map(({ name, html }) => [name, html.includes('Short')])).toEqual([
      ['Simple', false],
      ['Liquid', false],
      ['Plain', true],
    ]);
  });

  it.each<[changes: Partial<CampaignRequest>, fields: string[]]>([
    [{ variants: undefined }, ['variants']],
    [{ test: undefined }, ['test']],
    [{ variants: [{}] }, ['variants']],
    [{ variants: [{}, {}] }, ['variants[1]']],
    [{ variants: [{ name: 'B' }, { subject: 'Good day' }] }, ['variants[1].name']],
    [{ variants: [{}, { text: 'Good day' }] }, ['variants[1].text']],
    [{ variants: [{}, { syntax: 'liquid' }] }, ['variants[1].syntax']],
    [{ variants: [{}, { html: BODY.html, templateId: 'template_1' }] }, ['variants[1].html']],
    [{ variants: [{}, { subject: 'a\nb' }] }, ['variants[1].subject']],
    [{ subject: undefined, variants: [{ subject: 'A' }, { name: 'B' }] }, ['subject']],
    [{ subject: undefined }, ['subject']],
    [{ test: { share: 100, winner: 'opens', waitHours: 1 } }, ['test.winner']],
    [{ test: { share: 50, winner: 'none' } }, ['test.winner']],
    [{ test: { share: 100, winner: 'none', waitHours: 1 } }, ['test.waitHours']],
    [{ test: { share: 50, winner: 'opens' } }, ['test.waitHours']],
    [{ enableOpenTracking: false }, ['test.winner']],
    [{ enableOpenTracking: undefined }, ['test.winner']],
    [{ enableClickTracking: false, test: { share: 50, winner: 'clicks', waitHours: 1 } }, ['test.winner']],
  ])('are refused as %j', async (changes, fields) => {
    const setup = await startCampaigns();
    const id = await setup.draft();
    expect(refusal(await setup.send({ ...TESTED, ...changes }, { id }))).toEqual([
      'VALIDATION_ERROR',
      fields,
    ]);
    expect(setup.campaign(id).status).toBe('draft');
  });

  it('can have a winner by opens that the domain tracks', async () => {
    const setup = await startCampaigns();
    const [domain] = setup.tables.domains.named('acct_one', 'news.example');
    if (domain === undefined) throw new Error('no domain');
    setup.tables.domains.update({ ...domain, track_opens: 1 });
    const id = await setup.draft();
    granted(await setup.send({ ...TESTED, enableOpenTracking: undefined }, { id }));
  });

  it.each<[content: object, code: string]>([
    [{ html: '<p>No address</p>' }, 'COMPLIANCE_TEMPLATE_MISSING'],
    [{ subject: '{{firstName | upcase}}' }, 'TEMPLATE_SYNTAX'],
    [{ subject: '{{nobodyKnows}}' }, 'TEMPLATE_VARIABLE_MISSING'],
    [{ templateId: 'template_1' }, 'TEMPLATE_NOT_FOUND'],
  ])('are all checked: %j', async (content, code) => {
    const setup = await startCampaigns();
    const refused = await setup.send({ ...TESTED, variants: [{}, { name: 'Second', ...content }] });
    expect(refused).toMatchObject({ code, message: expect.stringContaining('Variant Second: ') });
  });
});

describe('the variant of a contact', () => {
  it('depends on campaign and contact only, and is spread evenly', () => {
    const test = { share: 30, variants: ['A', 'B', 'C'].map((name) => ({ name, subject: name })) };
    const of = (campaign: string) =>
      Array.from({ length: 60_000 }, (_, n) => testedVariant(test, campaign, n + 1));
    const one = of('campaign_1769860800000_9z1x3c5v7b2n');
    expect(of('campaign_1769860800000_9z1x3c5v7b2n')).toEqual(one);
    for (const variant of [0, 1, 2])
      expect(Math.abs(one.filter((found) => found === variant).length - 6000)).toBeLessThan(300);
    // Independent of that in another campaign: 3 of 10 who are in one are in the other, whatever the variant.
    const other = of('campaign_1769860800000_9z1x3c5v7b2m');
    const both = one.filter((found, index) => found !== null && other[index] !== null).length;
    expect(Math.abs(both - 5400)).toBeLessThan(300);
  });
});
