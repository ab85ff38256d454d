import { createHash } from 'node:crypto';
import { DAY, parseMoment } from '../../core/clock.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import type { SequenceRow, TriggerKind } from '../../store/campaigns/sequences.ts';
import type { Tables } from '../../store/tables.ts';
import type { CustomFields } from '../profile.ts';

/*
 * How contacts enter sequences: in the unit of work of what triggers them, so that none is lost. An occurrence of a
 * trigger begins a sequence once, and a contact is in a sequence once at a time. Drafts and sequences that the account
 * has paused record nobody.
 */

/** People in progress in one sequence. Further ones do not enter and are counted. */
export const MAX_IN_PROGRESS = 1_000_000;
/** A date that passed longer ago, when it is set or when the sequence is activated, begins nothing. */
export const MAX_LATE_MS = DAY;

/** What became of an occurrence in one sequence. */
export interface Entry {
  sequenceId: string;
  result: 'entered' | 'in_progress' | 'repeated' | 'full';
}

interface Occurrence {
  kind: TriggerKind;
  key: string;
  /** Identifies the occurrence among those of the contact and the trigger. */
  occurrence: string;
  /** JSON. */
  properties?: string | null;
}

/** Lets a contact enter the sequences that an occurrence triggers, in its unit of work. `now`: epoch ms. */
export function enterSequences(
  tables: Tables,
  contact: { account_id: string; seq: number },
  { kind, key, occurrence, properties = null }: Occurrence,
  now: number,
): Entry[] {
  return tables.sequences
    .triggeredBy(contact.account_id, kind)
    .filter(({ trigger_key }) => trigger_key === key)
    .map((sequence) => ({
      sequenceId: sequence.sequence_id,
      result: enter(tables, sequence, contact.seq, { occurrence, properties, now }),
    }));
}

function enter(
  tables: Tables,
  sequence: SequenceRow,
  contactSeq: number,
  { occurrence, properties, now }: { occurrence: string; properties: string | null; now: number },
): Entry['result'] {
  const { sequencePeople } = tables;
  // A retried request gets the result of the first one.
  const known = sequencePeople.find(sequence.seq, contactSeq, occurrence);
  if (known !== null) return 'repeated';
  if (sequencePeople.isInProgress(sequence.seq, contactSeq)) return 'in_progress';
  if (isFull(tables, sequence)) return 'full';
  sequencePeople.insert({
    sequence_seq: sequence.seq,
    contact_seq: contactSeq,
    occurrence,
    version: sequence.version,
    state: 'active',
    step: 0,
    due_at: now,
    properties,
    entered_at: now,
  });
  return 'entered';
}

/** Whether nobody else may enter; counts who would have. */
export function isFull(tables: Tables, sequence: SequenceRow): boolean {
  if (tables.sequencePeople.inProgress(sequence.seq) < MAX_IN_PROGRESS) return false;
  const current = tables.sequences.bySeq(sequence.seq);
  if (current !== null) tables.sequences.update({ ...current, missed: current.missed + 1 });
  return true;
}

/** Called in the unit of work in which a membership becomes active. */
export function groupJoined(
  tables: Tables,
  groupId: string,
  contact: { account_id: string; seq: number },
  now: number,
): void {
  enterSequences(tables, contact, { kind: 'joined', key: groupId, occurrence: `joined:${groupId}` }, now);
}

/** Called in the unit of work in which a person confirms a sign-up. */
export function signUpConfirmed(
  tables: Tables,
  groupId: string,
  contact: { account_id: string; seq: number },
  now: number,
): void {
  enterSequences(
    tables,
    contact,
    { kind: 'confirmed', key: groupId, occurrence: `confirmed:${groupId}` },
    now,
  );
}

/** Called in the unit of work that writes the custom fields of a contact. `before` null: it is new. JSON. */
export function fieldsChanged(
  tables: Tables,
  contact: { account_id: string; seq: number },
  before: string | null,
  after: string,
  now: number,
): void {
  const { sequences } = tables;
  if (before === after) return;
  const set = sequences.triggeredBy(contact.account_id, 'fieldSet');
  const dated = sequences.triggeredBy(contact.account_id, 'dateField');
  if (set.length === 0 && dated.length === 0) return;
  // Sound: only the audience module writes the column.
  const old = JSON.parse(before ?? '{}') as CustomFields;
  const fields = JSON.parse(after) as CustomFields;
  const valueOf = (of: CustomFields, name: string): string | null =>
    Object.hasOwn(of, name) && of[name] !== null ? JSON.stringify(of[name]) : null;
  for (const key of new Set(set.map(({ trigger_key }) => trigger_key))) {
    const value = valueOf(fields, key);
    if (value === null || value === valueOf(old, key)) continue;
    enterSequences(tables, contact, { kind: 'fieldSet', key, occurrence: `set:${digest(value)}` }, now);
  }
  for (const sequence of dated) {
    const { trigger_key: key } = sequence;
    if (valueOf(fields, key) !== valueOf(old, key))
      scheduleDate(tables, sequence, contact.seq, fields[key], now);
  }
}

/**
 * Records when the date of a contact is reached, in a unit of work. The runner lets the contact enter then, if the field
 * still has the value.
 */
export function scheduleDate(
  tables: Tables,
  sequence: SequenceRow,
  contactSeq: number,
  value: unknown,
  now: number,
): void {
  const due = dueOf(value, sequence.offset_days);
  if (due === null || due.at < Math.max(now, sequence.activated_at ?? 0) - MAX_LATE_MS) return;
  tables.sequencePeople.insert({
    sequence_seq: sequence.seq,
    contact_seq: contactSeq,
    occurrence: due.occurrence,
    version: sequence.version,
    state: 'scheduled',
    step: 0,
    due_at: due.at,
    properties: null,
    entered_at: now,
  });
}

/** When the date in a custom field begins a sequence, and the occurrence; null: it is no date. */
export function dueOf(value: unknown, offsetDays: number): { at: number; occurrence: string } | null {
  const date = typeof value === 'string' ? parseMoment(value) : null;
  if (date === null) return null;
  const at = date + offsetDays * DAY;
  return { at, occurrence: `date:${at}` };
}

/** The occurrence of an event: a request that is repeated with the same key, or the same time, is the same event. */
export function eventOccurrence({
  name,
  idempotencyKey,
  occurredAt,
  id,
}: {
  name: string;
  idempotencyKey: string | undefined;
  /** Epoch ms. */
  occurredAt: number | undefined;
  /** Of an event with neither. */
  id: string;
}): string {
  if (idempotencyKey !== undefined) return `${EVENT}key:${digest(JSON.stringify([name, idempotencyKey]))}`;
  return occurredAt === undefined
    ? `${EVENT}${id}`
    : `${EVENT}at:${digest(JSON.stringify([name, occurredAt]))}`;
}

const EVENT = 'event:';

/** Whether the record of an occurrence can be deleted some time after its end: others must not begin again. */
export function isEvent(occurrence: string): boolean {
  return occurrence.startsWith(EVENT);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Refuses to delete what sequences need; null: none does. `names`: of the sequences. */
export function usedBySequences(what: string, names: readonly string[]): Refusal | null {
  if (names.length === 0) return null;
  const listed = names.slice(0, MAX_LISTED).map((name) => JSON.stringify(name));
  if (names.length > MAX_LISTED) listed.push(`${names.length - MAX_LISTED} more`);
  return refuse(
    'INVALID_STATE',
    `${what} is used by ${names.length === 1 ? 'the sequence' : 'the sequences'} ${listed.join(', ')}: change or delete ${names.length === 1 ? 'it' : 'them'} first`,
  );
}

/** Names of sequences in a refusal. */
const MAX_LISTED = 10;
