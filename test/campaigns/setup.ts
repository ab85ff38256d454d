import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createAudience } from '../../src/audience/service.ts';
import { createStatusFollower } from '../../src/audience/standing.ts';
import { createCampaigns } from '../../src/campaigns/campaigns.ts';
import type { CampaignRequest } from '../../src/campaigns/mail.ts';
import { type CampaignParts, type CampaignRunner, createCampaignRunner } from '../../src/campaigns/run.ts';
import { createCampaignSending } from '../../src/campaigns/send.ts';
import { DAY } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { createRecorder } from '../../src/events/record.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { CampaignRow } from '../../src/store/campaigns/campaigns.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { TRANSACTIONAL_PRIORITY } from '../../src/store/messages/queue.ts';
import { createTemplateThreads } from '../../src/templates/thread/threads.ts';
import { exampleEvent } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { contentOf, heldClock, insertDomain, startStore } from '../support/store.ts';

export const COMPLIANCE = '{{company_address_html}}{{unsubscribe_email_html}}';
export const BODY: Omit<CampaignRequest, 'subscriptionGroupId'> = {
  from: 'News <news@news.example>',
  subject: 'Hello {{firstName}}',
  html: `<p>Hello {{firstName}}</p>${COMPLIANCE}`,
};
const CALLER = { by: 'key_one', ipAddress: null, userAgent: null };

/** Creates campaigns over a real database, with a verified marketing domain, a group, and a runner that is not started. */
export async function startCampaigns(
  defaults: AccountLimitDefaults = {},
  options: Pick<CampaignParts, 'maxAhead' | 'guard' | 'marketingLeft'> = {},
) {
  const store = startStore(heldClock(), defaults);
  const { tables, writer, ids, clock } = store;
  insertDomain(
    tables,
    { account_id: 'acct_one', domain_id: 'domain_mk', name: 'news.example', use_case: 'mk' },
    clock.now(),
  );
  const log = createLog({ level: 'silent', hashAddresses: true });
  const onSuppressionChange = createStatusFollower(clock);
  const recorder = createRecorder({ clock, ids }, { onSuppressionChange });
  const audience = createAudience(
    { ...store, log },
    { recorder, mayAdd: store.limits.mayAdd, responsesKeptMs: DAY },
  );
  const createGroup = async (name: string) =>
    granted(
      await audience.groups.create('acct_one', {
        name,
        description: null,
        isActive: true,
        tags: [],
        unsubscribeTemplateId: null,
        reportAbuseTemplateId: null,
        companyAddressTemplateId: null,
        signUp: null,
        isPublic: null,
        archive: false,
      }),
    ).subscription_group_id;
  const groupId = await createGroup('News');
  let pressure: Refusal | null = null;
  let queueLimit = Number.POSITIVE_INFINITY;
  const announced: string[] = [];
  const threads = createTemplateThreads(log);
  onTestFinished(() => threads.stop());
  /** Copies that were to be rendered in Liquid. */
  let copies = 0;
  const { render } = threads;
  threads.render = (accountId, source, given, options) => {
    copies += given.length;
    return render(accountId, source, given, options);
  };
  const deps = {
    recorder,
    pressure: { refusal: () => pressure, capacity: () => queueLimit - tables.queue.count() },
    limits: store.limits,
    simulatorDomain: 'simulator.mail.test',
    publicUrl: 'https://mail.test',
    expire: { tx: 2 * DAY, mk: 4 * DAY },
    expiry: createExpiryClock(clock, clock),
    announce: ({ destination }: { destination: string }) => announced.push(destination),
    threads,
    ...options,
  };
  /** Number of rounds that runners began. */
  let rounds = 0;
  const open = tables.campaignSends.open;
  tables.campaignSends.open = () => {
    rounds++;
    return open();
  };
  const runners: CampaignRunner[] = [];
  const addRunner = () => {
    const created = createCampaignRunner({ ...store, log }, deps);
    runners.push(created);
    onTestFinished(() => created.stop());
    return created;
  };
  const runner = addRunner();
  const sending = createCampaignSending(store, { ...deps, onChange: runner.wake });
  const campaigns = createCampaigns(store, store.limits.mayAdd.campaigns);
  const account = () => {
    const row = tables.accounts.get('acct_one');
    if (row === null) throw new Error('no such account');
    return row;
  };

  const setup = {
    ...store,
    recorder,
    audience,
    announced,
    runner,
    liquidCopies: () => copies,
    /** A second runner, as after a restart of the daemon. */
    anotherRunner: addRunner,
    /** Resolves when every campaign has had the opportunity for several more steps: a campaign that waits makes none. */
    severalRounds: async () => {
      const last = rounds + 10;
      await eventually('further rounds of the runner', () => {
        for (const each of runners) each.wake();
        return rounds >= last;
      });
    },
    sending,
    campaigns,
    groupId,
    createGroup,
    onSuppressionChange,
    setPressure: (refusal: Refusal | null) => {
      pressure = refusal;
    },
    /** The capacity of the queue. */
    limitQueue: (messages: number) => {
      queueLimit = messages;
    },
    /** A member of the group with consent. */
    member: async (email: string, profile: object = {}, into = groupId) => {
      const created = granted(await audience.contacts.create('acct_one', { email, ...profile }, CALLER));
      await join(created.seq, into);
      return created;
    },
    join,
    draft: async () =>
      granted(await campaigns.create('acct_one', { name: 'Spring', description: null })).campaign_id,
    /** Creates a campaign and sends it. */
    send: async (
      changes: Partial<CampaignRequest> = {},
      options: { allowFrom?: string[]; isSimulation?: boolean; id?: string } = {},
    ) => {
      const sender = {
        account: account(),
        useCase: 'mk' as const,
        allowFrom: options.allowFrom ?? [],
        allowEssential: true,
        isSimulation: options.isSimulation ?? false,
      };
      const id = options.id ?? (await setup.draft());
      const sent = await sending.send(sender, id, { ...BODY, subscriptionGroupId: groupId, ...changes });
      return isRefusal(sent) ? sent : sent.campaign;
    },
    campaign: (id: string) => granted(campaigns.get('acct_one', id)),
    progress: (id: string) => {
      const progress = sending.progress(granted(campaigns.get('acct_one', id)));
      if (progress === null) throw new Error('the campaign was not sent');
      return progress;
    },
    /** Waits until the campaign is in a state. */
    until: (id: string, status: string) =>
      eventually(`the campaign to be ${status}`, () => {
        const row = granted(campaigns.get('acct_one', id));
        return row.status === status ? row : null;
      }),
    /** Messages of a campaign, oldest first. */
    messages: (row: Pick<CampaignRow, 'campaign_id'>) =>
      tables.messages
        .list({ accountId: 'acct_one', campaignId: row.campaign_id, limit: 10_000 })
        .rows.toReversed(),
    content: (message: MessageRow) => contentOf(tables, message),
    /** Delivers everything that is due. */
    deliverAll: () =>
      writer.run((tx) => {
        for (const row of tx.queue.list({}, 10_000)) {
          if (row.priority === TRANSACTIONAL_PRIORITY || !tx.queue.lease(row.seq, 1)) continue;
          const message = tx.messages.bySeq(row.seq);
          if (message === null) continue;
          recorder.message(tx, message, exampleEvent('email_sent'));
          recorder.message(tx, { ...message, status: 'sending' }, exampleEvent('email_delivered'));
        }
      }),
  };

  async function join(contactSeq: number, into: string): Promise<void> {
    const group = tables.subscriptionGroups.get('acct_one', into);
    if (group === null) throw new Error('no such group');
    await writer.run((tx) =>
      tx.subscriptions.insert({
        group_seq: group.seq,
        contact_seq: contactSeq,
        is_active: 1,
        source: 'api',
        consent_method: 'double_opt_in',
        consent_details: null,
        joined_at: clock.now(),
        updated_at: clock.now(),
      }),
    );
  }
  return setup;
}

export type CampaignSetup = Awaited<ReturnType<typeof startCampaigns>>;

/** Inserts members, as an import does. */
export async function addMembers(setup: CampaignSetup, count: number, fields = (_n: number): object => ({})) {
  const { tables, writer, ids, clock, groupId } = setup;
  const group = tables.subscriptionGroups.get('acct_one', groupId);
  if (group === null) throw new Error('no group');
  const now = clock.now();
  await writer.run((tx) => {
    for (let n = 0; n < count; n++) {
      const email = `user${n}@d${n % 3}.example`;
      const seq = tx.contacts.insert({
        account_id: 'acct_one',
        user_id: ids.uuid(),
        email,
        email_hash: emailIdentifier(email),
        phone: null,
        phone_hash: null,
        first_name: `User ${n}`,
        last_name: null,
        custom_fields: JSON.stringify(fields(n)),
        language: null,
        paused_until: null,
        erasure_requested_at: null,
        global_status: 'active',
        consent_n: 1,
        source: 'import',
        added_by: 'import',
        email_key: null,
        name_key: null,
        last_name_key: null,
        search_text: '',
        created_at: now,
        updated_at: now,
      });
      tx.subscriptions.insert({
        group_seq: group.seq,
        contact_seq: seq,
        is_active: 1,
        source: 'import',
        consent_method: 'imported',
        consent_details: null,
        joined_at: now,
        updated_at: now,
      });
    }
  });
}

/** The code and the fields of a refusal. */
export function refusal(value: unknown): [code: string, fields: (string | undefined)[]] {
  if (!isRefusal(value)) throw new Error('the result is not a refusal');
  return [value.code, (value.extras.details ?? []).map(({ field, name }) => name ?? field)];
}
