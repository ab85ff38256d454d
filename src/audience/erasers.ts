import type { Recorder } from '../events/record.ts';
import { packContent, unpackContent } from '../mail/stored-content.ts';
import type { ErasureRow } from '../store/contacts-erasure.ts';
import type { MessageRow } from '../store/messages.ts';
import type { Tables } from '../store/tables.ts';
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
  step(tables: Tables, erasure: Erasing): Step;
}

/** waiting: something of it is in a worker's hands at this moment; it is asked again later. */
export type Step = 'more' | 'done' | 'waiting';

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

const MESSAGES_AT_ONCE = 50;
const ROWS_AT_ONCE = 500;
const KEPT_AT_ONCE = 20;

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

function cancelMail(recorder: Recorder): Eraser {
  return {
    name: 'queued mail',
    step: (tables, { row, person }) => {
      const waiting = person.identifiers.flatMap((identifier) =>
        tables.erasures.queuedTo(row.account_id, identifier, row.before_message, ROWS_AT_ONCE),
      );
      for (const message of waiting)
        recorder.message(tables, message, 'email_failed', { fields: { reason: 'cancelled' } });
      return waiting.length === 0 ? 'done' : 'more';
    },
  };
}

/** Messages in their order, with their contents, attempts and events; one that is being sent stops it. */
const clearMessages: Eraser = {
  name: 'messages',
  step: (tables, erasing) => {
    const messages = messagesFrom(tables, erasing.row, erasing.person, MESSAGES_AT_ONCE);
    for (const message of messages) {
      if (tables.queue.get(message.seq) !== null) return 'waiting';
      clearMessage(tables, message, erasing);
      tables.erasures.setAt(erasing.row.seq, message.seq);
    }
    return messages.length < MESSAGES_AT_ONCE ? 'done' : 'more';
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

function clearMessage(tables: Tables, message: MessageRow, { row, scrubber }: Erasing): void {
  const { erasures } = tables;
  if (erasures.contentIsNeeded(message.content_id, message.recipient_hash)) {
    const content = tables.messages.content(message.content_id);
    if (content !== null) {
      const rewritten = packContent(withoutRecipient(unpackContent(content), scrubber));
      erasures.setContent(message.content_id, rewritten);
    }
  } else erasures.removeContent(message.content_id);
  for (const { seq, text } of erasures.subjectsOf(message.content_id))
    if (scrubber.names(text)) erasures.setSubject(seq, scrubber.text(text));
  for (const attempt of tables.messages.attemptsOf(message.seq))
    erasures.setReport({ ...attempt, report: scrubber.json(attempt.report) });
  for (const event of erasures.eventsOf(message.seq)) {
    erasures.setEvent(event.seq, withoutPersonalFields(scrubber.json(event.text)));
    erasures.forgetWebhookAnswers(row.account_id, event.seq);
  }
  if (message.campaign_id !== null) {
    for (const { rowid, url } of erasures.linksOf(message.campaign_id))
      if (scrubber.names(url)) erasures.removeLink(rowid);
  }
  erasures.clearMessage(message.seq);
}

/** Refused sends and opt-outs: events to which no message leads. */
const clearEvents: Eraser = {
  name: 'events',
  step: (tables, { row, person, scrubber }) => {
    for (const identifier of person.identifiers) {
      for (const { seq, text } of tables.erasures.eventsAbout(row.account_id, identifier, row.before_event)) {
        const fields: Record<string, unknown> = JSON.parse(withoutPersonalFields(scrubber.json(text)));
        if ('recipient' in fields) fields['recipient'] = identifier;
        if ('subject' in fields) fields['subject'] = '';
        tables.erasures.setEvent(seq, JSON.stringify(fields));
        tables.erasures.forgetWebhookAnswers(row.account_id, seq);
      }
    }
    return 'done';
  },
};

/** Answers kept for repeated requests name recipients. */
function clearAnswers(keptMs: number): Eraser {
  const name = 'stored answers';
  return {
    name,
    step: (tables, { row, person, scrubber, progress, now }) => {
      const newest = person.identifiers.map((identifier) =>
        tables.erasures.newestMessageAt(row.account_id, identifier, row.before_message),
      );
      if (newest.every((at) => at === null || at < now - keptMs)) return 'done';
      const after = (progress.get(name) as { endpoint: string; key: string } | undefined) ?? {
        endpoint: '',
        key: '',
      };
      const answers = tables.erasures.answersAfter(row.account_id, after, ROWS_AT_ONCE);
      for (const answer of answers) {
        if (scrubber.names(answer.body))
          tables.erasures.setAnswer({ ...answer, body: scrubber.json(answer.body) });
      }
      const last = answers.at(-1);
      if (last === undefined || answers.length < ROWS_AT_ONCE) return 'done';
      progress.set(name, { endpoint: last.endpoint, key: last.key });
      return 'more';
    },
  };
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
  step: (tables, { row, person, scrubber, progress }) => {
    const reached = createScrubber({ ...person, fullName: null });
    const after = (progress.get('kept mail') as number | undefined) ?? 0;
    const mails = tables.erasures.keptMailAfter(after, KEPT_AT_ONCE);
    for (const { seq, sender, raw, account_id } of mails) {
      if (account_id !== null && account_id !== row.account_id) continue;
      const mail = raw.toString('utf8');
      const isTheirs =
        account_id === null
          ? reached.names(sender) || reached.names(headerOf(mail))
          : scrubber.names(sender) || scrubber.names(mail);
      if (isTheirs) tables.erasures.removeKeptMail(seq);
    }
    const last = mails.at(-1);
    if (last === undefined || mails.length < KEPT_AT_ONCE) return 'done';
    progress.set('kept mail', last.seq);
    return 'more';
  },
};

function headerOf(mail: string): string {
  return /^.*?(?:\r?\n){2}/s.exec(mail)?.[0] ?? mail;
}
