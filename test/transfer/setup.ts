import { createHash, hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { signingSecretSealContext } from '../../src/accounts/keys.ts';
import { searchKeys } from '../../src/audience/search-key.ts';
import { DAY } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal, mac } from '../../src/core/seal.ts';
import { sealKey } from '../../src/domains/keys.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { createTokens } from '../../src/mail/tokens.ts';
import type { Writer } from '../../src/store/database/writer.ts';
import { type ExportOptions, exportAccount } from '../../src/transfer/export.ts';
import { type DeriveKey, fileSeal, macKey } from '../../src/transfer/format.ts';
import { cancelImport, type ImportOptions, importAccount } from '../../src/transfer/import.ts';
import { createTokenAccounts } from '../../src/transfer/token-accounts.ts';
import { createWebhookSecrets, webhookSealContext } from '../../src/webhooks/secrets.ts';
import { DESIGN } from '../mail/blocks/designs.ts';
import { exampleEvent } from '../support/events.ts';
import { png } from '../support/images.ts';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { enqueue, startStore } from '../support/store.ts';

export const PASSPHRASE = 'correct horse battery staple';
export const ACCOUNT = 'acct_one';
export const WEBHOOK_HEADERS = { Authorization: 'Bearer of-the-shop' };

/** In place of scrypt, which takes half a second for each file that is written or read. */
const quickKey: DeriveKey = (passphrase, { salt }) =>
  Promise.resolve(createHash('sha256').update(`${salt} ${passphrase}`).digest());

export interface InstallationOptions {
  /** Derives keys as the program does. */
  withScrypt?: boolean;
}

/** An installation: a database with its master key, and the functions of this module. */
export function startInstallation(key: number, { withScrypt = false }: InstallationOptions = {}) {
  const store = startStore();
  const { tables, writer, clock, ids, dir } = store;
  const seal = createSeal(Buffer.alloc(32, key), systemRandom);
  const derived = withScrypt ? {} : { deriveKey: quickKey };
  const deps = { tables, writer, clock, ids, random: systemRandom, seal, ...derived };
  const importWith =
    (through: Writer) =>
    (file: string, options: Partial<ImportOptions> = {}) =>
      importAccount(
        { ...deps, writer: through },
        {
          file,
          passphrase: PASSPHRASE,
          dryRun: false,
          allowPrivateNetworks: false,
          portionRecords: 1,
          ...options,
        },
      );
  return {
    ...store,
    seal,
    tokens: createTokens(seal, createTokenAccounts({ tables, seal })),
    export: (name: string, options: Partial<ExportOptions> = {}) =>
      exportAccount(deps, {
        accountId: ACCOUNT,
        dataDir: dir,
        hostname: 'mx1.example.net',
        passphrase: PASSPHRASE,
        output: join(dir, name),
        part: 'whole',
        withoutQueue: false,
        settleMs: 0,
        waitMs: 0,
        ...options,
      }),
    import: importWith(writer),
    /** The import with another function that runs units of work. */
    withWriter: (run: Writer['run']) => ({ import: importWith({ ...writer, run }) }),
    cancel: (accountId = ACCOUNT) => cancelImport(deps, accountId),
  };
}

export type Installation = ReturnType<typeof startInstallation>;

/** An installation without accounts. */
export async function startEmpty(key = 2, options: InstallationOptions = {}): Promise<Installation> {
  const installation = startInstallation(key, options);
  await removeAccount(installation);
  return installation;
}

async function removeAccount({ writer }: Installation): Promise<void> {
  for (let left = 1; left > 0; )
    left = await writer.run((tx) => tx.importedRecords.removeSome(tx, ACCOUNT, 1000));
}

/** An installation whose account has rows in every table that is exported. Returns a message that was sent. */
export async function startFull(options: InstallationOptions = {}) {
  const installation = startInstallation(1, options);
  const { tables, clock, ids, seal, recorder, writer } = installation;
  const now = clock.now();
  const times = { created_at: now, updated_at: now };
  tables.apiKeys.insert({
    key_id: 'key_one',
    account_id: ACCOUNT,
    name: 'Setup',
    hash: createHash('sha256').update('secret').digest(),
    scopes: '["setup"]',
    allow_ips: '["192.0.2.0/24"]',
    allow_from: '[]',
    allow_essential: 1,
    strict_compliance: 0,
    simulates: 0,
    signing_secret: seal.seal(Buffer.from('secret'), signingSecretSealContext('key_one')),
    created_at: now,
    revoked_at: null,
  });
  tables.apiKeys.insert({
    key_id: 'key_operator',
    account_id: ACCOUNT,
    name: 'Operator',
    hash: createHash('sha256').update('operator').digest(),
    scopes: '["operator"]',
    allow_ips: '[]',
    allow_from: '[]',
    allow_essential: 1,
    strict_compliance: 0,
    simulates: 0,
    signing_secret: null,
    created_at: now,
    revoked_at: null,
  });
  tables.accountLimits.put({
    account_id: ACCOUNT,
    domains: 5,
    webhooks: null,
    templates: -1,
    contacts: null,
    messages_per_hour: 100,
    messages_per_day: null,
    concurrent_requests: null,
    stored_bytes: 1_000_000,
    campaigns: null,
    subscription_groups: null,
    ramp_skipped: null,
    suppressions: -1,
  });
  tables.dkimKeys.insert(
    sealKey(seal, RSA_KEY, 'domain_one', { selector: 'pr1', lane: 'primary', state: 'active' }, now),
  );
  const template = { account_id: ACCOUNT, name: 'Hello', ...times };
  tables.templates.insert({
    ...template,
    template_id: ids.make('template'),
    type: 'marketing',
    subject: 'Hello',
    html: '<p>Hello</p>',
    text: null,
    variables: '["name"]',
    design: JSON.stringify(DESIGN),
    syntax: 'liquid',
    mjml: '<mjml><mj-body></mj-body></mjml>',
  });
  tables.partials.insert({
    account_id: ACCOUNT,
    partial_id: ids.make('partial'),
    name: 'header',
    html: '<p>Hello</p>',
    ...times,
  });
  tables.complianceTemplates.insert({
    ...template,
    template_id: 'ctemplate_one',
    type: 'unsubscribe',
    domain: null,
    is_default: 1,
    html_content: '<p>{{unsubscribe_url}}</p>',
  });
  const group = tables.subscriptionGroups.insert({
    subscription_group_id: 'sgroup_1700000000000_abcdefghijkl',
    account_id: ACCOUNT,
    name: 'News',
    description: null,
    is_active: 1,
    tags: '["a"]',
    unsubscribe_template_id: 'ctemplate_one',
    report_abuse_template_id: null,
    company_address_template_id: null,
    sign_up: '{"from":"news@example.com","subject":null,"intro":"Hello"}',
    is_public: 1,
    archive_key: 'A'.repeat(43),
    ...times,
  });
  for (const name of ['ada', 'bob', 'zoe']) {
    const person = { email: `${name}@example.net`, first_name: name, last_name: null, phone: null };
    const seq = tables.contacts.insert({
      account_id: ACCOUNT,
      user_id: `user-${name}`,
      ...person,
      email_hash: emailIdentifier(person.email),
      phone_hash: null,
      custom_fields: '{"city":"Zürich"}',
      language: 'de-CH',
      paused_until: now + 1,
      erasure_requested_at: null,
      global_status: 'active',
      consent_n: null,
      source: 'api',
      added_by: 'key_one',
      ...searchKeys(person),
      ...times,
    });
    const entry = {
      evidence: JSON.stringify({ formSentAt: 1 }),
      contact_seq: seq,
      subscription_group_id: null,
      method: 'double_opt_in',
      details: 'form',
      ip_address: '192.0.2.1',
      user_agent: 'A browser',
      said_at: now - 1,
      recorded_at: now,
      recorded_by: 'key_one',
    } as const;
    tables.consents.begin({ ...entry, action: 'given' });
    const n = tables.consents.add({ ...entry, action: 'given', details: null });
    tables.contacts.setConsent(seq, n, now);
    tables.subscriptions.insert({
      group_seq: group,
      contact_seq: seq,
      is_active: name === 'bob' ? 0 : 1,
      source: 'api',
      consent_method: 'double_opt_in',
      consent_details: null,
      joined_at: now,
      updated_at: now,
    });
  }
  tables.groupOptOuts.add({
    group_seq: group,
    recipient_hash: emailIdentifier('bob@example.net'),
    method: 'page',
    created_at: now,
  });
  const secrets = createWebhookSecrets({ seal, random: systemRandom });
  const webhook = tables.webhooks.insert({
    webhook_id: 'webhook_one',
    account_id: ACCOUNT,
    name: 'Shop',
    description: null,
    url: 'https://shop.example/hooks',
    events: '["*"]',
    format: 'postrider',
    filter: null,
    headers: secrets.sealHeaders('webhook_one', WEBHOOK_HEADERS),
    is_active: 1,
    off_reason: null,
    failing_since: null,
    ...times,
  });
  tables.webhooks.addSecret(webhook, seal.seal(Buffer.alloc(32, 9), webhookSealContext('webhook_one')));
  tables.inboundRoutes.insert({
    route_id: 'route_1700000000000_abcdefghijkl',
    account_id: ACCOUNT,
    domain_id: 'domain_one',
    name: 'Support',
    local: 'support',
    host: 'in.example.com',
    action: 'webhook',
    webhook_id: 'webhook_one',
    spam_policy: 'reject',
    is_active: 1,
    created_at: times.created_at,
    updated_at: times.updated_at,
  });
  const campaign = tables.campaigns.insert({
    campaign_id: 'campaign_1700000000000_abcdefghijkl',
    account_id: ACCOUNT,
    name: 'January',
    description: null,
    prepared: JSON.stringify({
      variants: [{ name: 'A' }, { subject: 'B' }],
      test: { share: 100, winner: 'none' },
    }),
    status: 'sent',
    ...times,
  });
  tables.campaignSends.insert(
    {
      campaign_seq: campaign,
      account_id: ACCOUNT,
      job_id: ids.make('job'),
      subscription_group_id: 'sgroup_1700000000000_abcdefghijkl',
      scheduled_at: null,
      per_hour: null,
      members: 2,
      last_seq: 3,
      at_seq: 3,
      queued: 2,
      without_email: 0,
      not_eligible: 0,
      not_renderable: 0,
      next_at: now,
      open: 0,
      audience: null,
      test: JSON.stringify({
        share: 20,
        winner: 'opens',
        waitHours: 4,
        variants: ['A', 'B'].map((name) => ({ name, subject: name })),
      }),
      decide_at: now,
      decision: JSON.stringify({
        variant: 1,
        reason: 'chosen',
        at: now,
        by: 'key_one',
        counts: [{ queued: 2, delivered: 2, opened: 1, clicked: 0 }],
      }),
      in_rest: 1,
      paused_reason: null,
      paused_figures: null,
      seen_counts: null,
      simulated: 0,
      started_at: now,
      finished_at: now,
      created_at: now,
    },
    '{"subject":"Hello"}',
  );
  tables.campaignVariants.add(campaign, 1);
  tables.campaignVariants.addQueued(2, campaign, 1);
  const counted = 'campaign_1700000000000_abcdefghijkl';
  tables.campaignCounts.add(counted, now - (now % 3_600_000), 'delivered', 2);
  tables.campaignCounts.addClick(counted, 'https://shop.example/');
  tables.campaignCounts.addOfProvider(counted, 'Google', 'machineOpened');
  tables.campaignCounts.endUnit(true);
  tables.campaignCounts.write();
  tables.segments.insert({
    segment_id: 'segment_1700000000000_abcdefghijkl',
    account_id: ACCOUNT,
    name: 'Customers',
    filter: JSON.stringify({ field: 'customFields.plan', op: 'exists' }),
    ...times,
  });
  const image = png();
  const content = tables.media.insertContent({
    account_id: ACCOUNT,
    hash: hash('sha256', image, 'buffer'),
    state: 'stored',
    type: 'image/png',
    width: 3,
    height: 2,
    frames: 1,
    size: image.length,
  });
  tables.media.insertPart(content, 0, image.subarray(0, 40));
  tables.media.insertPart(content, 1, image.subarray(40));
  for (const n of [1, 2])
    tables.media.insert({
      media_id: `media_170000000000${n}_abcdefghijkl`,
      account_id: ACCOUNT,
      content_seq: content,
      link: `${n}`.repeat(43),
      name: 'logo.png',
      alt: 'Logo',
      ...times,
    });
  const sequence = tables.sequences.insert({
    sequence_id: 'seq_1700000000000_abcdefghijkl',
    account_id: ACCOUNT,
    name: 'Welcome',
    status: 'active',
    paused_reason: null,
    version: 2,
    trigger_kind: 'event',
    trigger_key: 'bought',
    offset_days: 0,
    activated_at: now,
    scan_after: null,
    missed: 0,
    deleted_at: null,
    ...times,
  });
  for (const version of [1, 2])
    tables.sequences.putVersion(
      sequence,
      version,
      JSON.stringify({
        trigger: { event: 'bought' },
        steps: [{ wait: '2d' }, { when: { field: 'customFields.plan', op: 'exists' }, otherwise: 'end' }],
      }),
      now,
    );
  const buyer = tables.contacts.byIdentifier(ACCOUNT, emailIdentifier('ada@example.net'));
  if (buyer === null) throw new Error('no such contact');
  tables.sequencePeople.insert({
    sequence_seq: sequence,
    contact_seq: buyer.seq,
    occurrence: 'event:one',
    version: 1,
    state: 'active',
    step: 1,
    due_at: now,
    properties: '{"total":"49.90"}',
    entered_at: now,
  });
  tables.suppressions.add({
    account_id: ACCOUNT,
    recipient_hash: emailIdentifier('gone@example.net'),
    stream: 'all',
    reason: 'hard_bounce',
    email: 'gone@example.net',
    message_seq: null,
    created_at: now,
  });
  tables.spamRates.put({
    account_id: ACCOUNT,
    provider: 'Google',
    about: 'example.com',
    day: now - (now % DAY),
    rate: 0.001,
    recorded_at: now,
  });
  tables.suppressions.addStrike(ACCOUNT, emailIdentifier('ada@example.net'), 'soft', now);
  tables.idempotency.insert(
    {
      account_id: ACCOUNT,
      endpoint: 'send',
      key: 'order-1',
      fingerprint: Buffer.alloc(32, 1),
      status: 200,
      body: '{"success":true}',
      expires_at: now + 3_600_000,
    },
    now,
  );
  tables.messageCounts.add(ACCOUNT, 3, now);
  const message = await writer.run((tx) => {
    const sent = enqueue(tx, now, {
      message_id: ids.make('msg'),
      recipient: 'new@example.net',
      campaign_id: counted,
      subscription_group_id: 'sgroup_1700000000000_abcdefghijkl',
      priority: 1,
    });
    for (const kind of ['email_sent', 'email_delivered'] as const)
      recorder.message(tx, tx.messages.bySeq(sent.seq) ?? sent, exampleEvent(kind));
    return sent;
  });
  return { ...installation, message };
}

/** The lines of a file as objects. */
export function linesOf(file: string): Record<string, unknown>[] {
  return gunzipSync(readFileSync(file))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Writes a file with these lines and a valid end, as someone who knows the passphrase could. */
export async function forge(file: string, lines: readonly unknown[]): Promise<string> {
  const [header, ...rest] = lines;
  const records = rest.filter((line) => typeof line !== 'object' || line === null || !('end' in line));
  const text = [header, ...records].map((line) => `${JSON.stringify(line)}\n`).join('');
  const { kdf } = header as { kdf: Parameters<typeof fileSeal>[1] }; // as `linesOf` read it
  const seal = await fileSeal(PASSPHRASE, kdf, { random: systemRandom, deriveKey: quickKey });
  const sha256 = createHash('sha256').update(text).digest();
  const end = {
    end: true,
    records: records.length,
    sha256: sha256.toString('hex'),
    mac: mac(macKey(seal), sha256).toString('hex'),
  };
  writeFileSync(file, gzipSync(`${text}${JSON.stringify(end)}\n`));
  return file;
}

/** The result of an operation; throws when it is a refusal. */
export function accepted<T>(result: T): Exclude<T, { code: string }> {
  if (isRefusal(result)) throw new Error(result.message);
  return result as Exclude<T, { code: string }>; // not a refusal
}
