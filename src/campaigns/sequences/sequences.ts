import { findPerson } from '../../audience/people.ts';
import { customFieldsFault } from '../../audience/profile.ts';
import {
  MAX_DEFINITION_LENGTH,
  MAX_VERSIONS,
  readDefinition,
  type SequenceDefinition,
  triggerColumns,
  writeDefinition,
} from '../../audience/sequences/definition.ts';
import { type Entry, enterSequences, eventOccurrence } from '../../audience/sequences/entries.ts';
import { DAY } from '../../core/clock.ts';
import { accountLimitReached, invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import { createHtmlReader } from '../../sending/render/html-reader.ts';
import type {
  ListedPerson,
  SequencePeopleFilter,
  SequenceRow,
  SequenceStatus,
} from '../../store/campaigns/sequences.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { Context } from '../../store/context.ts';
import type { NamedPageFilter, Page } from '../../store/rows/page.ts';
import type { Tables } from '../../store/tables.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import { checkMessages, senderOf } from './mail.ts';
import { OBSTACLES, type Obstacle, type SequenceRunner } from './run.ts';

export const MAX_SEQUENCES = 100;
/** Events of contacts of one account. */
const EVENT_RATE = { burst: 1000, perSecond: 100 };
const MAX_RATED_ACCOUNTS = 10_000;
/** Events of one contact: a program that repeats itself must not send hundreds of messages to a person. */
const CONTACT_EVENT_RATE = { burst: 100, perSecond: 1 / 6 };
const MAX_RATED_CONTACTS = 20_000;
const MAX_PROPERTIES_BYTES = 8 * 1024;

export interface SequenceInput extends SequenceDefinition {
  name: string;
  status?: SequenceStatus | undefined;
}

/** Absent fields stay unchanged; `goal` null: there is none any more. */
export interface SequencePatch extends Partial<Omit<SequenceInput, 'goal'>> {
  goal?: SequenceDefinition['goal'] | null | undefined;
}

/** Who changes a sequence. */
export interface SequenceCaller {
  accountId: string;
  /** From domains that its key can use; empty: all. */
  allowFrom: readonly string[];
}

export interface ContactEventInput {
  name: string;
  properties?: Record<string, unknown> | undefined;
  /** Epoch ms. */
  occurredAt?: number | undefined;
  idempotencyKey?: string | undefined;
}

/** A sequence with the version that people begin. */
export interface SequenceDetail {
  row: SequenceRow;
  definition: SequenceDefinition;
}

/**
 * The sequences of an account. A sequence that is or was active gets a new version with each change; people in progress
 * finish the version that they began. Starts nothing, and moves nobody: `onChange`, called after the commit of each change,
 * wakes the runner, which finds new people by itself. The rates of events are in memory.
 */
export function createSequences(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  {
    onChange,
    obstacle,
    threads,
  }: {
    onChange(): void;
    obstacle: SequenceRunner['obstacle'];
    threads: TemplateThreads;
  },
) {
  const renderer = { htmlReader: createHtmlReader(), marksReader: createHtmlReader('marks'), threads };
  const eventRates = createTokenBuckets(clock, EVENT_RATE, MAX_RATED_ACCOUNTS);
  const contactEventRates = createTokenBuckets(clock, CONTACT_EVENT_RATE, MAX_RATED_CONTACTS);

  /** Refuses a sequence whose messages could not be sent. */
  async function notReady(
    { accountId, allowFrom }: SequenceCaller,
    definition: SequenceDefinition,
  ): Promise<Refusal | null> {
    const account = tables.accounts.get(accountId);
    if (account === null) throw new Error(`the account ${accountId} does not exist`);
    if (!definition.steps.some(({ send }) => send !== undefined))
      return invalid('steps', 'must send at least one message');
    return checkMessages(tables, senderOf(account, allowFrom), definition, renderer, clock.now());
  }

  function detailOf(all: Tables, row: SequenceRow): SequenceDetail {
    const stored = all.sequences.definition(row.seq, row.version);
    if (stored === null) throw new Error(`sequence ${row.sequence_id} has no version ${row.version}`);
    return { row, definition: readDefinition(stored) };
  }

  function find(all: Tables, accountId: string, sequenceId: string): SequenceDetail | Refusal {
    const row = all.sequences.get(accountId, sequenceId);
    return row === null
      ? refuse('SEQUENCE_NOT_FOUND', `There is no sequence ${sequenceId}`)
      : detailOf(all, row);
  }

  /** Changes a sequence in one unit of work. `read`: refuses if it was changed since. */
  async function change(
    accountId: string,
    sequenceId: string,
    read: SequenceRow,
    apply: (tx: Tables, row: SequenceRow, now: number) => SequenceRow | Refusal,
  ): Promise<SequenceDetail | Refusal> {
    const changed = await writer.run((tx): SequenceDetail | Refusal => {
      const found = find(tx, accountId, sequenceId);
      if (isRefusal(found)) return found;
      const { row } = found;
      if (row.updated_at !== read.updated_at)
        return refuse('INVALID_STATE', `Sequence ${sequenceId} was changed in the meantime: try again`);
      // Each change has its own time, which the comparison above needs.
      const applied = apply(tx, row, Math.max(clock.now(), row.updated_at + 1));
      if (isRefusal(applied)) return applied;
      tx.sequences.update(applied);
      return detailOf(tx, applied);
    }, accountId);
    if (!isRefusal(changed)) onChange();
    return changed;
  }

  async function activate(caller: SequenceCaller, sequenceId: string): Promise<SequenceDetail | Refusal> {
    const { accountId } = caller;
    const found = find(tables, accountId, sequenceId);
    if (isRefusal(found) || found.row.status === 'active') return found;
    return (
      (await notReady(caller, found.definition)) ??
      change(accountId, sequenceId, found.row, (_tx, row, now) => activated(row, now))
    );
  }

  async function pause({ accountId }: SequenceCaller, sequenceId: string): Promise<SequenceDetail | Refusal> {
    const found = find(tables, accountId, sequenceId);
    if (isRefusal(found)) return found;
    return change(accountId, sequenceId, found.row, (_tx, row, now) =>
      row.status === 'draft'
        ? refuse('INVALID_STATE', `Sequence ${sequenceId} is a draft: it was not activated`)
        : { ...row, status: 'paused', paused_reason: null, updated_at: now },
    );
  }

  function insert(
    accountId: string,
    { name, ...definition }: SequenceInput,
  ): Promise<SequenceDetail | Refusal> {
    return writer.run((tx): SequenceDetail | Refusal => {
      if (tx.sequences.count(accountId) >= MAX_SEQUENCES)
        return accountLimitReached('sequences', MAX_SEQUENCES);
      const now = clock.now();
      const row = {
        ...NEW_SEQUENCE,
        sequence_id: ids.make('seq'),
        account_id: accountId,
        name,
        ...triggerColumns(definition.trigger),
        created_at: now,
        updated_at: now,
      };
      const seq = tx.sequences.insert(row);
      tx.sequences.putVersion(seq, 1, writeDefinition(definition), now);
      return { row: { ...row, seq }, definition };
    }, accountId);
  }

  return {
    /** Newest first. */
    list: async (filter: NamedPageFilter): Promise<Page<SequenceDetail & { seq: number }>> => {
      const { rows, more } = await reader.table(filter.accountId, 'sequences', 'list', filter);
      return { rows: rows.map((row) => ({ ...detailOf(tables, row), seq: row.seq })), more };
    },
    get: (accountId: string, sequenceId: string): SequenceDetail | Refusal =>
      find(tables, accountId, sequenceId),
    /** With `status` `active` it is activated, or nothing is created. */
    create: async (caller: SequenceCaller, input: SequenceInput): Promise<SequenceDetail | Refusal> => {
      const unfit = definitionRefusal(input) ?? (input.status === 'paused' ? notActive() : null);
      if (unfit !== null) return unfit;
      const refusal = input.status === 'active' ? await notReady(caller, input) : null;
      if (refusal !== null) return refusal;
      const created = await insert(caller.accountId, input);
      return isRefusal(created) || input.status !== 'active'
        ? created
        : activate(caller, created.row.sequence_id);
    },
    update: async (
      caller: SequenceCaller,
      sequenceId: string,
      { name, status, ...patch }: SequencePatch,
    ): Promise<SequenceDetail | Refusal> => {
      const { accountId } = caller;
      const found = find(tables, accountId, sequenceId);
      if (isRefusal(found)) return found;
      const definition = patched(found.definition, patch);
      const unfit = definitionRefusal(definition);
      if (unfit !== null) return unfit;
      const isActive = (status ?? found.row.status) === 'active';
      const refusal = isActive ? await notReady(caller, definition) : null;
      if (refusal !== null) return refusal;
      const stored = writeDefinition(definition);
      const isSame = stored === writeDefinition(found.definition);
      const changed = await change(accountId, sequenceId, found.row, (tx, row, now) => {
        const renamed = { ...row, name: name ?? row.name, updated_at: now };
        return isSame ? renamed : withVersion(tx, renamed, definition, stored);
      });
      if (isRefusal(changed) || status === undefined || status === changed.row.status) return changed;
      if (status === 'draft')
        return refuse(
          'INVALID_STATE',
          `Sequence ${sequenceId} was activated: it cannot become a draft again`,
        );
      return status === 'active' ? activate(caller, sequenceId) : pause(caller, sequenceId);
    },
    /** Also one that is active: people in progress receive nothing more. */
    remove: async (accountId: string, sequenceId: string): Promise<SequenceDetail | Refusal> => {
      const found = find(tables, accountId, sequenceId);
      if (isRefusal(found)) return found;
      return change(accountId, sequenceId, found.row, (_tx, row, now) => ({
        ...row,
        deleted_at: now,
        updated_at: now,
      }));
    },
    /** Refused unless all messages can be sent. */
    activate,
    /** Nobody moves on, and nobody enters. */
    pause,
    /** The people of each step, and those that have left, by reason. */
    counts: ({ seq }: SequenceRow) => ({
      steps: tables.sequencePeople.counts(seq),
      ends: tables.sequencePeople.ends(seq),
    }),
    /** Newest first. */
    people: async (
      accountId: string,
      sequenceId: string,
      filter: Omit<SequencePeopleFilter, 'sequenceSeq' | 'at'> & { step?: number; version?: number },
    ): Promise<Page<WaitingPerson> | Refusal> => {
      const found = find(tables, accountId, sequenceId);
      if (isRefusal(found)) return found;
      const { step, version = found.row.version, ...others } = filter;
      const { rows, more } = await reader.table(accountId, 'sequencePeople', 'list', {
        ...others,
        sequenceSeq: found.row.seq,
        ...(step === undefined ? {} : { at: { version, step } }),
      });
      const ofAll = obstacle(found.row);
      const now = clock.now();
      return { rows: rows.map((row) => ({ ...row, waitsFor: waitsFor(row, ofAll, now) })), more };
    },
    /** Records an event of a contact: it enters the sequences that the event triggers. */
    recordEvent: async (
      accountId: string,
      identifier: string,
      { name, properties, occurredAt, idempotencyKey }: ContactEventInput,
    ): Promise<{ contact: KnownContact; at: number; entries: Entry[] } | Refusal> => {
      const now = clock.now();
      const unfit = propertiesFault(properties);
      if (unfit !== null) return unfit;
      if (occurredAt !== undefined && occurredAt > now + DAY)
        return invalid('occurredAt', 'is in the future');
      const rate = eventRates.of(accountId).take();
      if (!rate.allowed)
        return refuse(
          'RATE_LIMITED',
          `This account sends more than ${EVENT_RATE.perSecond} events a second`,
          {
            retryAfter: rate.retryAfterSeconds,
            limit: { name: 'contact-events', calls: EVENT_RATE.perSecond, seconds: 1 },
          },
        );
      const person = findPerson(tables, accountId, identifier);
      if (isRefusal(person)) return person;
      const ofContact = contactEventRates.of(String(person.seq)).take();
      if (!ofContact.allowed)
        return refuse('RATE_LIMITED', `The contact ${identifier} has more than ${CONTACT_EVENTS}`, {
          retryAfter: ofContact.retryAfterSeconds,
          limit: { name: 'events-of-a-contact', calls: 1, seconds: 1 / CONTACT_EVENT_RATE.perSecond },
          details: [{ field: 'contactIdentifier', message: `has more than ${CONTACT_EVENTS}` }],
        });
      return writer.run((tx) => {
        const contact = findPerson(tx, accountId, identifier);
        if (isRefusal(contact)) return contact;
        tx.engagement.answered(contact.seq);
        const id = ids.uuid();
        const entries = enterSequences(
          tx,
          contact,
          {
            kind: 'event',
            key: name,
            occurrence: eventOccurrence({ name, idempotencyKey, occurredAt, id }),
            properties: properties === undefined ? null : JSON.stringify(properties),
          },
          now,
        );
        return { contact, at: occurredAt ?? now, entries };
      }, accountId);
    },
  };
}

export type Sequences = ReturnType<typeof createSequences>;

const CONTACT_EVENTS = `${CONTACT_EVENT_RATE.burst} events at a time, and then one in ${1 / CONTACT_EVENT_RATE.perSecond} seconds`;

/** Why a person whose step is due does not move on; null: the person does, or its step is not due. */
type WaitingPerson = ListedPerson & { waitsFor: (typeof WAITS)[number] | null };

/** The obstacles of a sequence, and that of a person alone. */
export const WAITS = [...OBSTACLES, 'person_paused'] as const;

function waitsFor(row: ListedPerson, ofAll: Obstacle | null, now: number): WaitingPerson['waitsFor'] {
  if (row.state === 'ended') return null;
  // The runner moves the time of a person who has paused marketing mail.
  if (row.state === 'active' && row.paused_until !== null) return 'person_paused';
  return row.due_at > now ? null : ofAll;
}

const NEW_SEQUENCE = {
  status: 'draft',
  paused_reason: null,
  version: 1,
  activated_at: null,
  scan_after: null,
  missed: 0,
  deleted_at: null,
} as const;

function activated(row: SequenceRow, now: number): SequenceRow {
  const scan_after = row.trigger_kind === 'dateField' ? 0 : null;
  return { ...row, status: 'active', paused_reason: null, activated_at: now, scan_after, updated_at: now };
}

/** Stores a changed definition: in place of that of a draft, otherwise as a new version. */
function withVersion(
  tx: Tables,
  row: SequenceRow,
  definition: SequenceDefinition,
  stored: string,
): SequenceRow | Refusal {
  const columns = triggerColumns(definition.trigger);
  if (row.status === 'draft') {
    tx.sequences.putVersion(row.seq, row.version, stored, row.updated_at);
    return { ...row, ...columns };
  }
  const version = row.version + 1;
  tx.sequences.dropUnused(row.seq, version);
  if (tx.sequences.versions(row.seq).length >= MAX_VERSIONS)
    return refuse(
      'INVALID_STATE',
      `People are in ${MAX_VERSIONS} earlier versions of the sequence: change it when some of them have finished`,
    );
  tx.sequences.putVersion(row.seq, version, stored, row.updated_at);
  const isOtherTrigger =
    columns.trigger_kind !== row.trigger_kind ||
    columns.trigger_key !== row.trigger_key ||
    columns.offset_days !== row.offset_days;
  const scan_after = isOtherTrigger ? (columns.trigger_kind === 'dateField' ? 0 : null) : row.scan_after;
  return { ...row, ...columns, version, scan_after };
}

function patched(
  before: SequenceDefinition,
  patch: Omit<SequencePatch, 'name' | 'status'>,
): SequenceDefinition {
  const goal = patch.goal === undefined ? before.goal : (patch.goal ?? undefined);
  return { trigger: patch.trigger ?? before.trigger, steps: patch.steps ?? before.steps, goal };
}

function definitionRefusal(definition: SequenceDefinition): Refusal | null {
  return writeDefinition(definition).length > MAX_DEFINITION_LENGTH
    ? invalid(
        'steps',
        `must have at most ${MAX_DEFINITION_LENGTH} characters as JSON, with trigger and goal: use templates`,
      )
    : null;
}

function notActive(): Refusal {
  return invalid('status', 'must be draft or active for a new sequence');
}

function propertiesFault(properties: Record<string, unknown> | undefined): Refusal | null {
  if (properties === undefined) return null;
  const fault = customFieldsFault(properties);
  if (fault !== null)
    return invalid(fault.path === '' ? 'properties' : `properties.${fault.path}`, fault.message);
  return Buffer.byteLength(JSON.stringify(properties)) > MAX_PROPERTIES_BYTES
    ? invalid('properties', `must have at most ${MAX_PROPERTIES_BYTES} bytes of JSON`)
    : null;
}
