import { createHash } from 'node:crypto';
import { inSlices } from '../../core/concurrency/slices.ts';
import { receivedAfterErasure, withoutPersonalFields } from '../../events/erased.ts';
import type { Recorder } from '../../events/record.ts';
import type { MessageContent } from '../../mail/content.ts';
import {
  packContent,
  packLongContent,
  readContent,
  writeDocumentInSteps,
} from '../../mail/stored-content.ts';
import type { ErasableMail, ErasableResponse, ErasureRow } from '../../store/contacts/contacts-erasure.ts';
import { DECLARED_ERASURE_STEPS } from '../../store/data-policies.ts';
import type { ErasureStep } from '../../store/data-policy.ts';
import { ReadRejected } from '../../store/database/failure.ts';
import type { Portions } from '../../store/maintenance/portions.ts';
import type { ContentRow, MessageRow, NewContent } from '../../store/messages/messages.ts';
import { type Reader, readQuery } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { createScrubber, type Person, type Scrubber, withoutRecipient } from './scrub.ts';

/**
 * Clears the personal data of one step of an erasure, as tables declare it (store/data-policies), in portions. Resolves
 * with false when the rest must be cleared later: a worker is sending one of the messages, the reader threads are busy,
 * or the process stops. It is idempotent and begins again when it is repeated.
 */
export type Eraser = (run: ErasureRun) => Promise<boolean>;

export interface ErasureRun {
  row: ErasureRow;
  person: Person;
  scrubber: Scrubber;
  portions: Pick<Portions, 'run'>;
  now: number;
}

/** Parses the person of the row and compiles the scrubber. `now`: epoch ms. */
export function createErasureRun(row: ErasureRow, portions: ErasureRun['portions'], now: number): ErasureRun {
  // Sound: only `audience/erasure` writes the column.
  const person = JSON.parse(row.person) as Person;
  return { row, person, scrubber: createScrubber(person), portions, now };
}

/** The erasers of all steps that tables declare, in the order of the steps. `responsesKeptMs`: how long stored responses exist. */
export function createErasers(reader: Reader, recorder: Recorder, responsesKeptMs: number): Eraser[] {
  const steps: Record<Exclude<ErasureStep, 'contact'>, Eraser> = {
    'queued mail': (run) => cancelMail(run, recorder),
    messages: (run) => clearMessages(run, reader),
    events: clearEvents,
    'stored responses': (run) => clearResponses(run, responsesKeptMs),
    suppressions: clearSuppressions,
    'kept mail': clearKeptMail,
    'inbound mail': clearInboundMail,
  };
  return DECLARED_ERASURE_STEPS.flatMap((name) => (name === 'contact' ? [] : [steps[name]]));
}

/** Handles rows in their order. `read` returns rows after the last one, null at the beginning; none: all are handled. */
function eachRow<Row>(
  { portions }: ErasureRun,
  read: (tx: Tables, last: Row | null, rows: number) => Row[],
  handle: (tx: Tables, row: Row) => void,
): Promise<boolean> {
  let last: Row | null = null;
  return portions.run((tx, rows, isOver) => {
    const found = read(tx, last, rows);
    for (const row of found) {
      handle(tx, row);
      last = row;
      if (isOver()) break;
    }
    return { rows, isDone: found.length === 0 };
  });
}

/** Handles the rows of one identifier of the person after the other, in the order of their numbers. */
async function eachRowOfPerson<Row extends { seq: number }>(
  run: ErasureRun,
  read: (tx: Tables, identifier: string, range: { after: number; limit: number }) => Row[],
  handle: (tx: Tables, row: Row, identifier: string) => void,
): Promise<boolean> {
  for (const identifier of run.person.identifiers) {
    const completed = await eachRow<Row>(
      run,
      (tx, last, limit) => read(tx, identifier, { after: last?.seq ?? 0, limit }),
      (tx, row) => handle(tx, row, identifier),
    );
    if (!completed) return false;
  }
  return true;
}

function cancelMail(run: ErasureRun, recorder: Recorder): Promise<boolean> {
  const { account_id: accountId, before_message: before } = run.row;
  return eachRowOfPerson(
    run,
    ({ erasures }, identifier, range) =>
      erasures.messageSeqsOf(accountId, identifier, { ...range, before }).map((seq) => ({ seq })),
    (tx, { seq }) => {
      const queued = tx.queue.get(seq);
      if (queued === null || queued.lease !== null) return;
      const message = tx.messages.bySeq(seq);
      if (message !== null)
        recorder.message(tx, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
    },
  );
}

/** Clears events without a message: refused sends and opt-outs. */
function clearEvents(run: ErasureRun): Promise<boolean> {
  const { account_id: accountId, before_event: before } = run.row;
  return eachRowOfPerson(
    run,
    ({ erasures }, identifier, range) => erasures.eventsAbout(accountId, identifier, { ...range, before }),
    ({ erasures }, { seq, text }, identifier) => {
      const fields: Record<string, unknown> = JSON.parse(withoutPersonalFields(run.scrubber.json(text)));
      if ('recipient' in fields) fields['recipient'] = identifier;
      if ('subject' in fields) fields['subject'] = '';
      delete fields['tags'];
      delete fields['metadata'];
      erasures.setEvent(seq, JSON.stringify(receivedAfterErasure(fields, identifier) ?? fields));
      erasures.clearWebhookResponses(accountId, seq);
    },
  );
}

/** Clears stored responses to repeated requests, which contain recipients. */
async function clearResponses(run: ErasureRun, keptMs: number): Promise<boolean> {
  const { row, person, scrubber, portions, now } = run;
  /** Whether there are responses that may contain the person and have not expired. */
  let hasResponses = false;
  const isRead = await portions.run(({ erasures }, rows) => {
    hasResponses = person.identifiers.some((identifier) => {
      const newest = erasures.newestMessage(row.account_id, identifier, row.before_message);
      return newest !== null && newest.createdAt >= now - keptMs;
    });
    return { rows, isDone: true };
  });
  if (!isRead || !hasResponses) return isRead;
  return eachRow(
    run,
    ({ erasures }, last: ErasableResponse | null, rows) =>
      erasures.responsesAfter(row.account_id, last ?? { endpoint: '', key: '' }, rows),
    ({ erasures }, response) => {
      if (scrubber.matches(response.body))
        erasures.setResponse({ ...response, body: scrubber.json(response.body) });
    },
  );
}

/** Removes addresses from suppressions, which apply to the identifier. */
function clearSuppressions({ row, person, portions }: ErasureRun): Promise<boolean> {
  return portions.run(({ erasures }, rows) => {
    for (const identifier of person.identifiers) erasures.clearSuppressedAddress(row.account_id, identifier);
    return { rows, isDone: true };
  });
}

/**
 * Removes kept mail about messages of the account that contains the person, and mail about no message that is to or from
 * the person. Mail about another account's message stays, and a name does not match mail about no message, because other
 * people may have the same name.
 */
function clearKeptMail(run: ErasureRun): Promise<boolean> {
  const { row, person, scrubber } = run;
  const withoutName = createScrubber({ ...person, fullName: null });
  return eachRow(
    run,
    ({ erasures }, last: ErasableMail | null, rows) =>
      erasures.keptMailAfter(last?.seq ?? 0, Math.min(rows, KEPT_MAIL_BATCH_SIZE)),
    ({ erasures }, { seq, sender, raw, account_id }) => {
      if (account_id !== null && account_id !== row.account_id) return;
      const mail = raw.toString('utf8');
      const isPersonal =
        account_id === null
          ? withoutName.matches(sender) || withoutName.matches(headerOf(mail))
          : scrubber.matches(sender) || scrubber.matches(mail);
      if (isPersonal) erasures.removeKeptMail(seq);
    },
  );
}

/**
 * Removes received mail from the person, and then its bytes: the erasure overwrites unused space afterwards. Mail that waits for the parser is found by its envelope only: the erasure continues when
 * what was received before it is parsed.
 */
function clearInboundMail({ row, person, portions }: ErasureRun): Promise<boolean> {
  const { account_id: accountId, created_at: begunAt } = row;
  let isParsed = true;
  /** Of removed mails. After a restart those that are left are deleted without an erasure (inbound/inbound). */
  const sources = new Set<number>();
  return portions
    .run(({ inbound }, rows) => {
      const waiting = inbound.firstUnparsed(accountId, 0);
      isParsed = waiting === null || waiting.received_at > begunAt;
      const found = person.addresses
        .flatMap((address) => inbound.fromAddress(accountId, address.toLowerCase(), rows))
        .slice(0, rows);
      for (const { seq, source_seq } of found) {
        inbound.remove(seq);
        sources.add(source_seq);
      }
      if (found.length > 0) return { rows, isDone: false };
      const [source] = sources;
      if (source === undefined) return { rows, isDone: true };
      if (inbound.removeParts(source, rows) === 0) sources.delete(source);
      return { rows, isDone: false };
    })
    .then((completed) => completed && isParsed);
}

/** Mails read into memory at a time. */
const KEPT_MAIL_BATCH_SIZE = 20;

function headerOf(mail: string): string {
  return /^.*?(?:\r?\n){2}/s.exec(mail)?.[0] ?? mail;
}

/** State of `clearMessages`. */
interface MessagesProgress {
  /** Position in the messages that share the content of the person's message `messageSeq`. */
  copies: { messageSeq: number; afterSeq: number; isNeeded: boolean };
  /** The content that was rewritten ahead; null: none. */
  rewritten: { contentId: number; digest: string; content: NewContent } | null;
  /** Campaigns whose clicked links are cleared. */
  campaigns: Set<string>;
}

/** Clears messages in their order, with contents, attempts and events; stops at one that is being sent. */
async function clearMessages(run: ErasureRun, reader: Reader): Promise<boolean> {
  const progress: MessagesProgress = {
    copies: { messageSeq: 0, afterSeq: 0, isNeeded: false },
    rewritten: null,
    campaigns: new Set(),
  };
  for (;;) {
    /** Why the portions ended before all messages were cleared. */
    const end: { isQueued: boolean; contentId: number | null } = { isQueued: false, contentId: null };
    const completed = await run.portions.run((tx, rows, isOver) => {
      const messages = messagesFrom(tx, run, rows);
      for (const message of messages) {
        end.isQueued = tx.queue.get(message.seq) !== null;
        if (end.isQueued) return { rows, isDone: true };
        const isNeeded = clearSubjects(tx, message, run, progress, rows);
        if (isNeeded === null) return { rows, isDone: false };
        if (!isNeeded) tx.erasures.removeContent(message.content_id);
        else if (!rewriteContent(tx, message.content_id, run, progress)) {
          end.contentId = message.content_id;
          return { rows, isDone: true };
        }
        clearMessage(tx, message, run, progress);
        if (isOver()) return { rows, isDone: false };
      }
      return { rows, isDone: messages.length < rows };
    });
    if (!completed || end.isQueued) return false;
    if (end.contentId === null) return true;
    if (!(await rewriteAhead(reader, run, end.contentId, progress))) return false;
  }
}

function messagesFrom(tx: Tables, { row, person }: ErasureRun, limit: number): MessageRow[] {
  const after = tx.erasures.get(row.seq)?.at_message ?? 0;
  return person.identifiers
    .flatMap((identifier) =>
      tx.erasures.messagesOf(row.account_id, identifier, { after, before: row.before_message, limit }),
    )
    .toSorted((one, two) => one.seq - two.seq)
    .slice(0, limit);
}

/**
 * Removes the person from the subjects of all copies of the message's content, a portion of them at a time. Returns
 * whether the content is still needed for another recipient; null: there are more copies.
 */
function clearSubjects(
  { erasures }: Tables,
  { seq: messageSeq, content_id, recipient_hash }: MessageRow,
  { scrubber }: ErasureRun,
  progress: MessagesProgress,
  rows: number,
): boolean | null {
  if (progress.copies.messageSeq !== messageSeq)
    progress.copies = { messageSeq, afterSeq: 0, isNeeded: false };
  const { copies } = progress;
  const limit = Math.max(rows, MIN_COPIES);
  const found = erasures.copiesAfter(content_id, copies.afterSeq, limit);
  for (const { seq, recipient_hash: hash, final_at: finalAt, subject, labels } of found) {
    if (hash !== recipient_hash && finalAt === null) copies.isNeeded = true;
    if (scrubber.matches(subject)) erasures.setSubject(seq, scrubber.text(subject));
    if (labels !== null && scrubber.matches(labels)) erasures.clearLabels(seq);
    copies.afterSeq = seq;
  }
  return found.length < limit ? copies.isNeeded : null;
}

/** Copies that a portion always reads: subjects are short. */
const MIN_COPIES = 50;

/** Clears what belongs to the message only, and the clicked links of its campaign that contain the person's data. */
function clearMessage(
  { erasures, messages }: Tables,
  { seq, campaign_id }: MessageRow,
  { row, scrubber }: ErasureRun,
  { campaigns }: MessagesProgress,
): void {
  for (const attempt of messages.attemptsOf(seq))
    erasures.setReport({ ...attempt, report: scrubber.json(attempt.report) });
  for (const event of erasures.eventsOf(seq)) {
    erasures.setEvent(event.seq, withoutPersonalFields(scrubber.json(event.text)));
    erasures.clearWebhookResponses(row.account_id, event.seq);
  }
  if (campaign_id !== null && !campaigns.has(campaign_id)) {
    for (const { rowid, url } of erasures.linksOf(campaign_id))
      if (scrubber.matches(url)) erasures.removeLink(rowid);
    campaigns.add(campaign_id);
  }
  erasures.clearMessage(seq);
  erasures.setAt(row.seq, seq);
}

/** Bytes of a content that is rewritten in a unit of work. */
const MAX_INLINE_BYTES = 32 * 1024;

/**
 * Removes the person from a content that is still to be sent to others, in a unit of work. Rewriting a content of several
 * MB takes hundreds of milliseconds: a long one is rewritten on a reader thread and compressed in libuv's pool, and the
 * unit of work stores the result if the content has not changed in the meantime. Returns false when nothing was done,
 * because `rewriteAhead` must rewrite the content first.
 */
function rewriteContent(
  { messages, erasures }: Tables,
  contentId: number,
  { scrubber }: ErasureRun,
  { rewritten }: MessagesProgress,
): boolean {
  const stored = messages.content(contentId);
  if (stored === null) return true;
  if (stored.size <= MAX_INLINE_BYTES) {
    erasures.setContent(contentId, packContent(JSON.stringify(withoutPerson(stored, scrubber))));
    return true;
  }
  if (rewritten?.contentId !== contentId || rewritten.digest !== digestOf(stored)) return false;
  erasures.setContent(contentId, rewritten.content);
  return true;
}

/** Rewrites the content that `rewriteContent` requires. Resolves with false when the reader threads are busy or closing. */
async function rewriteAhead(
  reader: Reader,
  { row }: ErasureRun,
  contentId: number,
  progress: MessagesProgress,
): Promise<boolean> {
  try {
    const found = await reader.query(row.account_id, contentWithoutPerson, contentId, row.person);
    if (found === null) return true;
    const { content: rest, digest, isDeflated } = found;
    const document = await inSlices(writeDocumentInSteps(rest), row.account_id);
    const content = await packLongContent({ document, isDeflated });
    progress.rewritten = { contentId, digest, content };
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
  ): { content: MessageContent; digest: string; isDeflated: boolean } | null => {
    const stored = tables.messages.content(contentId);
    if (stored === null) return null;
    const content = withoutPerson(stored, createScrubber(JSON.parse(person) as Person));
    return { content, digest: digestOf(stored), isDeflated: stored.encoding === 'deflate' };
  },
);

function withoutPerson(stored: ContentRow, scrubber: Scrubber): MessageContent {
  // Sound: only `sending` writes contents of several recipients, in this form.
  return withoutRecipient(readContent(stored) as MessageContent, scrubber);
}

/** SHA-256 of the stored bytes, by which a change is noticed. */
function digestOf({ bytes }: ContentRow): string {
  return createHash('sha256').update(bytes).digest('hex');
}
