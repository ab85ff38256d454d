import * as z from 'zod';
import type { SubscriptionGroups } from '../audience/groups.ts';
import {
  type ImportCounts,
  type Importer,
  MAX_REJECTED,
  NO_COUNTS,
  type RejectedRow,
} from '../audience/import/import.ts';
import type { ImportRecord } from '../audience/import/records.ts';
import {
  type ImportMembership,
  isReadable,
  ndjsonRowReader,
  type RowReader,
} from '../audience/import/rows.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Domains } from '../domains/service.ts';
import type { Tables } from '../store/tables.ts';
import { addSuppressions, type SuppressionEntry } from '../suppression/import.ts';
import type { SuppressionList } from '../suppression/list.ts';
import type { Partials } from '../templates/partials.ts';
import type { Templates } from '../templates/templates.ts';
import { newFields, type WebhookInput, webhookHeaders } from '../webhooks/input.ts';
import type { WebhookDetail, WebhookFields } from '../webhooks/resource.ts';
import type { Webhooks } from '../webhooks/service.ts';
import {
  type DomainItem,
  type ExportItem,
  type ListItem,
  type PersonItem,
  PROVIDERS,
  type ProviderName,
  type TemplateItem,
  type WebhookItem,
} from './exports.ts';
import { type ExportFile, MAX_LISTS, peopleOf, suppressionsOf } from './read.ts';
import { convertTemplate, type MovedTemplate, partialName, type TemplateFault } from './templates.ts';

/*
 * Moves what the exports of another provider have into an account, with the functions of the API. What the account has
 * already is left as it is, so that a move can be repeated, also after an interruption. Suppressions come first, then the
 * groups and contacts, so that nobody is a recipient in between who must not be one.
 */

export interface MoveDeps {
  tables: Tables;
  suppressions: Pick<SuppressionList, 'add'>;
  domains: Pick<Domains, 'register' | 'provisionSecondary'>;
  groups: Pick<SubscriptionGroups, 'create' | 'list'>;
  importer: Importer;
  templates: Pick<Templates, 'create' | 'get'>;
  partials: Pick<Partials, 'create'>;
  webhooks: Pick<Webhooks, 'create' | 'list'>;
  /** Refuses a webhook that exceeds the limit of the account, in a dry run. */
  mayAddWebhook(): Promise<Refusal | null>;
  allowPrivateNetworks(): boolean;
  /** Refuses what the API refuses in the body that creates a template. */
  parseTemplate(fields: Readonly<Record<string, unknown>>): Refusal | null;
}

export interface MoveOptions {
  provider: ProviderName;
  accountId: string;
  /** Of new domains. */
  useCaseIds: readonly string[];
  /** The writer of `deps` keeps nothing. */
  dryRun: boolean;
  by: string;
  signal: AbortSignal;
  /** Bytes of a file that were read since the last call. */
  onBytes(step: string, count: number): void;
}

/** `exists`: the account had it, and it is unchanged. */
export type MoveStatus = 'created' | 'exists' | 'rejected';

interface Moved {
  status: MoveStatus;
  /** Why it is rejected, or what differs. */
  notes: string[];
}

export interface MoveResult {
  suppressions: Counted | null;
  domains: (Moved & { domain: string; useCaseId: string; domainId: string | null })[];
  groups: (Moved & { name: string; subscriptionGroupId: string | null })[];
  contacts: (ContactCounts & { rejectedRows: MoveRejection[] }) | null;
  templates: (Moved & {
    name: string;
    title: string;
    file: string;
    line: number;
    /** A layout becomes a partial. */
    resource: 'template' | 'partial';
    id: string | null;
    syntax: 'simple' | 'liquid' | null;
    faults: TemplateFault[];
  })[];
  webhooks: (Moved & {
    url: string;
    events: string[];
    webhookId: string | null;
    secret: string | null;
    /** What verifies calls in the format of SendGrid. */
    verificationKey: string | null;
  })[];
}

export interface MoveRejection {
  file: string;
  line: number;
  reason: string;
}

export interface Counted {
  rows: number;
  created: number;
  unchanged: number;
  rejected: number;
  rejectedRows: MoveRejection[];
}

interface ContactCounts extends ImportCounts {
  /** New suppressions of people who must not get mail. */
  suppressed: number;
  /** Memberships that were not confirmed, and are not moved. */
  unconfirmed: number;
}

/** A refusal, such as of a limit of suppressions, ends a move; what was moved before remains. */
export async function moveExports(
  deps: MoveDeps,
  files: readonly ExportFile[],
  options: MoveOptions,
): Promise<MoveResult | Refusal> {
  const items = files.flatMap((file) =>
    file.items.map(({ line, item }) => ({ file: file.file, line, item })),
  );
  const of = <Kind extends ExportItem['kind']>(kind: Kind) =>
    items.filter(
      (one): one is typeof one & { item: Extract<ExportItem, { kind: Kind }> } => one.item.kind === kind,
    );
  const suppressions = await moveSuppressions(deps, files, options);
  if (isRefusal(suppressions)) return suppressions;
  const domains = await moveDomains(
    deps,
    of('domain').map(({ item }) => item),
    options,
  );
  if (isRefusal(domains)) return domains;
  const lists = of('list').map(({ item }) => item);
  const groups = await moveGroups(deps, lists, files, options);
  const contacts = await moveContacts(deps, files, { ...options, groups: groups.byName, lists });
  if (isRefusal(contacts)) return contacts;
  const templates = await moveTemplates(deps, of('template'), options);
  const endpoints = webhooksOfTopics(items.map(({ item }) => item));
  const webhooks = await moveWebhooks(
    deps,
    [...of('webhook').map(({ item }) => item), ...endpoints],
    options,
  );
  return { suppressions, domains, groups: groups.moved, contacts, templates, webhooks };
}

/** Entries that are read in this step. */
function reading({ onBytes, signal }: MoveOptions, step: string) {
  return { signal, onBytes: (count: number) => onBytes(step, count) };
}

async function moveSuppressions(
  { suppressions }: MoveDeps,
  files: readonly ExportFile[],
  options: MoveOptions,
): Promise<Counted | null | Refusal> {
  let total: Counted | null = null;
  for (const file of files.filter(({ kind }) => kind === 'suppressions')) {
    const entries = suppressionsOf(file, options.provider, reading(options, 'suppress'));
    const { service } = PROVIDERS[options.provider];
    const added = await addSuppressions(suppressions, options.accountId, entries, {
      service,
      by: options.by,
    });
    if (isRefusal(added)) return added;
    total ??= { rows: 0, created: 0, unchanged: 0, rejected: 0, rejectedRows: [] };
    for (const name of ['rows', 'created', 'unchanged', 'rejected'] as const) total[name] += added[name];
    total.rejectedRows.push(...rejectionsOf(file, added.rejectedRows, total.rejectedRows.length));
  }
  return total;
}

function rejectionsOf({ file }: ExportFile, rows: readonly RejectedRow[], known: number): MoveRejection[] {
  return rows.slice(0, MAX_REJECTED - known).map(({ line, reason }) => ({ file, line, reason }));
}

async function moveDomains(
  { domains }: MoveDeps,
  items: readonly DomainItem[],
  { accountId, useCaseIds, dryRun }: MoveOptions,
): Promise<MoveResult['domains'] | Refusal> {
  const moved: MoveResult['domains'] = [];
  const names = new Map(items.map((item) => [item.name.toLowerCase(), item]));
  for (const { name, fault } of names.values())
    for (const useCaseId of useCaseIds) {
      const registered = fault ?? (await domains.register(accountId, { domain: name, useCaseId }));
      if (typeof registered === 'string' || isRefusal(registered)) {
        const reason = typeof registered === 'string' ? registered : registered.message;
        moved.push({ domain: name, useCaseId, domainId: null, status: 'rejected', notes: [reason] });
        continue;
      }
      const { domain, created } = registered;
      if (created && !dryRun) await domains.provisionSecondary(domain.domain_id);
      moved.push({
        domain: domain.name,
        useCaseId,
        domainId: created && dryRun ? null : domain.domain_id,
        status: created ? 'created' : 'exists',
        notes: [],
      });
    }
  return moved;
}

/** A group for each list, by its name. Lists that only subscribers name are groups, too. */
async function moveGroups(
  { groups }: MoveDeps,
  lists: readonly ListItem[],
  files: readonly ExportFile[],
  options: MoveOptions,
): Promise<{ moved: MoveResult['groups']; byName: ReadonlyMap<string, string | null> }> {
  const wanted = new Map<string, Pick<ListItem, 'description' | 'tags'>>();
  for (const list of lists) if (!wanted.has(list.name)) wanted.set(list.name, list);
  for (const name of files.flatMap((file) => [...file.lists]))
    if (!wanted.has(name) && wanted.size < MAX_LISTS) wanted.set(name, { description: null, tags: [] });
  const byName = new Map<string, string | null>();
  const moved: MoveResult['groups'] = [];
  if (wanted.size === 0) return { moved, byName };
  const known = await groupsByName(groups, options.accountId);
  for (const [name, { description, tags }] of wanted) {
    const existing = known.get(name);
    const input = GROUP.safeParse({ name, description, tags });
    const created =
      existing ??
      (input.success ? await groups.create(options.accountId, { ...NEW_GROUP, ...input.data }) : null);
    if (created === null || (typeof created !== 'string' && isRefusal(created))) {
      const reason =
        created === null ? 'the name, description or tags are too long or empty' : created.message;
      moved.push({ name, subscriptionGroupId: null, status: 'rejected', notes: [reason] });
      continue;
    }
    const id = typeof created === 'string' ? created : created.subscription_group_id;
    const isNew = existing === undefined;
    const subscriptionGroupId = isNew && options.dryRun ? null : id;
    byName.set(name, subscriptionGroupId);
    moved.push({ name, subscriptionGroupId, status: isNew ? 'created' : 'exists', notes: [] });
  }
  return { moved, byName };
}

const GROUPS_AT_A_TIME = 100;
const GROUP = z.object({
  name: z.string().trim().min(1).max(200),
  description: z.string().max(2000).nullable(),
  tags: z.array(z.string().min(1).max(50)).max(20),
});
const NEW_GROUP = {
  isActive: true,
  unsubscribeTemplateId: null,
  reportAbuseTemplateId: null,
  companyAddressTemplateId: null,
  signUp: null,
  isPublic: null,
  archive: false,
};

/** The oldest group of each name. */
async function groupsByName(groups: MoveDeps['groups'], accountId: string): Promise<Map<string, string>> {
  const byName = new Map<string, string>();
  let beforeSeq: number | null = null;
  for (;;) {
    const { rows, more }: Awaited<ReturnType<MoveDeps['groups']['list']>> = await groups.list({
      accountId,
      beforeSeq,
      limit: GROUPS_AT_A_TIME,
    });
    for (const row of rows) byName.set(row.name, row.subscription_group_id);
    beforeSeq = rows.at(-1)?.seq ?? null;
    if (!more || beforeSeq === null) return byName;
  }
}

async function moveContacts(
  { suppressions, importer }: MoveDeps,
  files: readonly ExportFile[],
  options: MoveOptions & { groups: ReadonlyMap<string, string | null>; lists: readonly ListItem[] },
): Promise<MoveResult['contacts'] | Refusal> {
  const withContacts = files.filter(({ kind }) => kind === 'contacts');
  if (withContacts.length === 0) return null;
  const single = new Map(options.lists.map(({ name, isSingle }) => [name, isSingle]));
  const counted = { unconfirmed: 0 };
  const reader = personReader(options.groups, single, counted);
  const rejectedRows: MoveRejection[] = [];
  let counts = NO_COUNTS;
  let suppressed = 0;
  for (const file of withContacts) {
    const people = peopleOf(file, options.provider, reading(options, 'suppress'));
    const added = await addSuppressions(suppressions, options.accountId, suppressedPeople(people), {
      service: null,
      by: options.by,
    });
    if (isRefusal(added)) return added;
    suppressed += added.created;
    const imported = await importer.run({
      accountId: options.accountId,
      groupId: null,
      actor: { by: 'import', ipAddress: null, userAgent: null },
      reader,
      counts,
      records: recordsOfPeople(peopleOf(file, options.provider, reading(options, 'import'))),
      dryRun: options.dryRun,
      signal: options.signal,
    });
    if (isRefusal(imported)) return imported;
    options.signal.throwIfAborted();
    counts = imported.counts;
    rejectedRows.push(...rejectionsOf(file, imported.rejected, rejectedRows.length));
  }
  return { ...counts, suppressed, unconfirmed: counted.unconfirmed, rejectedRows };
}

type People = ReturnType<typeof peopleOf>;

/** Those who must not get mail; entries that cannot be read are reported by the import. */
async function* suppressedPeople(people: People): AsyncGenerator<SuppressionEntry[]> {
  for await (const some of people)
    yield some.flatMap(({ line, person }): SuppressionEntry[] => {
      if (typeof person === 'string' || person.suppressed === null) return [];
      const { email, suppressed: reason } = person;
      return [{ line, fields: new Map(Object.entries({ email, reason })) }];
    });
}

/** People as records of an import: the text is that of a `PersonItem`. */
async function* recordsOfPeople(people: People): AsyncGenerator<ImportRecord[]> {
  for await (const some of people)
    yield some.map(({ line, person }) => {
      const end = { byte: 0, line };
      return typeof person === 'string'
        ? { line, text: '', fault: person, end }
        : { line, text: JSON.stringify(person), fault: null, end };
    });
}

/** Reads the records of `recordsOfPeople`. The rules for profiles are those of an NDJSON import. */
function personReader(
  groups: ReadonlyMap<string, string | null>,
  single: ReadonlyMap<string, boolean>,
  counted: { unconfirmed: number },
): RowReader {
  const profiles = ndjsonRowReader({ requireEmail: true });
  return {
    ignored: profiles.ignored,
    ignoredTruncated: profiles.ignoredTruncated,
    read: (record) => {
      if (record.fault !== null) return { line: record.line, reason: record.fault };
      // Sound: recordsOfPeople has written it.
      const person = JSON.parse(record.text) as PersonItem;
      const row = profiles.read({ ...record, text: JSON.stringify(person.profile) });
      if (!isReadable(row)) return row;
      const memberships = new Map<string, ImportMembership>();
      for (const { list, isActive, isConfirmed, isSingle, details } of person.groups) {
        const groupId = groups.get(list);
        if (groupId === undefined) continue;
        if (isActive && !isConfirmed && (isSingle ?? single.get(list)) !== true) counted.unconfirmed++;
        // Of lists with the same name, the one that the person has left counts.
        else if (!isActive || !memberships.has(list)) memberships.set(list, { groupId, isActive, details });
      }
      return { ...row, memberships: [...memberships.values()] };
    },
  };
}

interface TemplateOfFile {
  file: string;
  line: number;
  item: TemplateItem;
}

async function moveTemplates(
  deps: MoveDeps,
  found: readonly TemplateOfFile[],
  { accountId, provider, dryRun }: MoveOptions,
): Promise<MoveResult['templates']> {
  // Layouts of Postmark are inserted into their templates.
  const isInserted = ({ item }: TemplateOfFile) => item.isLayout === true && provider === 'postmark';
  const layouts = new Map(found.filter(isInserted).map(({ item }) => [item.name, item]));
  const moved: MoveResult['templates'] = [];
  const names = new Set<string>();
  for (const { file, line, item } of found.filter((one) => !isInserted(one))) {
    const resource = item.isLayout === true ? ('partial' as const) : ('template' as const);
    const name = resource === 'partial' ? partialName(item.title) : item.name;
    const about = { name, title: item.title, file, line, resource };
    const rejected = (notes: string[], faults: TemplateFault[] = []) =>
      void moved.push({ ...about, status: 'rejected', id: null, syntax: null, notes, faults });
    if (names.has(`${resource} ${name}`)) {
      rejected(['the files have another one of this name']);
      continue;
    }
    names.add(`${resource} ${name}`);
    const converted = convertTemplate(item, layouts);
    if (typeof converted === 'string') rejected([converted]);
    else if (Array.isArray(converted)) rejected([], converted);
    else {
      const stored =
        resource === 'partial'
          ? await storePartial(deps, accountId, name, converted.html ?? '')
          : await storeTemplate(deps, accountId, { ...item, name }, converted);
      if (isRefusal(stored)) rejected([stored.message]);
      else {
        const { status, id, note } = stored;
        const notes = [...converted.notes, ...(note === null ? [] : [note])];
        const isKept = status === 'exists' || !dryRun;
        moved.push({ ...about, status, id: isKept ? id : null, syntax: converted.syntax, notes, faults: [] });
      }
    }
  }
  return moved;
}

interface Stored {
  status: 'created' | 'exists';
  id: string;
  note: string | null;
}

const DIFFERS = 'the account has one of this name with other content, which is unchanged';

async function storeTemplate(
  { tables, templates, parseTemplate }: MoveDeps,
  accountId: string,
  { name, type }: TemplateItem,
  { syntax, subject, html, text }: MovedTemplate,
): Promise<Stored | Refusal> {
  const [known] = tables.templates.idsByName(accountId, name);
  if (known !== undefined) {
    const row = templates.get(accountId, known.template_id);
    if (isRefusal(row)) return row;
    const isSame =
      row.syntax === syntax && row.subject === subject && row.html === (html ?? '') && row.text === text;
    return { status: 'exists', id: known.template_id, note: isSame ? null : DIFFERS };
  }
  const fault = parseTemplate({ name, type, syntax, subject, html, text });
  if (fault !== null) return fault;
  const created = await templates.create(accountId, {
    name,
    type,
    subject,
    html: html ?? '',
    text,
    design: null,
    syntax,
    variables: [],
  });
  return isRefusal(created) ? created : { status: 'created', id: created.template_id, note: null };
}

async function storePartial(
  { tables, partials }: MoveDeps,
  accountId: string,
  name: string,
  html: string,
): Promise<Stored | Refusal> {
  const known = tables.partials.byName(accountId, name);
  if (known !== undefined && known !== null)
    return { status: 'exists', id: known.partial_id, note: known.html === html ? null : DIFFERS };
  const created = await partials.create(accountId, { name, html });
  return isRefusal(created) ? created : { status: 'created', id: created.partial_id, note: null };
}

/** The endpoints of topics, with the events that the topics get. */
function webhooksOfTopics(items: readonly ExportItem[]): WebhookItem[] {
  const topics = items.filter((item) => item.kind === 'topic');
  return items.flatMap((item): WebhookItem[] => {
    if (item.kind !== 'endpoint') return [];
    const ofTopic = topics.filter(({ topic }) => topic === item.topic);
    return [
      {
        kind: 'webhook',
        url: item.url,
        events: ofTopic.flatMap(({ events }) => events),
        unmapped: ofTopic.flatMap(({ unmapped }) => unmapped),
        stream: null,
      },
    ];
  });
}

/** Creates webhooks that are disabled: their endpoints expect the form and the signature of another provider. */
async function moveWebhooks(
  deps: MoveDeps,
  items: readonly WebhookItem[],
  { accountId, provider, dryRun }: MoveOptions,
): Promise<MoveResult['webhooks']> {
  const merged = new Map<string, WebhookItem>();
  for (const item of items) {
    const key = `${item.stream ?? ''} ${item.url}`;
    const before = merged.get(key);
    const events = [...new Set([...(before?.events ?? []), ...item.events])];
    const unmapped = [...new Set([...(before?.unmapped ?? []), ...item.unmapped])];
    merged.set(key, { ...item, events, unmapped });
  }
  const known = new Map(
    deps.webhooks
      .list(accountId, { includeInactive: true })
      .map(({ url, filter, webhookId }) => [`${filter?.streams?.join() ?? ''} ${url}`, webhookId]),
  );
  const moved: MoveResult['webhooks'] = [];
  for (const [key, { url, events, unmapped, stream, headers = {} }] of merged) {
    const notes = unmapped.length === 0 ? [] : [`without an equivalent: ${unmapped.join(', ')}`];
    const existing = known.get(key);
    const about = {
      url,
      events: [...events],
      webhookId: existing ?? null,
      secret: null,
      verificationKey: null,
    };
    if (existing !== undefined) {
      moved.push({ ...about, status: 'exists', notes });
      continue;
    }
    if (events.length === 0) {
      moved.push({ ...about, status: 'rejected', notes: ['has no event that we have', ...notes] });
      continue;
    }
    const filter = stream === null ? null : { streams: [stream] };
    // The exports of listmonk have no webhooks.
    const format = provider === 'listmonk' ? 'postrider' : provider;
    const input = { url, format, events, filter, headers, isActive: false } as const;
    const created = dryRun ? await checkWebhook(deps, input) : await deps.webhooks.create(accountId, input);
    if (isRefusal(created)) {
      moved.push({ ...about, status: 'rejected', notes: [created.message] });
      continue;
    }
    const { events: sent } = created;
    const detail: Partial<WebhookDetail> = 'webhookId' in created ? created : {};
    const unsent = events.filter((event) => !sent.includes(event));
    moved.push({
      ...about,
      status: 'created',
      events: sent,
      webhookId: detail.webhookId ?? null,
      secret: detail.secret ?? null,
      verificationKey: detail.verificationKey ?? null,
      notes: unsent.length === 0 ? notes : [...notes, `without a name in this format: ${unsent.join(', ')}`],
    });
  }
  return moved;
}

/** The fields that a webhook would have, or why it would not be created. */
async function checkWebhook(deps: MoveDeps, input: WebhookInput): Promise<WebhookFields | Refusal> {
  const fields = newFields(input, deps.allowPrivateNetworks());
  if (isRefusal(fields)) return fields;
  const headers = webhookHeaders(input.headers ?? null);
  return isRefusal(headers) ? headers : ((await deps.mayAddWebhook()) ?? fields);
}
