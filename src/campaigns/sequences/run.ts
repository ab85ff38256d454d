import { setTimeout as sleep } from 'node:timers/promises';
import type { AccountLimits } from '../../accounts/limits.ts';
import { marketingIneligibility } from '../../audience/eligibility.ts';
import { matchesContact } from '../../audience/segments/match.ts';
import {
  groupOf,
  readDefinition,
  type SequenceDefinition,
  type SequenceSend,
  waitMs,
} from '../../audience/sequences/definition.ts';
import { dueOf, isEvent, isFull, MAX_LATE_MS, scheduleDate } from '../../audience/sequences/entries.ts';
import { HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { Pressure } from '../../sending/pressure.ts';
import { stepCampaignId } from '../../store/campaigns/campaign-counts.ts';
import type { SequencePersonRow, SequenceRow } from '../../store/campaigns/sequences.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import { isOptionalIn, requestFor, senderOf } from './mail.ts';

/*
 * Moves people through sequences. A person's row has the next step and when it is due. Steps that send nothing are taken
 * in one unit of work (`advance`). A message is accepted as any other one is, and the unit of work that stores it also
 * moves the person to the next step and inserts a row with the step as its key: after a crash at any moment, no step is
 * sent twice and none is lost.
 */

/** Why a person is no longer in a sequence. */
export const END_REASONS = [
  'completed',
  'goal',
  'condition',
  'unsubscribed',
  'suppressed',
  'not_subscribed',
  'no_email',
] as const;
type EndReason = (typeof END_REASONS)[number];

/** Why nobody of a sequence moves on, although steps are due. All end without a loss: people wait. */
export const OBSTACLES = [
  'paused',
  'account_disabled',
  'stored_bytes',
  'message_limit',
  'service_busy',
  'failing',
] as const;
export type Obstacle = (typeof OBSTACLES)[number];

/** What the runner shares with other parts. */
export interface SequenceRunnerParts {
  accept: Acceptance['accept'];
  pressure: Pick<Pressure, 'refusal' | 'capacity'>;
  limits: Pick<AccountLimits, 'allowance'>;
}

/** People of an account whose next steps are taken before the next account has its turn. */
const PORTION = 25;
/** Contacts whose dates are examined in one unit of work. */
const SCAN_BATCH_SIZE = 500;
/** Rows of a deleted sequence that are deleted in one unit of work. */
const REMOVAL_BATCH_SIZE = 500;
const ROUND_INTERVAL_MS = SECOND;
const FAULT_RETRY_MS = 10 * SECOND;
/** The pause after a portion, as a share of its duration: others get their turn. */
const PAUSE_SHARE = 0.5;

/** Refusals because of the message for one contact: its step is skipped. */
const SKIPPED: ReadonlySet<RefusalCode> = new Set([
  'VALIDATION_ERROR',
  'TEMPLATE_VARIABLE_MISSING',
  'PAYLOAD_TOO_LARGE',
]);
/** Refusals that pass: the person waits. */
const PASSING: ReadonlySet<RefusalCode> = new Set([
  'RATE_LIMITED',
  'UNAVAILABLE',
  'ACCOUNT_DISABLED',
  // Of stored bytes: the account frees some.
  'LIMIT_REACHED',
]);

/** A person whose next step is a message. */
interface DueMessage {
  person: SequencePersonRow;
  sequence: SequenceRow;
  definition: SequenceDefinition;
  send: SequenceSend;
  contact: KnownContact & { email: string };
}

/**
 * Starts nothing; after `start` the loop keeps the process running. The state is in the database: after a crash it
 * continues from the last commit, and changes by other processes are noticed within a second. A sequence that fails is
 * tried again after 10 s, which is in memory only.
 */
export function createSequenceRunner(
  context: Pick<Context, 'clock' | 'log' | 'tables' | 'writer'>,
  { accept, pressure, limits }: SequenceRunnerParts,
) {
  const { clock, log, tables, writer } = context;
  /** Sequences that failed, with the time of their next try. */
  const failed = new Map<number, number>();
  /** The sequence of each account that had the last turn. */
  const last = new Map<string, number>();
  let isStopping = false;

  /** One portion of each account that has work. Returns ms until the next round. */
  async function round(): Promise<number> {
    let waitMs = ROUND_INTERVAL_MS;
    for (const seq of nextOfEachAccount()) {
      if (isStopping) return waitMs;
      if (await tryPortion(seq)) waitMs = 0;
    }
    return waitMs;
  }

  /** A sequence of each account that has work: the one after the last. */
  function nextOfEachAccount(): number[] {
    const now = clock.now();
    const byAccount = new Map<string, number[]>();
    for (const { seq, account_id, deleted_at } of tables.sequences.withWork(now)) {
      if ((failed.get(seq) ?? 0) > now) continue;
      if (deleted_at === null && tables.accounts.get(account_id)?.status !== 'active') continue;
      const known = byAccount.get(account_id);
      if (known === undefined) byAccount.set(account_id, [seq]);
      else known.push(seq);
    }
    for (const accountId of last.keys()) if (!byAccount.has(accountId)) last.delete(accountId);
    return [...byAccount].map(([accountId, seqs]) => {
      const next = seqs.find((seq) => seq > (last.get(accountId) ?? 0)) ?? seqs[0] ?? 0;
      last.set(accountId, next);
      return next;
    });
  }

  /** The failure of one sequence does not affect the others. Returns whether anything was done. */
  async function tryPortion(seq: number): Promise<boolean> {
    const startedAt = performance.now();
    try {
      const progressed = await portion(seq);
      failed.delete(seq);
      if (progressed) await sleep((performance.now() - startedAt) * PAUSE_SHARE);
      return progressed;
    } catch (error) {
      log.error({ err: error, sequenceSeq: seq }, 'sequence could not continue; trying again later');
      failed.set(seq, clock.now() + FAULT_RETRY_MS);
      return false;
    }
  }

  async function portion(seq: number): Promise<boolean> {
    const sequence = tables.sequences.bySeq(seq);
    if (sequence === null) return false;
    const { account_id: accountId } = sequence;
    if (sequence.deleted_at !== null) {
      await writer.run((tx) => removeSome(tx, seq), accountId);
      return true;
    }
    if (sequence.scan_after !== null) {
      await writer.run((tx) => examineDates(tx, seq, clock.now()), accountId);
      return true;
    }
    // Also for people whose next step sends nothing: there is no way to know.
    if (obstacle(sequence) !== null) return false;
    const { left } = limits.allowance(tables, accountId, clock.now());
    const capacity = Math.floor(Math.min(PORTION, pressure.capacity(), left));
    const due = await writer.run((tx): DueMessage[] => {
      const now = clock.now();
      return tx.sequencePeople.due(seq, now, capacity).flatMap((personSeq) => {
        const person = tx.sequencePeople.bySeq(personSeq);
        return person === null ? [] : (advance(tx, person, now) ?? []);
      });
    }, accountId);
    const results = await Promise.all(due.map(sendMessage));
    return results.length === 0 || results.some((isSent) => isSent);
  }

  /** Why nobody of a sequence moves on now; null: they do. */
  function obstacle({ account_id: accountId, status }: SequenceRow): Obstacle | null {
    if (status !== 'active') return 'paused';
    if (tables.accounts.get(accountId)?.status !== 'active') return 'account_disabled';
    const refusal = pressure.refusal(accountId);
    if (refusal?.code === 'LIMIT_REACHED') return 'stored_bytes';
    if (refusal !== null || pressure.capacity() < 1) return 'service_busy';
    if (limits.allowance(tables, accountId, clock.now()).left < 1) return 'message_limit';
    return null;
  }

  /** Returns whether the person has moved on. */
  async function sendMessage({ person, sequence, definition, send, contact }: DueMessage): Promise<boolean> {
    const { account_id: accountId } = sequence;
    const account = tables.accounts.get(accountId);
    if (account === null) throw new Error(`the account of sequence ${sequence.sequence_id} does not exist`);
    const result = await accept({
      sender: senderOf(account),
      body: requestFor(send, definition.trigger, contact, person.properties),
      idempotency: null,
      envelope: () => '',
      isOptional: isOptionalIn(definition.trigger),
      step: {
        countedAs: stepCampaignId({
          sequenceId: sequence.sequence_id,
          version: person.version,
          step: person.step,
        }),
        store: (tx, messageId) => takeStep(tx, person, messageId, clock.now()),
      },
    });
    return isRefusal(result) ? refused(person, sequence, result) : true;
  }

  async function refused(
    person: SequencePersonRow,
    sequence: SequenceRow,
    refusal: Refusal,
  ): Promise<boolean> {
    const status = refusal.extras.subscriptionStatus;
    // For a person who has paused marketing mail, `advance` writes when to try again.
    if (refusal === MOVED || PASSING.has(refusal.code) || status === 'paused') return false;
    const { account_id: accountId, sequence_id: sequenceId } = sequence;
    if (status !== undefined) {
      await writer.run((tx) => {
        const current = stillAt(tx, person);
        if (current !== null) end(tx, current, reasonOf(status), clock.now());
      }, accountId);
      return true;
    }
    const reason = `${refusal.code}: ${refusal.message}`;
    if (SKIPPED.has(refusal.code)) {
      log.info({ sequenceId, step: person.step, reason }, 'message of a sequence skipped');
      await writer.run((tx) => {
        const current = stillAt(tx, person);
        if (current === null) return;
        tx.sequencePeople.countSkipped(current.sequence_seq, current.version, current.step);
        tx.sequencePeople.update({ ...current, step: current.step + 1 });
      }, accountId);
      return true;
    }
    await writer.run((tx) => pauseSequence(tx, sequence.seq, reason, clock.now()), accountId);
    log.warn({ sequenceId, reason }, 'sequence paused');
    return false;
  }

  const loop = createLoop({
    name: 'sequences',
    run: round,
    intervalMs: ROUND_INTERVAL_MS,
    retryMs: FAULT_RETRY_MS,
    log,
    ref: true,
  });

  return {
    /** What `start` repeats: one portion of each account that has work. Returns ms until the next round. */
    round,
    start: loop.start,
    /** Why people of a sequence whose step is due wait; null: they do not. */
    obstacle: (sequence: SequenceRow): Obstacle | null =>
      obstacle(sequence) ?? (failed.has(sequence.seq) ? 'failing' : null),
    /** Starts a round now, after a committed change. */
    wake: loop.wake,
    /** Resolves after the portion in progress. */
    stop: (): Promise<void> => {
      isStopping = true;
      return loop.stop();
    },
  };
}

export type SequenceRunner = ReturnType<typeof createSequenceRunner>;

/** The person has moved on since its message was prepared, or the sequence is paused or deleted. */
const MOVED = refuse('INVALID_STATE', 'The person is not at this step of the sequence any more');

/** Pauses a sequence that cannot be sent, in a unit of work. */
function pauseSequence(tx: Tables, seq: number, reason: string, now: number): void {
  const sequence = tx.sequences.bySeq(seq);
  if (!isRunning(sequence)) return;
  const updated_at = Math.max(now, sequence.updated_at + 1);
  tx.sequences.update({ ...sequence, status: 'paused', paused_reason: reason, updated_at });
}

/** Records that a step was sent and moves the person on, in the unit of work that stores the message. */
function takeStep(tx: Tables, person: SequencePersonRow, messageId: string, now: number): Refusal | null {
  const current = stillAt(tx, person);
  if (current === null) return MOVED;
  tx.sequencePeople.insertSend(person.seq, person.step, messageId, now);
  advance(tx, { ...current, step: current.step + 1, due_at: now }, now);
  return null;
}

/** The row of a person who is still at the same step of a sequence that is active; otherwise null. */
function stillAt(tx: Tables, { seq, step, version }: SequencePersonRow): SequencePersonRow | null {
  const current = tx.sequencePeople.bySeq(seq);
  if (current?.state !== 'active' || current.step !== step || current.version !== version) return null;
  return isRunning(tx.sequences.bySeq(current.sequence_seq)) ? current : null;
}

function isRunning(sequence: SequenceRow | null): sequence is SequenceRow {
  return sequence !== null && sequence.status === 'active' && sequence.deleted_at === null;
}

/**
 * Takes the steps of a person that are due and send nothing, and writes the row, in a unit of work. Returns the message
 * that is next and due; null: the person waits or has left.
 */
function advance(tx: Tables, row: SequencePersonRow, now: number): DueMessage | null {
  const sequence = tx.sequences.bySeq(row.sequence_seq);
  if (!isRunning(sequence) || row.state === 'ended') return null;
  const contact = tx.contacts.bySeq(row.contact_seq);
  if (contact === null) throw new Error(`the contact of person ${row.seq} does not exist`);
  const person = row.state === 'scheduled' ? begin(tx, sequence, row, contact, now) : row;
  if (person === null) return null;
  const stored = tx.sequences.definition(sequence.seq, person.version);
  // The version of an imported person may be missing.
  if (stored === null) return end(tx, person, 'completed', now);
  const definition = readDefinition(stored);
  const groupId = groupOf(definition.trigger);
  const ineligible =
    contact.email_hash === null
      ? null
      : marketingIneligibility(tx, sequence.account_id, contact.email_hash, groupId);
  if (ineligible?.status === 'paused') {
    // The person may end the pause earlier. A pause that is over is removed within a minute.
    const endsAt = Math.max(now, contact.paused_until ?? now);
    tx.sequencePeople.update({ ...person, due_at: Math.min(endsAt, now + HOUR) + MINUTE });
    return null;
  }
  if (ineligible?.status === 'not_subscribed' && groupId !== null) {
    const group = tx.subscriptionGroups.get(sequence.account_id, groupId);
    if (group?.is_active !== 1) {
      // Everybody would leave the sequence, and the account may activate the group again.
      const reason = `SUBSCRIPTION_GROUP_NOT_FOUND: The subscription group ${groupId} is inactive or was deleted`;
      pauseSequence(tx, sequence.seq, reason, now);
      return null;
    }
  }
  let { step, due_at: dueAt } = person;
  for (;;) {
    if (ineligible !== null && ineligible.status !== 'not_subscribed')
      return end(tx, { ...person, step }, reasonOf(ineligible.status), now);
    if (definition.goal !== undefined && matchesContact(tx, contact, definition.goal, now))
      return end(tx, { ...person, step }, 'goal', now);
    const waiting = { ...person, step, due_at: dueAt };
    if (dueAt > now) {
      tx.sequencePeople.update(waiting);
      return null;
    }
    const next = definition.steps[step];
    if (next === undefined || next.end === true) return end(tx, waiting, 'completed', now);
    if (next.send !== undefined) {
      tx.sequencePeople.update(waiting);
      const { email } = contact;
      if (email === null) return end(tx, waiting, 'no_email', now);
      if (ineligible !== null) return end(tx, waiting, 'not_subscribed', now);
      return { person: waiting, sequence, definition, send: next.send, contact: { ...contact, email } };
    }
    if (next.wait !== undefined) dueAt = now + (waitMs(next.wait) ?? 0);
    if (next.when !== undefined && !matchesContact(tx, contact, next.when, now)) {
      if (next.otherwise === 'end') return end(tx, { ...person, step }, 'condition', now);
      step++;
    }
    step++;
  }
}

/** The date of a contact is reached: it enters if the field still has it. Returns null if it does not. */
function begin(
  tx: Tables,
  sequence: SequenceRow,
  person: SequencePersonRow,
  contact: KnownContact,
  now: number,
): SequencePersonRow | null {
  // Sound: only the audience module writes the column.
  const fields = JSON.parse(contact.custom_fields) as Record<string, unknown>;
  const due =
    sequence.trigger_kind === 'dateField' ? dueOf(fields[sequence.trigger_key], sequence.offset_days) : null;
  const isMissed = person.due_at < (sequence.activated_at ?? 0) - MAX_LATE_MS;
  const isOther = due?.occurrence !== person.occurrence;
  if (
    isOther ||
    isMissed ||
    tx.sequencePeople.isInProgress(sequence.seq, contact.seq) ||
    isFull(tx, sequence)
  ) {
    tx.sequencePeople.remove(person.seq);
    return null;
  }
  return { ...person, state: 'active', version: sequence.version, due_at: now, entered_at: now };
}

function end(tx: Tables, person: SequencePersonRow, reason: EndReason, now: number): null {
  tx.sequencePeople.update({
    ...person,
    state: 'ended',
    reason,
    ended_at: now,
    event_ended_at: isEvent(person.occurrence) ? now : null,
  });
  return null;
}

function reasonOf(status: string): EndReason {
  if (status === 'unsubscribed' || status === 'not_subscribed') return status;
  return 'suppressed';
}

/** Examines the next contacts of the account for dates, in a unit of work. */
function examineDates(tx: Tables, seq: number, now: number): void {
  const sequence = tx.sequences.bySeq(seq);
  if (!isRunning(sequence) || sequence.scan_after === null) return;
  const contacts =
    sequence.trigger_kind === 'dateField'
      ? tx.sequencePeople.fieldValues({
          accountId: sequence.account_id,
          after: sequence.scan_after,
          field: sequence.trigger_key,
          limit: SCAN_BATCH_SIZE,
        })
      : [];
  for (const { seq: contactSeq, value } of contacts) scheduleDate(tx, sequence, contactSeq, value, now);
  const last = contacts.length < SCAN_BATCH_SIZE ? undefined : contacts.at(-1);
  tx.sequences.update({ ...sequence, scan_after: last?.seq ?? null });
}

/** Deletes some rows of a deleted sequence, and the sequence after its last one, in a unit of work. */
function removeSome(tx: Tables, seq: number): void {
  if (tx.sequencePeople.removeOfSequence(seq, REMOVAL_BATCH_SIZE) === 0) tx.sequences.remove(seq);
}
