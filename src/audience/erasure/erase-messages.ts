import { withoutPersonalFields } from '../../events/erased.ts';
import type { ErasureRow } from '../../store/contacts/contacts-erasure.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import { type EraseResult, type ErasureRun, type PortionLimit, positionOf } from './eraser.ts';
import { rewriteContent } from './rewrite-content.ts';
import type { Person } from './scrub.ts';

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
export function clearMessages(tables: Tables, run: ErasureRun, portion: PortionLimit): EraseResult {
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
