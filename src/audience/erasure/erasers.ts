import type { Recorder } from '../../events/record.ts';
import { packContent, unpackContent } from '../../mail/stored-content.ts';
import type { ErasureRow, StoredText } from '../../store/contacts/contacts-erasure.ts';
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
 * What has to be cleared of a person, part by part. Whoever adds a table that may hold somebody's address,
 * number or name adds its eraser to the list. An eraser does a portion in a unit of work and is asked again as
 * long as there is more; done twice it does no harm.
 */
export interface Eraser {
  name: string;
  step(tables: Tables, erasure: Erasing, portion: PortionSize): Step;
}

/** waiting: something of it is in a worker's hands at this moment; it is asked again later. */
export type Step = 'more' | 'done' | 'waiting';

export interface PortionSize {
  /** Rows to look at, at most. */
  rows: number;
  /** Whether the time of the portion is over; asked after each row. */
  isOver(): boolean;
}

export interface Erasing {
  row: ErasureRow;
  person: Person;
  scrubber: Scrubber;
  /** For how far an eraser has come, by its name: kept in memory only, so a restart begins anew. */
  progress: Map<string, unknown>;
  now: number;
}

export function erasingOf(row: ErasureRow, now: number): Erasing {
  const person = JSON.parse(row.person) as Person;
  return { row, person, scrubber: createScrubber(person), progress: new Map(), now };
}

/** How far an eraser has come, `start` at first. Sound: under its name each stores what it reads. */
function placeOf<Place>({ progress }: Erasing, name: string, start: Place): Place {
  return (progress.get(name) as Place | undefined) ?? start;
}

/** In this order: mail that waits is cancelled before the traces of mail are cleared. */
export function createErasers(settings: { recorder: Recorder; answersKeptMs: number }): Eraser[] {
  return [
    cancelMail(settings.recorder),
    clearMessages,
    clearEvents,
    clearAnswers(settings.answersKeptMs),
    clearSuppressions,
    clearKeptMail,
  ];
}

/** Where a walk through the rows of each of the person's identifiers is. */
interface PersonPlace {
  /** Index of the identifier. */
  identifier: number;
  after: number;
}

const PERSON_START: PersonPlace = { identifier: 0, after: 0 };

/** Handles rows of one identifier after the other, in the order of their numbers. */
function walkPerson<Row>(
  erasing: Erasing,
  portion: PortionSize,
  walk: {
    name: string;
    read(identifier: string, range: { after: number; limit: number }): Row[];
    seqOf(row: Row): number;
    handle(row: Row, identifier: string): void;
  },
): Step {
  const { name, read, seqOf, handle } = walk;
  const place = placeOf(erasing, name, PERSON_START);
  const identifier = erasing.person.identifiers[place.identifier];
  if (identifier === undefined) return 'done';
  const rows = read(identifier, { after: place.after, limit: portion.rows });
  let { after } = place;
  for (const row of rows) {
    handle(row, identifier);
    after = seqOf(row);
    if (portion.isOver()) break;
  }
  const last = rows.at(-1);
  const isThrough = rows.length < portion.rows && (last === undefined || seqOf(last) === after);
  erasing.progress.set(
    name,
    isThrough ? { identifier: place.identifier + 1, after: 0 } : { ...place, after },
  );
  return 'more';
}

function cancelMail(recorder: Recorder): Eraser {
  const name = 'queued mail';
  return {
    name,
    step: (tables, erasing, portion) => {
      const { account_id: accountId, before_message: before } = erasing.row;
      return walkPerson<number>(erasing, portion, {
        name,
        read: (identifier, range) =>
          tables.erasures.messageSeqsOf(accountId, identifier, { ...range, before }),
        seqOf: (seq) => seq,
        handle: (seq) => {
          const queued = tables.queue.get(seq);
          if (queued === null || queued.lease !== null) return;
          const message = tables.messages.bySeq(seq);
          if (message !== null)
            recorder.message(tables, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
        },
      });
    },
  };
}

/** Where the walk through the messages that share a content is. */
interface CopiesPlace {
  /** The person's message. */
  messageSeq: number;
  afterSeq: number;
  /** A copy for somebody else is still to be sent. */
  isNeeded: boolean;
}

const COPIES = 'copies';
const LINKS = 'links';

/** Messages in their order, with their contents, attempts and events; one that is being sent stops it. */
const clearMessages: Eraser = {
  name: 'messages',
  step: (tables, erasing, portion) => {
    const messages = messagesFrom(tables, erasing.row, erasing.person, portion.rows);
    for (const message of messages) {
      if (tables.queue.get(message.seq) !== null) return 'waiting';
      if (!clearMessage(tables, message, erasing, portion)) return 'more';
      tables.erasures.setAt(erasing.row.seq, message.seq);
      if (portion.isOver()) return 'more';
    }
    return messages.length < portion.rows ? 'done' : 'more';
  },
};

function messagesFrom(tables: Tables, row: ErasureRow, person: Person, limit: number): MessageRow[] {
  const after = tables.erasures.get(row.seq)?.at_message ?? 0;
  return person.identifiers
    .flatMap((identifier) =>
      tables.erasures.messagesOf(row.account_id, identifier, { after, before: row.before_message, limit }),
    )
    .toSorted((one, two) => one.seq - two.seq)
    .slice(0, limit);
}

/** False: it is not done, as its content has more copies than a portion may look at. */
function clearMessage(tables: Tables, message: MessageRow, erasing: Erasing, portion: PortionSize): boolean {
  const { row, scrubber } = erasing;
  const { erasures } = tables;
  const isNeeded = clearSubjects(tables, message, erasing, portion);
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
  if (message.campaign_id !== null) clearLinks(tables, message.campaign_id, erasing);
  erasures.clearMessage(message.seq);
  return true;
}

/**
 * Takes the person out of the subjects of all copies of the message's content, a portion of them at a time. Returns
 * whether the content is still needed, for somebody else; null: there are more copies.
 */
function clearSubjects(
  { erasures }: Tables,
  message: MessageRow,
  erasing: Erasing,
  portion: PortionSize,
): boolean | null {
  const start = { messageSeq: message.seq, afterSeq: 0, isNeeded: false };
  const last = placeOf<CopiesPlace>(erasing, COPIES, start);
  const place = last.messageSeq === message.seq ? { ...last } : start;
  const limit = Math.max(portion.rows, LEAST_COPIES);
  const copies = erasures.copiesAfter(message.content_id, place.afterSeq, limit);
  for (const { seq, recipient_hash: hash, final_at: finalAt, subject } of copies) {
    if (hash !== message.recipient_hash && finalAt === null) place.isNeeded = true;
    if (erasing.scrubber.names(subject)) erasures.setSubject(seq, erasing.scrubber.text(subject));
    place.afterSeq = seq;
  }
  erasing.progress.set(COPIES, place);
  return copies.length < limit ? place.isNeeded : null;
}

/** Subjects are short: of so many copies a portion can always look. */
const LEAST_COPIES = 50;

/** A campaign's clicked links name the person or not, whichever of its messages led there. */
function clearLinks({ erasures }: Tables, campaignId: string, erasing: Erasing): void {
  const cleared = placeOf(erasing, LINKS, new Set<string>());
  if (cleared.has(campaignId)) return;
  for (const { rowid, url } of erasures.linksOf(campaignId))
    if (erasing.scrubber.names(url)) erasures.removeLink(rowid);
  erasing.progress.set(LINKS, cleared.add(campaignId));
}

/** Refused sends and opt-outs: events to which no message leads. */
const clearEvents: Eraser = {
  name: 'events',
  step: (tables, erasing, portion) => {
    const { account_id: accountId, before_event: before } = erasing.row;
    return walkPerson<StoredText>(erasing, portion, {
      name: 'events',
      read: (identifier, range) => tables.erasures.eventsAbout(accountId, identifier, { ...range, before }),
      seqOf: ({ seq }) => seq,
      handle: ({ seq, text }, identifier) => {
        const fields: Record<string, unknown> = JSON.parse(
          withoutPersonalFields(erasing.scrubber.json(text)),
        );
        if ('recipient' in fields) fields['recipient'] = identifier;
        if ('subject' in fields) fields['subject'] = '';
        tables.erasures.setEvent(seq, JSON.stringify(fields));
        tables.erasures.forgetWebhookAnswers(accountId, seq);
      },
    });
  },
};

/** Where the walk through the stored answers is; null: there is nothing to walk. */
type AnswersPlace = { endpoint: string; key: string } | null;

/** Answers kept for repeated requests name recipients. */
function clearAnswers(keptMs: number): Eraser {
  const name = 'stored answers';
  return {
    name,
    step: (tables, erasing, { rows, isOver }) => {
      const { row, scrubber, progress } = erasing;
      const after = progress.has(name)
        ? placeOf<AnswersPlace>(erasing, name, null)
        : firstAnswers(tables, erasing, keptMs);
      if (after === null) return 'done';
      const answers = tables.erasures.answersAfter(row.account_id, after, rows);
      let place = after;
      for (const answer of answers) {
        if (scrubber.names(answer.body))
          tables.erasures.setAnswer({ ...answer, body: scrubber.json(answer.body) });
        place = { endpoint: answer.endpoint, key: answer.key };
        if (isOver()) break;
      }
      progress.set(name, place);
      return answers.length === 0 ? 'done' : 'more';
    },
  };
}

/** The beginning, if an answer can still be kept that names the person. */
function firstAnswers(tables: Tables, { row, person, now }: Erasing, keptMs: number): AnswersPlace {
  const newest = person.identifiers.map((identifier) =>
    tables.erasures.newestMessageAt(row.account_id, identifier, row.before_message),
  );
  return newest.every((at) => at === null || at < now - keptMs) ? null : { endpoint: '', key: '' };
}

/** The suppression holds by its identifier. */
const clearSuppressions: Eraser = {
  name: 'suppressions',
  step: (tables, { row, person }) => {
    for (const identifier of person.identifiers)
      tables.erasures.forgetSuppressedAddress(row.account_id, identifier);
    return 'done';
  },
};

/**
 * What came back by mail: all about a message of the account's, of the rest what is to or from the person. No
 * account reaches mail that another one's message brought, nor by a name, which anybody may have.
 */
const clearKeptMail: Eraser = {
  name: 'kept mail',
  step: (tables, erasing, { rows, isOver }) => {
    const { row, person, scrubber, progress } = erasing;
    const reached = createScrubber({ ...person, fullName: null });
    const mails = tables.erasures.keptMailAfter(
      placeOf(erasing, 'kept mail', 0),
      Math.min(rows, KEPT_AT_ONCE),
    );
    for (const { seq, sender, raw, account_id } of mails) {
      progress.set('kept mail', seq);
      if (account_id !== null && account_id !== row.account_id) continue;
      const mail = raw.toString('utf8');
      const isTheirs =
        account_id === null
          ? reached.names(sender) || reached.names(headerOf(mail))
          : scrubber.names(sender) || scrubber.names(mail);
      if (isTheirs) tables.erasures.removeKeptMail(seq);
      if (isOver()) break;
    }
    return mails.length === 0 ? 'done' : 'more';
  },
};

/** Mails read into memory at a time. */
const KEPT_AT_ONCE = 20;

function headerOf(mail: string): string {
  return /^.*?(?:\r?\n){2}/s.exec(mail)?.[0] ?? mail;
}
