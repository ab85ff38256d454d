import { withoutPersonalFields } from '../../events/erased.ts';
import type { Recorder } from '../../events/record.ts';
import type { StoredText } from '../../store/contacts/contacts-erasure.ts';
import { DECLARED_ERASURE_STEPS } from '../../store/data-policies.ts';
import type { ErasureStep } from '../../store/data-policy.ts';
import type { Reader } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { clearMessages } from './erase-messages.ts';
import {
  type EraseResult,
  type Eraser,
  type ErasureRun,
  type PortionLimit,
  positionOf,
  walkPerson,
} from './eraser.ts';
import { prepareContent } from './rewrite-content.ts';
import { createScrubber } from './scrub.ts';

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
