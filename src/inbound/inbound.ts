import type { AccountLimits } from '../accounts/limits.ts';
import { DAY, HOUR, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Recorder } from '../events/record.ts';
import { readInboundHeader } from '../mail/incoming/inbound-header.ts';
import { signatureKeyNames, type VerifiedSignatures } from '../mail/incoming/verify-authentication.ts';
import type { Tokens } from '../mail/tokens.ts';
import type { Context } from '../store/context.ts';
import type { ListedInbound } from '../store/inbound/inbound-mails.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import { type Authentication, authenticate, type CheckedMail, type SignatureKeys } from './authentication.ts';
import { createReceivedMails, mailNotFound, mailOf } from './mails.ts';
import type { AttachmentFile, ParsedInbound } from './parse-mail.ts';
import { createReception, type InboundMail } from './reception.ts';
import { createInboundRoutes } from './routes.ts';
import { createInboundWorker } from './worker.ts';

/*
 * Mail that accounts receive: routes, reception, and the received mail with its source and attachments. Sources that no mail refers to
 * any more are deleted in the background.
 */

/** The parser thread of inbound mail. Null: too many mails wait. */
export interface InboundParser {
  parse(raw: Buffer, accountId: string): Promise<ParsedInbound | Unreadable> | null;
  attachment(
    raw: Buffer,
    accountId: string,
    position: number,
  ): Promise<AttachmentFile | null | Unreadable> | null;
  verify(
    raw: Buffer,
    accountId: string,
    found: SignatureKeys & { at: number },
  ): Promise<VerifiedSignatures | Unreadable> | null;
  stop(): Promise<void>;
}

interface Unreadable {
  unreadable: 'too-long' | 'failed' | 'stopping';
}

export interface InboundDeps {
  recorder: Recorder;
  resolver: Resolver;
  tokens: Tokens;
  limits: Pick<AccountLimits, 'storedRefusal'>;
  parser: InboundParser;
  /** Called when links are created. */
  publicUrl(): string;
}

/** A part of a received mail: an attachment by its position from 0, or its source. */
export type InboundPart = number | 'raw';

/** A part with what a response needs. */
export interface InboundFile {
  name: string;
  type: string;
  bytes: Buffer;
  /** Must be called when the response has ended; again without effect. */
  close(): void;
}

/** The part that a public link names. */
interface LinkedPart {
  accountId: string;
  read(): Promise<InboundFile | Refusal>;
}

/** How long a public link to a part is valid. */
const LINK_LIFETIME_MS = 7 * DAY;
/** Bytes of mails whose parts are being read or sent, as clients may read slowly: eight of the largest. */
const MAX_OPEN_BYTES = 8 * 36_700_160;
const REMOVAL_INTERVAL_MS = HOUR;
const REMOVAL_RETRY_MS = MINUTE;
/** Sources that are deleted before the list is read again. */
const REMOVAL_BATCH_SIZE = 1000;

type InboundContext = Pick<
  Context,
  'tables' | 'reader' | 'writer' | 'clock' | 'monotonic' | 'ids' | 'log'
> & { config: { hostname: string } };

/** Starts nothing before `background.start`. */
export function createInbound(
  context: InboundContext,
  { recorder, resolver, tokens, limits, parser, publicUrl }: InboundDeps,
) {
  const { tables, reader, writer, clock, log, config } = context;
  const { hostname } = config;
  const portions = createPortions({ writer, share: 'deleted-inbound-mail' });
  const mails = createReceivedMails(context);
  /** By account. An account may have as many bytes open as it leaves free for others: four of the largest mails. */
  const openBytes = createTally();

  function checkSender(raw: Buffer, mail: CheckedMail, accountId: string): Promise<Authentication> {
    const verify = async (found: SignatureKeys): Promise<VerifiedSignatures | null> => {
      if (mail.keyNames === null) return null;
      if (mail.keyNames.length === 0) return { dkim: [], arc: 'none' };
      const verified = await parser.verify(raw, accountId, { ...found, at: clock.now() });
      return verified === null || 'unreadable' in verified ? null : verified;
    };
    return authenticate({ resolver, hostname, verify }, mail, `inbound mail of ${accountId}`);
  }

  const worker = createInboundWorker(context, {
    recorder,
    hostname,
    parse: async (raw, accountId) => {
      const parsed = await parser.parse(raw, accountId);
      if (parsed === null) return 'later';
      if (!('unreadable' in parsed)) return parsed;
      return parsed.unreadable === 'stopping' ? 'later' : parsed.unreadable;
    },
    authenticate: checkSender,
    attachmentUrl: (mail, position) => partUrl(mail, position),
  });

  const reception = createReception(context, {
    storedRefusal: limits.storedRefusal,
    onReceived: worker.wake,
    authenticate: ({ raw, sender, helo, remoteAddress, recipients }: InboundMail) => {
      const { from } = readInboundHeader(raw, hostname);
      const mail = { from, sender, helo, remoteAddress, keyNames: signatureKeyNames(raw) };
      return checkSender(raw, mail, recipients[0]?.account_id ?? '');
    },
  });

  /** A public address of a part, which needs no key and is valid for 7 days. */
  function partUrl(
    { account_id, inbound_id }: Pick<ListedInbound, 'account_id' | 'inbound_id'>,
    part: InboundPart,
  ): string {
    const until = clock.now() + LINK_LIFETIME_MS;
    return `${publicUrl()}/f/${tokens.of(account_id).file({ inboundId: inbound_id, part, until })}`;
  }

  /** Counts the bytes of a mail until the returned function is called; null: too many are open. */
  function enter({ account_id: accountId, size }: Pick<ListedInbound, 'account_id' | 'size'>) {
    const { total } = openBytes;
    // A mail from a time with a higher `mx.mailBytes` is read alone.
    if (total > 0 && openBytes.of(accountId) + size > MAX_OPEN_BYTES - total - size) return null;
    return openBytes.hold(accountId, size);
  }

  async function fileOf(mail: ListedInbound, part: InboundPart): Promise<InboundFile | Refusal> {
    const close = enter(mail);
    if (close === null) return busy();
    try {
      const file = await read(mail, part);
      if (!isRefusal(file)) return { ...file, close };
      close();
      return file;
    } catch (error) {
      close();
      throw error;
    }
  }

  async function read(
    { account_id: accountId, inbound_id: inboundId, source_seq }: ListedInbound,
    part: InboundPart,
  ): Promise<Omit<InboundFile, 'close'> | Refusal> {
    const source = await reader.table(accountId, 'inbound', 'source', source_seq);
    if (source === null) return mailNotFound(inboundId);
    const raw = Buffer.from(source);
    if (part === 'raw') return { name: `${inboundId}.eml`, type: 'message/rfc822', bytes: raw };
    const reading = parser.attachment(raw, accountId, part);
    if (reading === null) return busy();
    const file = await reading;
    if (file === null) return refuse('INBOUND_NOT_FOUND', `The mail ${inboundId} has no attachment ${part}`);
    if ('unreadable' in file) return refuse('UNAVAILABLE', `The mail ${inboundId} could not be parsed`);
    const { name, bytes } = file;
    return {
      name: name === '' ? `attachment-${part}` : name,
      // Not the type that its sender declares: no program that gets it may show it.
      type: 'application/octet-stream',
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    };
  }

  async function removeUnused(): Promise<void> {
    const abandoned = tables.inbound
      .unfinished('storing', REMOVAL_BATCH_SIZE)
      .filter((source) => !reception.isStoring(source));
    if (abandoned.length > 0)
      await writer.run((tx) => {
        for (const source of abandoned) tx.inbound.setState(source, 'deleting');
      });
    for (;;) {
      const unused = tables.inbound.unfinished('deleting', REMOVAL_BATCH_SIZE);
      if (unused.length === 0) return;
      for (const source of unused) {
        const completed = await portions.run((tx, rows) => {
          const removed = tx.inbound.removeParts(source, rows);
          if (removed === 0) tx.inbound.removeSource(source);
          return { rows, isDone: removed === 0 };
        });
        if (!completed) return;
      }
    }
  }

  const removal = createLoop({
    name: 'deleted-inbound-mail',
    run: removeUnused,
    intervalMs: REMOVAL_INTERVAL_MS,
    retryMs: REMOVAL_RETRY_MS,
    log,
  });

  return {
    routes: createInboundRoutes(context),
    reception,
    partUrl,
    ...mails,
    /** Deletes a received mail; its source with the last mail that has it. */
    remove: async (accountId: string, inboundId: string): Promise<ListedInbound | Refusal> => {
      const removed = await mails.remove(accountId, inboundId);
      if (!isRefusal(removed)) removal.wake();
      return removed;
    },
    /** A part of a mail of the account. Refused (`UNAVAILABLE`) while too many are read. */
    file: async (accountId: string, inboundId: string, part: InboundPart): Promise<InboundFile | Refusal> => {
      const mail = mailOf(tables, accountId, inboundId);
      return isRefusal(mail) ? mail : fileOf(mail, part);
    },
    /** The part that a public link names; null: the link is not valid, or not any more. */
    linked: (token: string): LinkedPart | null => {
      const link = tokens.file(token);
      if (link === null || link.until < clock.now()) return null;
      const mail = tables.inbound.byId(link.inboundId);
      if (mail === null || !link.isOf(mail.account_id)) return null;
      return { accountId: mail.account_id, read: () => fileOf(mail, link.part) };
    },
    background: {
      start: (): void => {
        worker.start();
        removal.start();
      },
      stop: async (): Promise<void> => {
        portions.stop();
        await Promise.all([parser.stop(), worker.stop(), removal.stop()]);
      },
    },
  };
}

export type Inbound = ReturnType<typeof createInbound>;

function busy(): Refusal {
  return refuse('UNAVAILABLE', 'Too many received mails are being read', { retryAfter: 1 });
}
