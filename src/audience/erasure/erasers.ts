import { createHash } from 'node:crypto';
import { withoutPersonalFields } from '../../events/erased.ts';
import type { Recorder } from '../../events/record.ts';
import { packContent, packLongContent, plainContent, unpackContent } from '../../mail/stored-content.ts';
import type { ErasureRow, StoredText } from '../../store/contacts/contacts-erasure.ts';
import { DECLARED_ERASURE_STEPS } from '../../store/data-policies.ts';
import type { ErasureStep } from '../../store/data-policy.ts';
import { ReadRejected } from '../../store/database/failure.ts';
import type { ContentRow, MessageRow, NewContent } from '../../store/messages/messages.ts';
import { type Reader, readQuery } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { createScrubber, type Person, type Scrubber, withoutRecipient } from './scrub.ts';

/** The erasers of all steps that tables declare, in the order of the steps. `responsesKeptMs`: how long stored responses exist. */
export function createErasers(reader: Reader, recorder: Recorder, responsesKeptMs: number): Eraser[] {
  const steps: Record<Exclude<ErasureStep, 'contact'>, Omit<Eraser, 'name'>> = {
    'queued mail': { erase: cancelMail(recorder) },
    messages: { erase: clearMessages, prepare: (run) => prepareContent(reader, run) },
    events: { erase: clearEvents },
    'stored responses': { erase: clearResponses(responsesKeptMs) },
    suppressions: { erase: clearSuppressions },
    'kept mail': { erase: clearKeptMail },
  };
  return DECLARED_ERASURE_STEPS.flatMap((name) => (name === 'contact' ? [] : [{ name, ...steps[name] }]));
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
      tables.erasures.clearWebhookResponses(accountId, seq);
    },
  });
}

/** Position in the stored responses; null: there are none to clear. */
type ResponsesPosition = { endpoint: string; key: string } | null;

/** Clears stored responses to repeated requests, which contain recipients. */
function clearResponses(keptMs: number): Eraser['erase'] {
  const name = 'stored responses';
  return (tables, run, { rows, isOver }) => {
    const { row, scrubber, progress } = run;
    const after = progress.has(name)
      ? positionOf<ResponsesPosition>(run, name, null)
      : firstPosition(tables, run, keptMs);
    if (after === null) return 'done';
    const responses = tables.erasures.responsesAfter(row.account_id, after, rows);
    let position = after;
    for (const response of responses) {
      if (scrubber.matches(response.body))
        tables.erasures.setResponse({ ...response, body: scrubber.json(response.body) });
      position = { endpoint: response.endpoint, key: response.key };
      if (isOver()) break;
    }
    progress.set(name, position);
    return responses.length === 0 ? 'done' : 'more';
  };
}

/** The beginning; null when all responses that may contain the person have expired. */
function firstPosition(tables: Tables, { row, person, now }: ErasureRun, keptMs: number): ResponsesPosition {
  const newest = person.identifiers.map((identifier) =>
    tables.erasures.newestMessage(row.account_id, identifier, row.before_message),
  );
  return newest.every((message) => message === null || message.createdAt < now - keptMs)
    ? null
    : { endpoint: '', key: '' };
}

/** Removes addresses from suppressions, which apply to the identifier. */
function clearSuppressions(tables: Tables, { row, person }: ErasureRun): EraseResult {
  for (const identifier of person.identifiers)
    tables.erasures.clearSuppressedAddress(row.account_id, identifier);
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
    const cleared = clearMessage(tables, message, run, portion);
    if (cleared !== 'done') return cleared;
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

/** Returns `more` if the content has more copies than a portion may read, and `prepare` if it must be rewritten. */
function clearMessage(
  tables: Tables,
  message: MessageRow,
  run: ErasureRun,
  portion: PortionLimit,
): 'done' | 'more' | 'prepare' {
  const { row, scrubber } = run;
  const { erasures } = tables;
  const isNeeded = clearSubjects(tables, message, run, portion);
  if (isNeeded === null) return 'more';
  if (isNeeded) {
    if (!rewriteContent(tables, message.content_id, run)) return 'prepare';
  } else erasures.removeContent(message.content_id);
  for (const attempt of tables.messages.attemptsOf(message.seq))
    erasures.setReport({ ...attempt, report: scrubber.json(attempt.report) });
  for (const event of erasures.eventsOf(message.seq)) {
    erasures.setEvent(event.seq, withoutPersonalFields(scrubber.json(event.text)));
    erasures.clearWebhookResponses(row.account_id, event.seq);
  }
  if (message.campaign_id !== null) clearLinks(tables, message.campaign_id, run);
  erasures.clearMessage(message.seq);
  return 'done';
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

/** Bytes of JSON that are rewritten in a unit of work. */
const MAX_INLINE_BYTES = 32 * 1024;

const REWRITTEN = 'rewritten content';

interface RewrittenContent {
  contentId: number;
  /** Null: it must be rewritten. */
  result: { digest: string; content: NewContent } | null;
}

/**
 * Removes the person from a content that is still to be sent to others, in a unit of work. Rewriting a content of several
 * MB takes hundreds of milliseconds: a long one is rewritten on a reader thread and compressed in libuv's pool, and the
 * unit of work stores the result if the content has not changed in the meantime. Returns false when nothing was done,
 * because `prepareContent` must rewrite the content first.
 */
function rewriteContent({ messages, erasures }: Tables, contentId: number, run: ErasureRun): boolean {
  const stored = messages.content(contentId);
  if (stored === null) return true;
  if (stored.size <= MAX_INLINE_BYTES) {
    erasures.setContent(contentId, packContent(withoutRecipient(unpackContent(stored), run.scrubber)));
    return true;
  }
  const last = positionOf<RewrittenContent | null>(run, REWRITTEN, null);
  if (last?.contentId !== contentId || last.result?.digest !== digestOf(stored)) {
    run.progress.set(REWRITTEN, { contentId, result: null } satisfies RewrittenContent);
    return false;
  }
  erasures.setContent(contentId, last.result.content);
  return true;
}

/** Rewrites the content that `rewriteContent` requires. Resolves with false when the reader threads are busy or closing. */
async function prepareContent(reader: Reader, run: ErasureRun): Promise<boolean> {
  const last = positionOf<RewrittenContent | null>(run, REWRITTEN, null);
  if (last === null) return true;
  const { contentId } = last;
  const { account_id: accountId, person } = run.row;
  try {
    const rewritten = await reader.query(accountId, contentWithoutPerson, contentId, person);
    if (rewritten === null) return true;
    const { json, digest, isDeflated } = rewritten;
    const content = isDeflated ? await packLongContent({ bytes: Buffer.from(json) }) : plainContent(json);
    run.progress.set(REWRITTEN, { contentId, result: { digest, content } } satisfies RewrittenContent);
    return true;
  } catch (error) {
    if (error instanceof ReadRejected && error.reason !== 'too-broad') return false;
    throw error;
  }
}

/** `person`: that of the erasure, as JSON. Null: the content was deleted. */
export const contentWithoutPerson = readQuery(
  'contentWithoutPerson',
  (
    tables: Tables,
    contentId: number,
    person: string,
  ): { json: string; digest: string; isDeflated: boolean } | null => {
    const stored = tables.messages.content(contentId);
    if (stored === null) return null;
    const json = withoutRecipient(unpackContent(stored), createScrubber(JSON.parse(person) as Person));
    return { json, digest: digestOf(stored), isDeflated: stored.encoding === 'deflate' };
  },
);

/** SHA-256 of the stored bytes, by which a change is noticed. */
function digestOf({ bytes }: ContentRow): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Clears the personal data of one step of an erasure, as tables declare it (store/data-policies). An eraser processes a
 * portion in a unit of work and is called again while there is more; it is idempotent.
 */
export interface Eraser {
  name: string;
  erase(tables: Tables, erasure: ErasureRun, portion: PortionLimit): EraseResult;
  /** Called outside units of work after `prepare`. Resolves with false when the eraser must be called again later. */
  prepare?(erasure: ErasureRun): Promise<boolean>;
}

/**
 * waiting: a worker is sending one of the messages; the eraser is called again later. prepare: the eraser's `prepare` must
 * run before it continues.
 */
export type EraseResult = 'more' | 'done' | 'waiting' | 'prepare';

interface PortionLimit {
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

/**
 * Begins a run at the start of every eraser: parses the person of the row and compiles the scrubber. `now`: epoch ms.
 */
export function createErasureRun(row: ErasureRow, now: number): ErasureRun {
  const person = JSON.parse(row.person) as Person;
  return { row, person, scrubber: createScrubber(person), progress: new Map(), now };
}

/** The position of an eraser, `start` at first. Sound: each eraser stores under its name what it reads. */
function positionOf<Position>({ progress }: ErasureRun, name: string, start: Position): Position {
  return (progress.get(name) as Position | undefined) ?? start;
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
  const isComplete = rows.length < portion.rows && (last === undefined || seqOf(last) === after);
  run.progress.set(
    name,
    isComplete ? { identifier: position.identifier + 1, after: 0 } : { ...position, after },
  );
  return 'more';
}
