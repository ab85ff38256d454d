import { cachedLookup } from '../cached-rows.ts';
import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { columnsSet, columnValues, statements } from '../database/statements.ts';
import { type NamedPageFilter, type Page, pageOf } from '../rows/page.ts';

/*
 * Sequences, their versions and the people in them. Triggers of the schema count the people of each step and those that
 * ended (`sequence_counts`, `sequence_ends`).
 */

export const SEQUENCE_STATUSES = ['draft', 'active', 'paused'] as const;
export type SequenceStatus = (typeof SEQUENCE_STATUSES)[number];

export const TRIGGER_KINDS = ['joined', 'confirmed', 'event', 'dateField', 'fieldSet'] as const;
export type TriggerKind = (typeof TRIGGER_KINDS)[number];

export const PERSON_STATES = ['scheduled', 'active', 'ended'] as const;
export type PersonState = (typeof PERSON_STATES)[number];

export interface SequenceRow {
  /** The page key. */
  seq: number;
  sequence_id: string;
  account_id: string;
  name: string;
  status: SequenceStatus;
  /** Why the service paused it; null: it did not. */
  paused_reason: string | null;
  /** The version that people begin. */
  version: number;
  trigger_kind: TriggerKind;
  /** Id of a group, name of an event or of a custom field. */
  trigger_key: string;
  /** Of `dateField`; otherwise 0. */
  offset_days: number;
  /** When it was last activated, epoch ms; null: never. */
  activated_at: number | null;
  /** Contacts up to this one were examined for their dates; null: all were. */
  scan_after: number | null;
  /** Triggers while as many people as possible were in it. */
  missed: number;
  deleted_at: number | null;
  created_at: number;
  updated_at: number;
}

/** A contact in a sequence. */
export interface SequencePersonRow {
  /** The page key. */
  seq: number;
  sequence_seq: number;
  contact_seq: number;
  /** Of the trigger: the same one begins the sequence once. */
  occurrence: string;
  version: number;
  /** `scheduled`: its date is in the future. */
  state: PersonState;
  /** The next step, from 0. */
  step: number;
  /** When the next step is due, epoch ms. */
  due_at: number;
  /** Why it ended; null: it did not. */
  reason: string | null;
  /** JSON of the event's properties; null: it was no event, or one without properties. */
  properties: string | null;
  entered_at: number;
  ended_at: number | null;
  /** `ended_at` of an occurrence that needs no record: an event. */
  event_ended_at: number | null;
}

export type NewSequencePerson = Omit<SequencePersonRow, 'seq' | 'reason' | 'ended_at' | 'event_ended_at'>;

/** The counts of a step. */
export interface StepCounts {
  version: number;
  step: number;
  /** In progress, with this step as the next one. */
  people: number;
  /** Messages that could not be rendered. */
  skipped: number;
  queued: number;
  delivered: number;
  bounced: number;
  complained: number;
  unique_opened: number;
  unique_clicked: number;
  unsubscribed: number;
}

export interface SequencePeopleFilter {
  sequenceSeq: number;
  state?: PersonState;
  /** People in progress at a step of a version. */
  at?: { version: number; step: number };
  beforeSeq: number | null;
  limit: number;
}

/** A person in a list. */
export type ListedPerson = SequencePersonRow & {
  email: string | null;
  email_hash: string | null;
  phone_hash: string | null;
  /** The contact has paused marketing mail until then, epoch ms; null: it has not. */
  paused_until: number | null;
};

export const SEQUENCE_POLICY = {
  table: 'sequence_people',
  personal: ['properties'],
  erasure: ['contact'],
  // Occurrences other than events stay, so that they do not begin again.
  retention: { kind: 'sequencePeople', rows: 'timed', period: 'events', key: 'seq', time: 'event_ended_at' },
} as const satisfies DataPolicy;

/** `sequences` and `sequence_versions`. Reads omit deleted sequences, except `withWork` and `bySeq`. */
export function sequenceTable(db: Database) {
  const sql = statements(db);
  const triggered = sql.all<[string, TriggerKind], SequenceRow>(`
    SELECT * FROM sequences
    WHERE account_id = ? AND trigger_kind = ? AND deleted_at IS NULL
      AND (status = 'active' OR (status = 'paused' AND paused_reason IS NOT NULL))
    ORDER BY seq`);
  const ofTrigger = cachedLookup(db, (accountId: string, kind: TriggerKind) => triggered(accountId, kind));
  const insertVersion = sql.run<[number, number, string, number]>(`
    INSERT INTO sequence_versions (sequence_seq, version, definition, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET definition = excluded.definition, created_at = excluded.created_at`);
  const dropVersions = sql.run<[number, number]>(`
    DELETE FROM sequence_versions AS v WHERE sequence_seq = ? AND version < ? AND NOT EXISTS (
      SELECT 1 FROM sequence_people p
      WHERE p.sequence_seq = v.sequence_seq AND p.version = v.version AND p.state = 'active')`);
  // People of an imported account can be in versions that do not exist.
  const dropCounts = sql.run<[number, number]>(`
    DELETE FROM sequence_counts AS c WHERE sequence_seq = ? AND version < ? AND people = 0 AND NOT EXISTS (
      SELECT 1 FROM sequence_versions v WHERE v.sequence_seq = c.sequence_seq AND v.version = c.version)`);
  const list = sql.all<[string, number, string, number], SequenceRow>(`
    SELECT * FROM sequences
    WHERE account_id = ? AND deleted_at IS NULL AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<SequenceRow, 'seq'>]>(`INSERT INTO ${sql.row('sequences')}`),
    update: sql.run<[row: SequenceRow]>(`
      UPDATE sequences SET ${columnsSet(`name, status, paused_reason, version, trigger_kind, trigger_key,
        offset_days, activated_at, scan_after, missed, deleted_at, updated_at`)}
      WHERE seq = @seq`),
    get: sql.get<[accountId: string, sequenceId: string], SequenceRow>(
      'SELECT * FROM sequences WHERE account_id = ? AND sequence_id = ? AND deleted_at IS NULL',
    ),
    bySeq: sql.get<[seq: number], SequenceRow>('SELECT * FROM sequences WHERE seq = ?'),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<SequenceRow> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    count: sql.count<[accountId: string]>(
      'SELECT count(*) FROM sequences WHERE account_id = ? AND deleted_at IS NULL',
    ),
    /** Sequences of an account that record who triggers them, by the kind of their trigger; cached until a write. */
    triggeredBy: (accountId: string, kind: TriggerKind): readonly SequenceRow[] => ofTrigger(accountId, kind),
    /** Active sequences with somebody who is due at `now` or with contacts to examine, and deleted ones: the oldest first. */
    withWork: sql.all<[now: number], Pick<SequenceRow, 'seq' | 'account_id' | 'deleted_at'>>(`
      SELECT seq, account_id, deleted_at FROM sequences s
      WHERE deleted_at IS NOT NULL OR (status = 'active' AND (scan_after IS NOT NULL OR EXISTS (
        SELECT 1 FROM sequence_people p WHERE p.sequence_seq = s.seq AND p.state <> 'ended' AND p.due_at <= ?)))
      ORDER BY seq`),
    /** The people in it must be deleted first. */
    remove: sql.run<[seq: number]>('DELETE FROM sequences WHERE seq = ?'),
    /** Inserts or replaces a version. `definition`: JSON. */
    putVersion: (seq: number, version: number, definition: string, at: number): void =>
      insertVersion(seq, version, definition, at),
    definition: sql.value<[seq: number, version: number], string>(
      'SELECT definition FROM sequence_versions WHERE sequence_seq = ? AND version = ?',
    ),
    /** Numbers of the versions, oldest first. */
    versions: sql.values<[seq: number], number>(
      'SELECT version FROM sequence_versions WHERE sequence_seq = ? ORDER BY version',
    ),
    /** Deletes versions before `version` that nobody is in, and their counts. */
    dropUnused: (seq: number, version: number): void => {
      dropVersions(seq, version);
      dropCounts(seq, version);
    },
    /** Names of sequences that are not drafts and use a template in a version that somebody can be in. */
    usingTemplate: sql.values<[accountId: string, templateId: string], string>(`
      SELECT name FROM sequences s
      WHERE account_id = ? AND status <> 'draft' AND deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM sequence_versions v, json_each(v.definition, '$.steps') step
        WHERE v.sequence_seq = s.seq AND step.value ->> '$.send.templateId' = ?)
      ORDER BY seq`),
    /** Names of sequences that are not drafts and whose definition mentions a group. */
    usingGroup: sql.values<[accountId: string, groupId: string], string>(`
      SELECT name FROM sequences s
      WHERE account_id = ? AND status <> 'draft' AND deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM sequence_versions v, json_tree(v.definition) value
        WHERE v.sequence_seq = s.seq AND value.key IN ('joined', 'confirmed', 'group') AND value.atom = ?)
      ORDER BY seq`),
  };
}

/** Rows of a contact in an export of all data about it. */
const MAX_OF_CONTACT = 10_000;

/** `sequence_people`, with the messages that they were sent (`sequence_sends`). */
export function sequencePeopleTable(db: Database) {
  const sql = statements(db);
  const COLUMNS = `sequence_seq, contact_seq, occurrence, version, state, step, due_at, properties, entered_at`;
  const SELECT = `SELECT p.*, c.email, c.email_hash, c.phone_hash, c.paused_until
    FROM sequence_people p JOIN contacts c ON c.seq = p.contact_seq`;
  const pageWhere = (condition: string) => `${SELECT} WHERE ${condition} ORDER BY p.seq DESC LIMIT +@limit`;
  const all = sql.all<[PageParameters], ListedPerson>(
    pageWhere('p.sequence_seq = @sequenceSeq AND p.seq < @before'),
  );
  const ofState = sql.all<[PageParameters], ListedPerson>(
    pageWhere('p.sequence_seq = @sequenceSeq AND p.state = @state AND p.seq < @before'),
  );
  const atStep = sql.all<[PageParameters], ListedPerson>(
    pageWhere(
      `p.sequence_seq = @sequenceSeq AND p.version = @version AND p.step = @step AND p.state = 'active' AND p.seq < @before`,
    ),
  );
  const removeOfSequence = sql.changes<[number, number]>(`
    DELETE FROM sequence_people WHERE seq IN (SELECT seq FROM sequence_people WHERE sequence_seq = ? LIMIT +?)`);
  return {
    /**
     * Returns false when this occurrence began the sequence already, or when the contact is in it and `state` is
     * `active`.
     */
    insert: sql.changed<[row: NewSequencePerson]>(`
      INSERT INTO sequence_people ${columnValues(COLUMNS)} ON CONFLICT DO NOTHING`),
    /** For the import of an account. */
    insertImported: sql.run<[row: Omit<SequencePersonRow, 'seq'>]>(
      `INSERT INTO ${sql.row('sequence_people')}`,
    ),
    bySeq: sql.get<[seq: number], SequencePersonRow>('SELECT * FROM sequence_people WHERE seq = ?'),
    find: sql.get<[sequenceSeq: number, contactSeq: number, occurrence: string], SequencePersonRow>(
      'SELECT * FROM sequence_people WHERE sequence_seq = ? AND contact_seq = ? AND occurrence = ?',
    ),
    isInProgress: sql.exists<[sequenceSeq: number, contactSeq: number]>(
      `SELECT 1 FROM sequence_people WHERE sequence_seq = ? AND contact_seq = ? AND state = 'active'`,
    ),
    /** Those that are due at `now`, the longest first. */
    due: sql.values<[sequenceSeq: number, now: number, limit: number], number>(`
      SELECT seq FROM sequence_people INDEXED BY sequence_people_due
      WHERE sequence_seq = ? AND state <> 'ended' AND due_at <= ? ORDER BY due_at LIMIT +?`),
    update: sql.run<[row: SequencePersonRow]>(`
      UPDATE sequence_people SET ${columnsSet(
        'version, state, step, due_at, reason, entered_at, ended_at, event_ended_at',
      )}
      WHERE seq = @seq`),
    remove: sql.run<[seq: number]>('DELETE FROM sequence_people WHERE seq = ?'),
    removeOfContact: sql.run<[contactSeq: number]>('DELETE FROM sequence_people WHERE contact_seq = ?'),
    removeOfSequence: (sequenceSeq: number, limit: number): number => removeOfSequence(sequenceSeq, limit),
    /** The sequences of a contact, newest first. */
    ofContact: sql.all<[contactSeq: number], SequencePersonRow & { sequence_id: string }>(`
      SELECT p.*, s.sequence_id FROM sequence_people p JOIN sequences s ON s.seq = p.sequence_seq
      WHERE p.contact_seq = ? ORDER BY p.seq DESC LIMIT ${MAX_OF_CONTACT}`),
    /** Newest first. */
    list: ({ sequenceSeq, state, at, beforeSeq, limit }: SequencePeopleFilter): Page<ListedPerson> => {
      const read = at !== undefined ? atStep : state !== undefined ? ofState : all;
      const rows = read({
        sequenceSeq,
        state: state ?? 'active',
        version: at?.version ?? 0,
        step: at?.step ?? 0,
        before: beforeSeq ?? Number.MAX_SAFE_INTEGER,
        limit: limit + 1,
      });
      return pageOf(rows, limit);
    },
    /** Throws when the step was sent already: the unit of work with the second message is rolled back. */
    insertSend: sql.run<[personSeq: number, step: number, messageId: string, at: number]>(
      'INSERT INTO sequence_sends (entry_seq, step, message_id, sent_at) VALUES (?, ?, ?, ?)',
    ),
    /** Ids of the messages, in the order of their steps. */
    sends: sql.all<[personSeq: number], { step: number; message_id: string; sent_at: number }>(
      'SELECT step, message_id, sent_at FROM sequence_sends WHERE entry_seq = ? ORDER BY step',
    ),
    counts: sql.all<[sequenceSeq: number], StepCounts>(`
      SELECT version, step, people, skipped, queued, delivered, bounced, complained, unique_opened, unique_clicked,
        unsubscribed
      FROM sequence_counts WHERE sequence_seq = ? ORDER BY version, step`),
    inProgress: sql.count<[sequenceSeq: number]>(
      'SELECT sum(people) FROM sequence_counts WHERE sequence_seq = ?',
    ),
    ends: sql.all<[sequenceSeq: number], { reason: string; people: number }>(
      'SELECT reason, people FROM sequence_ends WHERE sequence_seq = ? ORDER BY reason',
    ),
    countSkipped: sql.run<[sequenceSeq: number, version: number, step: number]>(`
      INSERT INTO sequence_counts (sequence_seq, version, step, skipped) VALUES (?, ?, ?, 1)
      ON CONFLICT DO UPDATE SET skipped = skipped + 1`),
    /** Contacts of an account after `after`, with the value of a custom field. */
    fieldValues: sql.all<
      [{ accountId: string; after: number; field: string; limit: number }],
      { seq: number; value: string | null }
    >(`
      SELECT seq, (SELECT f.atom FROM json_each(custom_fields) f WHERE f.key = @field AND f.type = 'text') AS value
      FROM contacts WHERE account_id = @accountId AND seq > @after ORDER BY seq LIMIT +@limit`),
  };
}

interface PageParameters {
  sequenceSeq: number;
  state: PersonState;
  version: number;
  step: number;
  before: number;
  limit: number;
}
