import { createPrivateKey } from 'node:crypto';
import { keyHash, signingSecretSealContext } from '../accounts/keys.ts';
import { recordOf } from '../core/record-of.ts';
import { isRefusal } from '../core/refusal.ts';
import { publicKeyOf } from '../domains/keys.ts';
import { registrableDomain } from '../domains/names.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import { accountTag } from '../mail/tokens.ts';
import { dkimSealContext } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { createUniqueValues, type UniqueValues } from '../store/transfer/unique-values.ts';
import { webhookHeaders, webhookUrl } from '../webhooks/input.ts';
import { headerSealContext, mapValues, readHeaders, webhookSealContext } from '../webhooks/secrets.ts';
import { type AccountFile, type FileDigest, FileFault } from './file.ts';
import type { FileSeal } from './format.ts';
import type { Records, TypedRecord } from './records.ts';

/** The digest of a valid file, and its conflicts with this installation. */
export interface FileCheckResult extends FileDigest {
  /** The ids of rows that others refer to, by type. */
  ids: KnownIds;
  /** Objects that already exist in this installation, at most `MAX_CONFLICTS`; empty: the file can be imported. */
  conflicts: string[];
}

export interface CheckOptions {
  /** `webhooks.allowPrivateNetworks`. */
  allowPrivateNetworks: boolean;
  /** Rows of this account do not conflict: an import is in progress, or replaces a copy. */
  mayExist: boolean;
  onProgress?(done: number, total: number): void;
  signal?: AbortSignal;
}

export const MAX_CONFLICTS = 20;
/** Ids of small resources in memory. */
const MAX_IDS = 1_000_000;

/**
 * Reads the whole file before anything is imported, and checks references, values that must be unique, secrets, and
 * conflicts with this installation. Memory does not depend on the number of records, except for the ids of small
 * resources. Throws FileFault when the file is damaged or invalid.
 */
export async function checkFile(
  file: AccountFile,
  tables: Tables,
  { allowPrivateNetworks, mayExist, onProgress, signal }: CheckOptions,
): Promise<FileCheckResult> {
  const { accountId } = file.header;
  const unique = createUniqueValues();
  try {
    const checker = createChecker({
      accountId,
      seal: file.seal,
      unique,
      allowPrivateNetworks,
      isStored: (hash) =>
        file.header.part === 'difference' && tables.importedRecords.hasContent(accountId, hash),
    });
    const conflicts = accountConflicts(tables, accountId, mayExist);
    const reading = file.records(onProgress);
    for (;;) {
      const { done, value } = await reading.next();
      if (done === true) {
        checker.finish();
        return { ...value, conflicts, ids: checker.ids };
      }
      signal?.throwIfAborted();
      for (const typed of value) {
        if (typed.type === 'changed') continue;
        checker.check(typed);
        if (conflicts.length >= MAX_CONFLICTS) continue;
        const conflict = conflictOf(tables, accountId, typed);
        if (conflict !== null) conflicts.push(conflict);
      }
    }
  } finally {
    unique.close();
  }
}

function accountConflicts(tables: Tables, accountId: string, mayExist: boolean): string[] {
  if (!mayExist && tables.accounts.get(accountId) !== null) return [`account ${accountId} already exists`];
  const tag = accountTag(accountId);
  const other = tables.accounts
    .list()
    .find(({ account_id: id }) => id !== accountId && accountTag(id).equals(tag));
  // Their tokens could not be distinguished.
  return other === undefined ? [] : [`account ${other.account_id} has the same tag in links`];
}

/** Types whose ids are kept: rows of others refer to them, or the database has more about them than the file. */
export const REFERRED_TYPES = [
  'api_key',
  'domain_group',
  'domain',
  'template',
  'subscription_group',
  'webhook',
  'campaign',
  'sequence',
  'media',
] as const;
type KnownIds = Readonly<Record<(typeof REFERRED_TYPES)[number], ReadonlySet<string>>>;

/** Null when nothing in the database prevents the import of this record. */
function conflictOf(tables: Tables, accountId: string, typed: TypedRecord): string | null {
  const { type, record } = typed;
  const column = tables.importedRecords.conflict(type, record, accountId);
  if (type === 'domain') {
    const other = tables.domains.ofName(record.name, 2).find(({ account_id: id }) => id !== accountId);
    if (other !== undefined) return `domain ${record.name} is registered by account ${other.account_id}`;
  }
  if (type === 'campaign') {
    const job = record.sends.find(({ job_id: id }) => tables.importedRecords.hasJob(id, accountId));
    if (job !== undefined) return `job ${job.job_id} already exists`;
  }
  if (type === 'moved_message') {
    const { message_id: id } = record;
    const known = tables.messages.byId(id) ?? tables.movedMessages.byId(id);
    return known === null || known.account_id === accountId ? null : `message ${id} already exists`;
  }
  if (column === null) return null;
  return `${type.replaceAll('_', ' ')} ${nameOf(typed)} already exists (${column})`;
}

function nameOf({ record }: TypedRecord): string {
  const name = 'name' in record ? record.name : '';
  const id = Object.entries(record).find(([column]) => column.endsWith('_id'))?.[1];
  return typeof id === 'string' ? id : JSON.stringify(name);
}

function createChecker({
  accountId,
  seal,
  unique,
  allowPrivateNetworks,
  isStored,
}: {
  accountId: string;
  seal: FileSeal;
  unique: UniqueValues;
  allowPrivateNetworks: boolean;
  /** Whether this installation has an image with this hash of the account. */
  isStored(hash: string): boolean;
}) {
  const ids = recordOf(REFERRED_TYPES, () => new Set<string>());
  const complianceTemplates = new Set<string>();
  const mediaContents = new Set<string>();
  /** By id. */
  const domainNames = new Map<string, string>();
  let accounts = 0;
  let defaultGroups = 0;

  const fail = (text: string): never => {
    throw new FileFault(`The file of account ${accountId} is invalid: ${text}`);
  };
  const once = (what: string, ...values: readonly (string | number)[]): void => {
    if (!unique.add(JSON.stringify([what, ...values]))) fail(`${what} ${values.join(' ')} occurs twice`);
  };
  const addId = (set: Set<string>, what: string, id: string): void => {
    once(what, id);
    if (set.size >= MAX_IDS) fail(`it has more than ${MAX_IDS} records of type ${what}`);
    set.add(id);
  };
  const requireKnown = (set: ReadonlySet<string>, what: string, id: string | null): void => {
    if (id !== null && !set.has(id)) fail(`${what} ${id} is not in the file`);
  };

  function domain(record: Records['domain']): void {
    addId(ids.domain, 'domain', record.domain_id);
    once('secondary domain', record.alt_domain_id);
    domainNames.set(record.domain_id, record.name);
    once('registration', record.name, record.use_case, record.region);
    requireKnown(ids.domain_group, 'domain group', record.group_id);
    if (registrableDomain(record.name) !== record.name) fail(`${record.name} cannot be registered`);
    for (const key of record.dkim_keys) {
      once('DKIM selector', record.domain_id, key.selector);
      const secret = secretOf(key.private_key, dkimSealContext(record.domain_id, key.selector));
      if (publicPartOf(secret) !== key.public_key)
        fail(`the DKIM key ${key.selector} of ${record.name} does not match its public key`);
    }
    if (!record.dkim_keys.some(({ lane, state }) => lane === 'primary' && state === 'active'))
      fail(`${record.name} has no active DKIM key`);
  }

  function secretOf(sealed: string, context: string): Buffer {
    try {
      return seal.open(Buffer.from(sealed, 'base64'), context);
    } catch {
      // The tag of AES-GCM does not match.
      return fail(`the secret ${context} cannot be opened`);
    }
  }

  function apiKey({ key_id: id, hash, signing_secret: sealed }: Records['api_key']): void {
    addId(ids.api_key, 'API key', id);
    once('hash of an API key', hash);
    if (sealed === null) return;
    const secret = secretOf(sealed, signingSecretSealContext(id)).toString();
    if (keyHash(secret).toString('base64') !== hash)
      fail(`the secret of API key ${id} does not match its hash`);
  }

  function contact(record: Records['contact']): void {
    const { email, phone } = record;
    const name = record.user_id;
    once('contact', name);
    if (email === null && phone === null)
      fail(`contact ${name} has neither an email address nor a phone number`);
    if (record.email_hash !== (email === null ? null : emailIdentifier(email)))
      fail(`the hash of contact ${name} does not match its email address`);
    if (record.phone_hash !== (phone === null ? null : phoneIdentifier(phone)))
      fail(`the hash of contact ${name} does not match its phone number`);
    for (const hash of [record.email_hash, record.phone_hash]) if (hash !== null) once('identifier', hash);
    for (const { group_seq: group } of record.subscriptions)
      requireKnown(ids.subscription_group, 'subscription group', group);
    for (const { campaign_seq: campaign } of record.campaigns)
      requireKnown(ids.campaign, 'campaign', campaign);
    for (const { sequence_seq: sequence, occurrence } of record.sequences) {
      requireKnown(ids.sequence, 'sequence', sequence);
      once('contact in a sequence', name, sequence, occurrence);
    }
    const inProgress = record.sequences.filter(({ state }) => state === 'active');
    if (new Set(inProgress.map(({ sequence_seq }) => sequence_seq)).size !== inProgress.length)
      fail(`contact ${name} is in one sequence twice`);
  }

  function campaign(record: Records['campaign']): void {
    addId(ids.campaign, 'campaign', record.campaign_id);
    for (const { job_id: job } of record.sends) once('job', job);
    for (const { hour } of record.counts) once('hour of campaign', record.campaign_id, hour);
    for (const { url } of record.links) once('link of campaign', record.campaign_id, url);
    for (const { variant } of record.variants)
      once('variant of campaign', record.campaign_id, String(variant));
    for (const { provider } of record.providers) once('provider of campaign', record.campaign_id, provider);
  }

  function webhook(record: Records['webhook']): void {
    addId(ids.webhook, 'webhook', record.webhook_id);
    const url = webhookUrl(record.url, allowPrivateNetworks);
    if (isRefusal(url)) fail(`webhook ${record.webhook_id}: ${url.message}`);
    for (const { secret } of record.secrets)
      if (secretOf(secret, webhookSealContext(record.webhook_id)).length !== 32)
        fail(`a secret of webhook ${record.webhook_id} does not have 32 bytes`);
    const headers = webhookHeaders(
      mapValues(readHeaders(record.headers), (sealed, name) =>
        secretOf(sealed, headerSealContext(record.webhook_id, name)).toString(),
      ),
    );
    if (isRefusal(headers)) fail(`webhook ${record.webhook_id}: ${headers.message}`);
  }

  function check(typed: TypedRecord): void {
    switch (typed.type) {
      case 'account':
        accounts++;
        return;
      case 'api_key':
        return apiKey(typed.record);
      case 'domain_group':
        defaultGroups += typed.record.is_default;
        return addId(ids.domain_group, 'domain group', typed.record.group_id);
      case 'domain':
        return domain(typed.record);
      case 'partial':
        once('name of a partial', typed.record.name);
        return once('partial', typed.record.partial_id);
      case 'template':
        return addId(ids.template, 'template', typed.record.template_id);
      case 'compliance_template': {
        const { template_id: id, is_default: isDefault, domain: name, type } = typed.record;
        if (isDefault === 1) once('default compliance template', type, name ?? '');
        return addId(complianceTemplates, 'compliance template', id);
      }
      case 'subscription_group': {
        const group = typed.record;
        for (const id of [
          group.unsubscribe_template_id,
          group.report_abuse_template_id,
          group.company_address_template_id,
        ])
          requireKnown(complianceTemplates, 'compliance template', id);
        if (group.archive_key !== null) once('archive', group.archive_key);
        return addId(ids.subscription_group, 'subscription group', group.subscription_group_id);
      }
      case 'webhook':
        return webhook(typed.record);
      case 'inbound_route': {
        const { route_id: id, domain_id: domainId, webhook_id: webhookId, host, local } = typed.record;
        const name = domainNames.get(domainId);
        if (name === undefined || (host !== name && !host.endsWith(`.${name}`)))
          fail(`the inbound route ${id} is not at a domain of the account`);
        if (webhookId !== null) requireKnown(ids.webhook, 'webhook', webhookId);
        once('match of an inbound route', host, local);
        return once('inbound route', id);
      }
      case 'campaign':
        return campaign(typed.record);
      case 'segment':
        once('name of a segment', typed.record.name);
        return once('segment', typed.record.segment_id);
      case 'sequence': {
        const { sequence_id: id, versions } = typed.record;
        for (const { version } of versions) once('version of sequence', id, version);
        return addId(ids.sequence, 'sequence', id);
      }
      case 'media_content':
        return addId(
          mediaContents,
          'content of an image',
          Buffer.from(typed.record.hash, 'base64').toString('hex'),
        );
      case 'media':
        if (!isStored(typed.record.content_seq))
          requireKnown(mediaContents, 'content of an image', typed.record.content_seq);
        once('link of an image', typed.record.link);
        return addId(ids.media, 'image', typed.record.media_id);
      case 'contact':
        return contact(typed.record);
      case 'group_opt_out':
        requireKnown(ids.subscription_group, 'subscription group', typed.record.group_seq);
        return once('opt-out', typed.record.group_seq, typed.record.recipient_hash);
      case 'suppression': {
        const { recipient_hash: hash, stream, reason, email } = typed.record;
        if (email !== null && emailIdentifier(email) !== hash)
          fail(`the hash of suppression ${hash} does not match its email address`);
        return once('suppression', hash, stream, reason);
      }
      case 'strike':
        return once('strike', typed.record.recipient_hash, typed.record.kind, typed.record.at);
      case 'idempotency':
        return once('idempotency key', typed.record.endpoint, typed.record.key);
      case 'message_count':
        return once('count of messages', typed.record.slot);
      case 'spam_rate': {
        const { provider, about, day } = typed.record;
        return once('spam rate', provider, about, day);
      }
      case 'moved_message':
        return once('message', typed.record.message_id);
      default:
        return typed satisfies never;
    }
  }

  return {
    check,
    ids,
    /** Called after the last record. */
    finish: (): void => {
      if (accounts !== 1) fail(`it has ${accounts} accounts`);
      if (defaultGroups !== 1) fail(`it has ${defaultGroups} default domain groups`);
    },
  };
}

/** SubjectPublicKeyInfo of a PKCS #8 key, base64; null when it is not a key. */
function publicPartOf(secret: Buffer): string | null {
  try {
    return publicKeyOf(createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' }));
  } catch {
    // Not a key.
    return null;
  }
}
