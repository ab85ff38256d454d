import { MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { EventFields } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { type InboundHeader, readInboundHeader } from '../mail/incoming/inbound-header.ts';
import type { Context } from '../store/context.ts';
import { ReadRejected } from '../store/database/failure.ts';
import type { ListedInbound, ParsedRow } from '../store/inbound/inbound-mails.ts';
import type { Tables } from '../store/tables.ts';
import type { Authentication, CheckedMail } from './authentication.ts';
import type { StoredContent } from './content.ts';
import type { ParsedInbound } from './parse-mail.ts';

/*
 * Parses received mail after its reception. The state is in the rows: mail that waits has the status `received`, and the unit of work
 * that stores what was found also records the event. A mail that the parser does not read is reported with its header only.
 */

/** What became of a mail on the parser thread. */
export type ParseOutcome = ParsedInbound | 'too-long' | 'failed' | 'later';

export interface WorkerDeps {
  recorder: Recorder;
  hostname: string;
  /** Parses a mail on a thread; `later`: too many wait, or it stops. */
  parse(raw: Buffer, accountId: string): Promise<ParseOutcome>;
  authenticate(raw: Buffer, mail: CheckedMail, accountId: string): Promise<Authentication>;
  /** The public address of an attachment. */
  attachmentUrl(mail: Pick<ListedInbound, 'account_id' | 'inbound_id'>, position: number): string;
}

/** Mail that waits because of a failure is tried again after this time. */
const RETRY_INTERVAL_MS = MINUTE;
const MIB = 1024 * 1024;
/** Mails that are parsed at the same time, in total and of an account: most of their time they wait for DNS. */
const MAX_MAILS = 64;
const MAX_MAILS_OF_ACCOUNT = 8;
/** Bytes of these mails, each of which is in memory several times. A mail that is larger than the share of its account is its only one. */
const MAX_BYTES = 140 * MIB;
const MAX_BYTES_OF_ACCOUNT = MAX_BYTES / 4;
/** Bytes of the header of a mail that the parser does not read. */
const MAX_HEADER_BYTES = 256 * 1024;
const MAX_EVENT_TEXT_BYTES = 64 * 1024;
const MAX_EVENT_ATTACHMENTS = 50;
/** More servers than a mail passes: RFC 5321 §6.3 recommends a limit of 100 for the rejection. */
const MANY_HOPS = 40;

/** An account with mails in progress, or one that waits after a failure. */
interface Work {
  mails: number;
  bytes: number;
  /** Of the mail that was begun last: its mails are begun in the order of their numbers. */
  lastSeq: number;
  /** When its mails may be begun again, monotonic ms: a mail that could not be parsed yet is tried again when none is in progress. */
  resumesAt: number;
}

/**
 * Accounts take turns, and each has a share of the mails in progress, so that a backlog of one, or name servers that do not answer
 * for it, delay no other. Starts nothing: `start` continues with what an earlier process left. `stop` waits for mails in progress.
 */
export function createInboundWorker(
  {
    tables,
    reader,
    writer,
    monotonic,
    log,
  }: Pick<Context, 'tables' | 'reader' | 'writer' | 'monotonic' | 'log'>,
  { recorder, hostname, parse, authenticate, attachmentUrl }: WorkerDeps,
) {
  const works = new Map<string, Work>();
  const running = new Set<Promise<void>>();
  let bytes = 0;
  let lastAccount = '';
  let isStopping = false;

  /** The next mail of the accounts in turn; null: there is none that its account may begin. */
  function nextMail(): ListedInbound | null {
    for (const start of [lastAccount, '']) {
      let after = start;
      for (;;) {
        const accountId = tables.inbound.nextUnparsed(after);
        if (accountId === null) break;
        const mail = nextOf(accountId);
        if (mail !== null) return mail;
        after = accountId;
      }
    }
    return null;
  }

  function nextOf(accountId: string): ListedInbound | null {
    const work = works.get(accountId);
    if (work === undefined) return tables.inbound.firstUnparsed(accountId, 0);
    if (work.mails >= MAX_MAILS_OF_ACCOUNT || isHeld(work)) return null;
    const mail = tables.inbound.firstUnparsed(accountId, work.lastSeq);
    return mail === null || work.bytes + mail.size > MAX_BYTES_OF_ACCOUNT ? null : mail;
  }

  const isHeld = ({ resumesAt }: Work) => resumesAt > 0;

  function fill(): void {
    if (isStopping) return;
    for (const [accountId, work] of works)
      if (work.mails === 0 && work.resumesAt <= monotonic.now()) works.delete(accountId);
    while (running.size < MAX_MAILS) {
      const mail = nextMail();
      // A large mail that is next waits until it fits: smaller ones do not overtake it.
      if (mail === null || (running.size > 0 && bytes + mail.size > MAX_BYTES)) return;
      begin(mail);
    }
  }

  function begin(mail: ListedInbound): void {
    const accountId = mail.account_id;
    lastAccount = accountId;
    const work = works.get(accountId) ?? { mails: 0, bytes: 0, lastSeq: 0, resumesAt: 0 };
    works.set(accountId, work);
    count(work, mail, 1);
    work.lastSeq = mail.seq;
    const task = parseMail(mail)
      .catch((error: unknown) => {
        log.error({ err: error, accountId }, 'inbound mail could not be parsed; trying again');
        return false;
      })
      .then((isDone) => {
        running.delete(task);
        count(work, mail, -1);
        if (!isDone) work.resumesAt = monotonic.now() + RETRY_INTERVAL_MS;
        if (work.mails === 0 && !isHeld(work)) works.delete(accountId);
        loop.wake();
      });
    running.add(task);
  }

  function count(work: Work, { size }: ListedInbound, change: 1 | -1): void {
    work.mails += change;
    work.bytes += change * size;
    bytes += change * size;
  }

  /** Resolves with false when it must be parsed later. */
  async function parseMail(mail: ListedInbound): Promise<boolean> {
    const accountId = mail.account_id;
    const source = await sourceOf(mail);
    if (source === 'later') return false;
    const raw = Buffer.from(source);
    const outcome = await parse(raw, accountId);
    if (outcome === 'later') return false;
    const isParsed = typeof outcome === 'object';
    const header = isParsed ? outcome : readInboundHeader(raw.subarray(0, MAX_HEADER_BYTES), hostname);
    const authentication =
      mail.authentication === null
        ? await authenticate(
            raw,
            {
              from: header.from,
              sender: mail.sender,
              helo: mail.helo,
              remoteAddress: mail.remote_address,
              keyNames: isParsed ? outcome.keyNames : null,
            },
            accountId,
          )
        : // Sound: only the reception writes it, from this type.
          (JSON.parse(mail.authentication) as Authentication);
    if (isStopping) return false;
    await writer.run((tx) => store(tx, mail, header, outcome, authentication), accountId);
    return true;
  }

  async function sourceOf({ account_id, source_seq }: ListedInbound): Promise<ArrayBuffer | 'later'> {
    try {
      return (await reader.table(account_id, 'inbound', 'source', source_seq)) ?? new ArrayBuffer(0);
    } catch (error) {
      if (error instanceof ReadRejected) return 'later';
      throw error;
    }
  }

  function store(
    tx: Tables,
    mail: ListedInbound,
    header: InboundHeader,
    outcome: Exclude<ParseOutcome, 'later'>,
    authentication: Authentication,
  ): void {
    const parsed = typeof outcome === 'object' ? outcome : null;
    const row: ParsedRow = {
      from_address: header.from,
      subject: header.subject,
      answers: answeredMessage(tx, mail.account_id, header.answered),
      // Programs must not answer the null sender (RFC 3834 §2), to which their answer would be a bounce.
      automatic: header.automatic ?? (mail.sender === '' ? 'generated' : null),
      is_loop: isLoop(tx, mail.account_id, header) ? 1 : 0,
      attachments: parsed?.attachments.length ?? 0,
      parse_error: typeof outcome === 'object' ? null : outcome,
      authentication: JSON.stringify(authentication),
      content: JSON.stringify(contentOf(header, parsed)),
    };
    // It was deleted meanwhile: nothing is reported.
    if (!tx.inbound.setParsed({ ...row, seq: mail.seq })) return;
    const route = tx.inboundRoutes.get(mail.account_id, mail.route_id);
    recorder.received(
      tx,
      mail.account_id,
      eventFields(mail, row, parsed, authentication),
      route?.webhook_id ?? null,
    );
  }

  function eventFields(
    mail: ListedInbound,
    row: ParsedRow,
    parsed: ParsedInbound | null,
    authentication: Authentication,
  ): EventFields['email_received'] {
    const text = shortText(parsed?.text ?? '');
    return {
      inboundId: mail.inbound_id,
      routeId: mail.route_id,
      ...(row.from_address === '' ? {} : { contactIdentifier: emailIdentifier(row.from_address) }),
      from: row.from_address,
      to: [mail.recipient],
      sender: mail.sender,
      subject: row.subject,
      text,
      textCut: text.length < (parsed?.text.length ?? 0) || parsed?.isTextCut === true,
      attachments: (parsed?.attachments ?? [])
        .slice(0, MAX_EVENT_ATTACHMENTS)
        .map(({ name, type, size }, position) => ({
          name,
          type,
          size,
          url: attachmentUrl(mail, position),
        })),
      size: mail.size,
      authentication,
      inReplyToMessageId: row.answers,
      automatic: row.automatic,
      loop: row.is_loop === 1,
      parseError: row.parse_error,
    };
  }

  const loop = createLoop({ name: 'inbound-mail', run: fill, intervalMs: RETRY_INTERVAL_MS, log });
  return {
    start: loop.start,
    /** Mail was received. */
    wake: loop.wake,
    stop: async (): Promise<void> => {
      isStopping = true;
      await loop.stop();
      await Promise.all(running);
    },
  };
}

/** The first message of the account that the ids name: the id of a message is the local part of its Message-ID. */
function answeredMessage(tx: Tables, accountId: string, ids: readonly string[]): string | null {
  for (const id of ids) {
    const messageId = id.slice(0, Math.max(id.lastIndexOf('@'), 0));
    if (messageId.startsWith('msg_') && tx.messages.byId(messageId)?.account_id === accountId)
      return messageId;
  }
  return null;
}

/** Whether the mail passed this server before, or is one of the messages of the account itself. */
function isLoop(tx: Tables, accountId: string, { messageId, hops, hasPassedHere }: InboundHeader): boolean {
  return hasPassedHere || hops > MANY_HOPS || answeredMessage(tx, accountId, [messageId]) !== null;
}

function contentOf({ headers }: InboundHeader, parsed: ParsedInbound | null): StoredContent {
  return {
    headers,
    text: parsed?.text ?? '',
    isTextCut: parsed?.isTextCut ?? false,
    html: parsed?.html ?? null,
    isHtmlCut: parsed?.isHtmlCut ?? false,
    replyText: parsed?.replyText ?? '',
    attachments: parsed?.attachments ?? [],
  };
}

/** At most 64 KB in UTF-8, without half a character at its end. */
function shortText(text: string): string {
  if (text.length * 3 <= MAX_EVENT_TEXT_BYTES) return text;
  const bytes = Buffer.from(text.slice(0, MAX_EVENT_TEXT_BYTES));
  if (bytes.length <= MAX_EVENT_TEXT_BYTES) return text.slice(0, MAX_EVENT_TEXT_BYTES).toWellFormed();
  return bytes
    .subarray(0, MAX_EVENT_TEXT_BYTES)
    .toString()
    .replace(/\ufffd{1,3}$/, '');
}
