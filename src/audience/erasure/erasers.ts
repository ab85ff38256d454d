import type { Recorder } from '../../events/record.ts';
import { packContent, unpackContent } from '../../mail/stored-content.ts';
import type { ErasureRow, StoredText } from '../../store/contacts/contacts-erasure.ts';
import { DECLARED_ERASURE_STEPS } from '../../store/data-policies.ts';
import type { ErasureStep } from '../../store/data-policy.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import {
  createScrubber,
  type Person,
  type Scrubber,
  withoutPersonalFields,
  withoutRecipient,
} from './scrub.ts';

/**
 * Clears the personal data of one step of an erasure, as tables declare it (store/data-policies). An eraser processes a
 * portion in a unit of work and is called again while there is more; it is idempotent.
 */
export interface Eraser {
  name: string;
  erase(tables: Tables, erasure: ErasureRun, portion: PortionLimit): EraseResult;
}

/** waiting: a worker is sending one of the messages; the eraser is called again later. */
export type EraseResult = 'more' | 'done' | 'waiting';

export interface PortionLimit {
  /** Maximum number of rows to read. */
  rows: number;
  /** Whether the time of the portion is used up; called after each row. */
  isOver(): boolean;
}

export interface ErasureRun {
  row: ErasureRow;
  person: Person;
  scrubber: Scrubber;
  /** Positions of the erasers by name, in memory only: after a restart they begin again. */
  progress: Map<string, unknown>;
  now: number;
}

export function createErasureRun(row: ErasureRow, now: number): ErasureRun {
  const person = JSON.parse(row.person) as Person;
  return { row, person, scrubber: createScrubber(person), progress: new Map(), now };
}

/** The position of an eraser, `start` at first. Sound: each eraser stores under its name what it reads. */
function positionOf<Position>({ progress }: ErasureRun, name: string, start: Position): Position {
  return (progress.get(name) as Position | undefined) ?? start;
}

export interface ErasersDeps {
  recorder: Recorder;
  /** Validity of stored answers to repeated requests, ms. */
  answersKeptMs: number;
}

/** The erasers of all steps that tables declare, in the order of the steps. */
export function createErasers({ recorder, answersKeptMs }: ErasersDeps): Eraser[] {
  const erase: Record<Exclude<ErasureStep, 'contact'>, Eraser['erase']> = {
    'queued mail': cancelMail(recorder),
    messages: clearMessages,
    events: clearEvents,
    'stored answers': clearAnswers(answersKeptMs),
    suppressions: clearSuppressions,
    'kept mail': clearKeptMail,
  };
  return DECLARED_ERASURE_STEPS.flatMap((name) => (name === 'contact' ? [] : [{ name, erase: erase[name] }]));
}

/** Position in the rows of each of the person's identifiers. */
interface PersonPosition {
  /** Index of the identifier. */
  identifier: number;
  after: number;
}

const PERSON_START: PersonPosition = { identifier: 0, after: 0 };

/** Handles the rows of one identifier after the other, in the order of their numbers. */
function walkPerson<Row>(
  run: ErasureRun,
  portion: PortionLimit,
  walk: {
    name: string;
    read(identifier: string, range: { after: number; limit: number }): Row[];
    seqOf(row: Row): number;
    handle(row: Row, identifier: string): void;
  },
): EraseResult {
  const { name, read, seqOf, handle } = walk;
  const position = positionOf(run, name, PERSON_START);
  const identifier = run.person.identifiers[position.identifier];
  if (identifier === undefined) return 'done';
  const rows = read(identifier, { after: position.after, limit: portion.rows });
  let { after } = position;
  for (const row of rows) {
    handle(row, identifier);
    after = seqOf(row);
    if (portion.isOver()) break;
  }
  const last = rows.at(-1);
  const isThrough = rows.length < portion.rows && (last === undefined || seqOf(last) === after);
  run.progress.set(
    name,
    isThrough ? { identifier: position.identifier + 1, after: 0 } : { ...position, after },
  );
  return 'more';
}

function cancelMail(recorder: Recorder): Eraser['erase'] {
  return (tables, run, portion) => {
    const { account_id: accountId, before_message: before } = run.row;
    return walkPerson<number>(run, portion, {
      name: 'queued mail',
      read: (identifier, range) => tables.erasures.messageSeqsOf(accountId, identifier, { ...range, before }),
      seqOf: (seq) => seq,
      handle: (seq) => {
        const queued = tables.queue.get(seq);
        if (queued === null || queued.lease !== null) return;
        const message = tables.messages.bySeq(seq);
        if (message !== null)
          recorder.message(tables, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
      },
    });
  };
}

/** Position in the messages that share a content. */
interface CopiesPosition {
  /** The person's message. */
  messageSeq: number;
  afterSeq: number;
  /** A copy for another recipient is still to be sent. */
  isNeeded: boolean;
}

const COPIES = 'copies';
const LINKS = 'links';

/** Clears messages in their order, with contents, attempts and events; waits for one that is being sent. */
function clearMessages(tables: Tables, run: ErasureRun, portion: PortionLimit): EraseResult {
  const messages = messagesFrom(tables, run.row, run.person, portion.rows);
  for (const message of messages) {
    if (tables.queue.get(message.seq) !== null) return 'waiting';
    if (!clearMessage(tables, message, run, portion)) return 'more';
    tables.erasures.setAt(run.row.seq, message.seq);
    if (portion.isOver()) return 'more';
  }
  return messages.length < portion.rows ? 'done' : 'more';
}

function messagesFrom(tables: Tables, row: ErasureRow, person: Person, limit: number): MessageRow[] {
  const after = tables.erasures.get(row.seq)?.at_message ?? 0;
  return person.identifiers
    .flatMap((identifier) =>
      tables.erasures.messagesOf(row.account_id, identifier, { after, before: row.before_message, limit }),
    )
    .toSorted((one, two) => one.seq - two.seq)
    .slice(0, limit);
}

/** False: not done, because its content has more copies than a portion may read. */
function clearMessage(tables: Tables, message: MessageRow, run: ErasureRun, portion: PortionLimit): boolean {
  const { row, scrubber } = run;
  const { erasures } = tables;
  const isNeeded = clearSubjects(tables, message, run, portion);
  if (isNeeded === null) return false;
  if (isNeeded) {
    const content = tables.messages.content(message.content_id);
    if (content !== null) {
      const rewritten = packContent(withoutRecipient(unpackContent(content), scrubber));
      erasures.setContent(message.content_id, rewritten);
    }
  } else erasures.removeContent(message.content_id);
  for (const attempt of tables.messages.attemptsOf(message.seq))
    erasures.setReport({ ...attempt, report: scrubber.json(attempt.report) });
  for (const event of erasures.eventsOf(message.seq)) {
    erasures.setEvent(event.seq, withoutPersonalFields(scrubber.json(event.text)));
    erasures.forgetWebhookAnswers(row.account_id, event.seq);
  }
  if (message.campaign_id !== null) clearLinks(tables, message.campaign_id, run);
  erasures.clearMessage(message.seq);
  return true;
}

/**
 * Removes the person from the subjects of all copies of the message's content, a portion of them at a time. Returns
 * whether the content is still needed for another recipient; null: there are more copies.
 */
function clearSubjects(
  { erasures }: Tables,
  message: MessageRow,
  run: ErasureRun,
  portion: PortionLimit,
): boolean | null {
  const start = { messageSeq: message.seq, afterSeq: 0, isNeeded: false };
  const last = positionOf<CopiesPosition>(run, COPIES, start);
  const position = last.messageSeq === message.seq ? { ...last } : start;
  const limit = Math.max(portion.rows, MIN_COPIES);
  const copies = erasures.copiesAfter(message.content_id, position.afterSeq, limit);
  for (const { seq, recipient_hash: hash, final_at: finalAt, subject } of copies) {
    if (hash !== message.recipient_hash && finalAt === null) position.isNeeded = true;
    if (run.scrubber.matches(subject)) erasures.setSubject(seq, run.scrubber.text(subject));
    position.afterSeq = seq;
  }
  run.progress.set(COPIES, position);
  return copies.length < limit ? position.isNeeded : null;
}

/** Copies that a portion always reads: subjects are short. */
const MIN_COPIES = 50;

/** Removes clicked links of the campaign that contain the person's data, once per campaign. */
function clearLinks({ erasures }: Tables, campaignId: string, run: ErasureRun): void {
  const cleared = positionOf(run, LINKS, new Set<string>());
  if (cleared.has(campaignId)) return;
  for (const { rowid, url } of erasures.linksOf(campaignId))
    if (run.scrubber.matches(url)) erasures.removeLink(rowid);
  run.progress.set(LINKS, cleared.add(campaignId));
}

/** Clears events without a message: refused sends and opt-outs. */
function clearEvents(tables: Tables, run: ErasureRun, portion: PortionLimit): EraseResult {
  const { account_id: accountId, before_event: before } = run.row;
  return walkPerson<StoredText>(run, portion, {
    name: 'events',
    read: (identifier, range) => tables.erasures.eventsAbout(accountId, identifier, { ...range, before }),
    seqOf: ({ seq }) => seq,
    handle: ({ seq, text }, identifier) => {
      const fields: Record<string, unknown> = JSON.parse(withoutPersonalFields(run.scrubber.json(text)));
      if ('recipient' in fields) fields['recipient'] = identifier;
      if ('subject' in fields) fields['subject'] = '';
      tables.erasures.setEvent(seq, JSON.stringify(fields));
      tables.erasures.forgetWebhookAnswers(accountId, seq);
    },
  });
}

/** Position in the stored answers; null: there are none to clear. */
type AnswersPosition = { endpoint: string; key: string } | null;

/** Clears stored answers to repeated requests, which contain recipients. */
function clearAnswers(keptMs: number): Eraser['erase'] {
  const name = 'stored answers';
  return (tables, run, { rows, isOver }) => {
    const { row, scrubber, progress } = run;
    const after = progress.has(name)
      ? positionOf<AnswersPosition>(run, name, null)
      : firstAnswers(tables, run, keptMs);
    if (after === null) return 'done';
    const answers = tables.erasures.answersAfter(row.account_id, after, rows);
    let position = after;
    for (const answer of answers) {
      if (scrubber.matches(answer.body))
        tables.erasures.setAnswer({ ...answer, body: scrubber.json(answer.body) });
      position = { endpoint: answer.endpoint, key: answer.key };
      if (isOver()) break;
    }
    progress.set(name, position);
    return answers.length === 0 ? 'done' : 'more';
  };
}

/** The beginning, unless all answers that may contain the person have expired. */
function firstAnswers(tables: Tables, { row, person, now }: ErasureRun, keptMs: number): AnswersPosition {
  const newest = person.identifiers.map((identifier) =>
    tables.erasures.newestMessageAt(row.account_id, identifier, row.before_message),
  );
  return newest.every((at) => at === null || at < now - keptMs) ? null : { endpoint: '', key: '' };
}

/** Removes addresses from suppressions, which apply to the identifier. */
function clearSuppressions(tables: Tables, { row, person }: ErasureRun): EraseResult {
  for (const identifier of person.identifiers)
    tables.erasures.forgetSuppressedAddress(row.account_id, identifier);
  return 'done';
}

/**
 * Removes kept mail about messages of the account that contains the person, and mail about no message that is to or from
 * the person. Mail about another account's message stays, and a name does not match mail about no message, because other
 * people may have the same name.
 */
function clearKeptMail(tables: Tables, run: ErasureRun, { rows, isOver }: PortionLimit): EraseResult {
  const { row, person, scrubber, progress } = run;
  const withoutName = createScrubber({ ...person, fullName: null });
  const mails = tables.erasures.keptMailAfter(
    positionOf(run, 'kept mail', 0),
    Math.min(rows, KEPT_MAIL_BATCH_SIZE),
  );
  for (const { seq, sender, raw, account_id } of mails) {
    progress.set('kept mail', seq);
    if (account_id !== null && account_id !== row.account_id) continue;
    const mail = raw.toString('utf8');
    const isPersonal =
      account_id === null
        ? withoutName.matches(sender) || withoutName.matches(headerOf(mail))
        : scrubber.matches(sender) || scrubber.matches(mail);
    if (isPersonal) tables.erasures.removeKeptMail(seq);
    if (isOver()) break;
  }
  return mails.length === 0 ? 'done' : 'more';
}

/** Mails read into memory at a time. */
const KEPT_MAIL_BATCH_SIZE = 20;

function headerOf(mail: string): string {
  return /^.*?(?:\r?\n){2}/s.exec(mail)?.[0] ?? mail;
}
