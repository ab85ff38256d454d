import { ACCOUNT_MOVES } from '../accounts/accounts.ts';
import type { AccountLimits } from '../accounts/limits.ts';
import { HOUR } from '../core/clock.ts';
import { createFairLimit } from '../core/concurrency/gate.ts';
import { inSlices, type Order } from '../core/concurrency/slices.ts';
import { createLru } from '../core/lru.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { MAX_SLOTS } from '../mail/template.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';
import { readLabels } from '../store/messages/labels.ts';
import type { QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { isRecipientDetail, type RecipientDetail } from '../suppression/suppression.ts';
import { isLiquid } from '../templates/liquid.ts';
import { resolveTemplate, type TemplateContent } from '../templates/templates.ts';
import type { TemplateThreads } from '../templates/thread/threads.ts';
import type { AttachmentFiles } from './attachment-files.ts';
import { checkDomain, checkSendInSteps, divideRecipients, type Sender } from './checks.ts';
import {
  createDraft,
  type Draft,
  type LeasedMessage,
  type LeaseNow,
  leasesFor,
  PRIORITY_OF_STREAM,
  type SendResult,
  type StoredDraft,
  type StoreOptions,
  storeDraft,
} from './draft.ts';
import { encodeContents, encodeTemplated, MAX_STORED_CHARACTERS, type StorableContent } from './encode.ts';
import type { IdempotencyKeys, Reservation } from './idempotency.ts';
import type { OneClickNotice } from './one-click.ts';
import type { Pressure } from './pressure.ts';
import { clippingWarnings } from './render/clipping.ts';
import { createHtmlReader, type HtmlReader } from './render/html-reader.ts';
import { MAX_RENDERED } from './render/render.ts';
import { renderLiquidContent } from './render/render-liquid.ts';
import { createRepeatedTemplates } from './render/render-shared.ts';
import {
  type ParsedSend,
  parseSend,
  pastScheduleRefusal,
  replacedFieldWarnings,
  type SendRequest,
  trackingDefaults,
} from './request.ts';

/*
 * Accepts mail of both streams: checks it, renders it and stores it before the response is sent. Messages, queue rows,
 * contents and the idempotent response are one transaction. MIME and SMTP follow at delivery.
 */

/** A send to accept. */
export interface AcceptRequest {
  sender: Sender;
  body: SendRequest;
  /** A valid Idempotency-Key and the endpoint of the request; null: the request has none. */
  idempotency: { endpoint: string; key: string } | null;
  /** For mail submitted over SMTP and for confirmations: append the compliance variables that it lacks. */
  appendFooter?: boolean;
  /** For mail submitted over SMTP, which has no variables: braces are text, except those of the service's variables. */
  literalBraces?: boolean;
  /** Default: the limit of requests over HTTP. */
  maxRecipients?: number;
  /** Names of variables that are empty without a value. Default: none. */
  isOptional?: ((name: string) => boolean) | undefined;
  /** For a message of a sequence. */
  step?: SequenceMessage;
  /** Returns the response body as it is sent and stored. */
  envelope(data: SendResult, warnings: readonly string[]): string;
}

/** What differs for a message of a sequence. */
export interface SequenceMessage {
  /** In place of a campaign: under which the message is counted. */
  countedAs: string;
  /** Called in the unit of work that stores the message; a refusal undoes it. */
  store(tx: Tables, messageId: string): Refusal | null;
}

export type Accepted =
  | {
      kind: 'accepted';
      status: number;
      data: SendResult;
      /** The warnings in `body`. */
      warnings: readonly string[];
      body: string;
      firstSeq: number;
    }
  | { kind: 'replayed'; status: number; body: string };

/** What an acceptance shares with other parts. */
export interface AcceptanceParts extends StoreOptions {
  recorder: Recorder;
  keys: IdempotencyKeys;
  pressure: Pick<Pressure, 'refusal'>;
  limits: Pick<AccountLimits, 'takeMessages' | 'of'>;
  oneClick: OneClickNotice;
  /** Renders Liquid. */
  threads: TemplateThreads;
  attachmentFiles: Pick<AttachmentFiles, 'use'>;
  /** `public.url` with its actual port: the base of links, except for domains with a link host. */
  publicUrl: string;
  leaseNow: LeaseNow;
  /** Called with the messages that were stored with a lease (committed): their delivery begins. */
  accepted(leased: readonly LeasedMessage[]): void;
  /** Called when messages of a key are in the queue (committed) and due. */
  announce(key: QueueKey): void;
}

/** 200 for transactional mail, 202 for marketing mail. */
const STATUS: Record<Stream, number> = { tx: 200, mk: 202 };

/**
 * Sizes of messages, in characters as rendered, that continue before their account's other requests begin: while their texts
 * wait, they survive the collections of the young generation, and fill the old one. Smaller ones alternate with other
 * requests, because more of them then share a commit; larger ones, because others would wait too long.
 */
const CONTINUED = { min: 48 * 1024, max: 256 * 1024 };

/** Characters of HTML in the caches for mail that was submitted over SMTP, and for Liquid: it is rarely repeated. */
const MAX_LITERAL_CHARACTERS = 1024 * 1024;

/**
 * Sends in Liquid between the thread that renders them and the disk: the request is counted by its body, which does not show
 * how long the result is.
 */
const LIQUID_SENDS = { concurrency: 64, perKey: 16 };

/** A send that can be stored. */
interface RenderedSend {
  draft: Draft;
  contents: StorableContent[];
  warnings: string[];
  /** Body of the response. */
  body: string;
}

/** A send on disk. */
interface StoredSend extends Omit<RenderedSend, 'contents'> {
  stored: StoredDraft;
}

/**
 * Starts nothing. Keeps caches of parsed HTML, the render queue and the bounds of refusal events in memory, so that a process
 * has one. `accept` rejects with the writer's error when the unit of work fails.
 */
export function createAcceptance(
  context: Pick<Context, 'clock' | 'ids' | 'tables' | 'writer'>,
  parts: AcceptanceParts,
) {
  const { clock, ids, tables, writer } = context;
  const { keys, pressure, simulatorDomain, oneClick } = parts;
  const htmlReader = createHtmlReader();
  const literalReader = createHtmlReader('service', MAX_LITERAL_CHARACTERS);
  const marksReader = createHtmlReader('marks', MAX_LITERAL_CHARACTERS);
  const renderQueue = createRenderQueue();
  const liquidSends = createFairLimit(LIQUID_SENDS);
  const repeated = createRepeatedTemplates();
  const refusalEvents = createRefusalEvents(context, parts);

  /** Not asynchronous: the request and its texts can be freed while the message waits for its commit. */
  function checkAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> | Refusal {
    const { sender } = request;
    const refusal =
      pressure.refusal(sender.account.account_id) ?? checkGroupAndCampaign(sender, send, request.step);
    if (refusal !== null) return refusal;
    const content = resolveTemplate(tables, sender, send.source);
    if (isRefusal(content)) return content;
    if (send.linked.files.length === 0) return renderContent(request, send, content, reservation);
    // Nothing is fetched for an account that cannot send.
    const domain = checkDomain(tables, sender, send);
    if (isRefusal(domain)) return domain;
    return parts.attachmentFiles.use(sender.account.account_id, send, (complete) =>
      renderContent(request, complete, content, reservation),
    );
  }

  function renderContent(
    request: AcceptRequest,
    send: ParsedSend,
    content: TemplateContent,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> {
    if (!isLiquid(content)) return queueRendering(request, send, content, htmlReader, reservation);
    const { account_id: accountId } = request.sender.account;
    return liquidSends.run(accountId, async () => {
      const { threads } = parts;
      const rendered = await renderLiquidContent(
        threads,
        accountId,
        content,
        send.variables,
        request.isOptional,
      );
      return queueRendering(request, send, rendered, marksReader, reservation);
    });
  }

  /** `content`: a refusal if it cannot be rendered, which the checks before it precede. */
  function queueRendering(
    request: AcceptRequest,
    send: ParsedSend,
    content: TemplateContent | Refusal,
    reader: HtmlReader,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> {
    const { sender } = request;
    // Marketing copies have separate contents.
    const contents = sender.useCase === 'mk' ? send.recipients.length : 1;
    const size = isRefusal(content) ? 0 : renderedSize(send, content, contents);
    const order = size >= CONTINUED.min && size <= CONTINUED.max ? 'continue' : 'alternate';
    return renderQueue.run(sender.account.account_id, size, () =>
      renderAndStore(request, send, content, reader, order, reservation),
    );
  }

  async function renderAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    content: TemplateContent | Refusal,
    reader: HtmlReader,
    order: Order,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> {
    const rendered = await render(request, send, content, reader, order);
    return isRefusal(rendered) ? rendered : storeRendered(rendered, reservation, request.step);
  }

  /** Checks, renders and encodes. The result refers to no text of the message. */
  async function render(
    request: AcceptRequest,
    requested: ParsedSend,
    content: TemplateContent | Refusal,
    reader: HtmlReader,
    order: Order,
  ): Promise<RenderedSend | Refusal> {
    const { sender } = request;
    const { account_id: accountId } = sender.account;
    const { send, skipped, refusal } =
      request.body.onRefused === 'skip'
        ? divideRecipients(tables, sender, requested, simulatorDomain)
        : { send: requested, skipped: [], refusal: null };
    const literalBraces = request.literalBraces === true;
    const reading = {
      htmlReader: literalBraces ? literalReader : reader,
      literalBraces,
      repeated,
      appendFooter: request.appendFooter === true,
      simulatorDomain,
      isOptional: request.isOptional,
    };
    const checked = await inSlices(
      checkSendInSteps(tables, sender, send, content, reading),
      accountId,
      order,
    );
    if (isRefusal(checked)) {
      await refusalEvents.record(sender, send, isRefusal(content) ? '' : content.subject, checked);
      return checked;
    }
    if (checked.candidate !== null) await repeated.prepare(checked.candidate, accountId);
    if (refusal !== null) await refusalEvents.record(sender, send, checked.rendered.subject, refusal);
    const { draft, contents } = createDraft(sender, send, checked, ids, clock.now(), skipped);
    const clipping = clippingWarnings(checked.rendered, {
      linkBase: `https://${checked.domain.tracking_host ?? new URL(parts.publicUrl).host}`,
      ...send,
    });
    const ofMarketing =
      sender.useCase === 'mk'
        ? [...replacedFieldWarnings(send.headers), ...oneClick.warnings(accountId)]
        : [];
    const warnings = [...send.warnings, ...checked.warnings, ...clipping, ...ofMarketing];
    const body = request.envelope(draft.data, warnings);
    const { shared } = checked.rendered;
    const encoded =
      shared === undefined
        ? await encodeContents(contents, accountId, order)
        : contents.map((content) => encodeTemplated(content, shared));
    return isRefusal(encoded) ? encoded : { draft, contents: encoded, warnings, body };
  }

  async function storeRendered(
    { draft, contents, warnings, body }: RenderedSend,
    reservation: Reservation | null,
    step: SequenceMessage | undefined,
  ): Promise<StoredSend | Refusal> {
    const { sender, domain } = draft;
    const { account_id: accountId } = sender.account;
    const leases = leasesFor(draft, contents, parts, parts.leaseNow);
    const stored = await writer.run((tx): StoredDraft | Refusal => {
      // The domain can have been deleted while the request waited.
      if (tx.domains.byId(domain.domain_id) === null)
        return refuse('DOMAIN_NOT_REGISTERED', `The domain ${domain.name} was deleted`);
      // Its export has what was stored before.
      if (typeof tx.accounts.get(accountId)?.moved_at === 'number')
        return refuse('UNAVAILABLE', ACCOUNT_MOVES);
      const limited = parts.limits.takeMessages(tx, accountId, draft.copies.length, clock.now());
      if (limited !== null) return limited;
      const ended = step?.store(tx, draft.copies[0]?.messageId ?? '') ?? null;
      if (ended !== null) return ended;
      reservation?.store(tx, STATUS[sender.useCase], body);
      return storeDraft(tx, draft, contents, parts, leases);
    }, accountId);
    if (isRefusal(stored)) return stored;
    if (sender.useCase === 'mk') oneClick.sent(accountId);
    return { draft, warnings, body, stored };
  }

  /** Requires that the group and the campaign of the request exist. */
  function checkGroupAndCampaign(
    { account }: Sender,
    send: ParsedSend,
    step: SequenceMessage | undefined,
  ): Refusal | null {
    const { campaignId, groupId } = send;
    if (groupId !== null && tables.subscriptionGroups.get(account.account_id, groupId) === null) {
      return refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `There is no subscription group ${groupId}`);
    }
    const isCampaign = campaignId !== null && step === undefined;
    if (isCampaign && tables.campaigns.get(account.account_id, campaignId) === null) {
      return refuse('CAMPAIGN_NOT_FOUND', `There is no campaign ${campaignId}`);
    }
    return null;
  }

  function deliver({ draft, stored }: StoredSend): void {
    parts.accepted(stored.leased);
    const { account, useCase } = draft.sender;
    for (const destination of stored.waiting)
      parts.announce({ priority: PRIORITY_OF_STREAM[useCase], account_id: account.account_id, destination });
  }

  return {
    /**
     * Resolves with an acceptance after it is on disk. `beforeDelivery` is called with the seq of the first message
     * after that and before delivery can start.
     */
    accept: async (
      request: AcceptRequest,
      beforeDelivery?: (seq: number) => void,
    ): Promise<Accepted | Refusal> => {
      const { sender, idempotency } = request;
      const parsed = parseSend(request.body, clock.now(), {
        maxRecipients: request.maxRecipients,
        trackingOf: trackingDefaults(tables, sender.account.account_id, sender.useCase),
      });
      if (isRefusal(parsed)) return parsed;
      const send = request.step === undefined ? parsed : { ...parsed, campaignId: request.step.countedAs };
      const reservation =
        idempotency === null
          ? null
          : keys.begin({
              accountId: sender.account.account_id,
              body: fingerprinted(request.body),
              ...idempotency,
              // A live message never gets the stored response of a test.
              endpoint: sender.isSimulation === true ? `test/${idempotency.endpoint}` : idempotency.endpoint,
            });
      if (isRefusal(reservation)) return reservation;
      if (reservation?.kind === 'stored')
        return { kind: 'replayed', status: reservation.status, body: reservation.body };
      try {
        const past = pastScheduleRefusal(send, clock.now());
        if (past !== null) return past;
        const stored = await checkAndStore(request, send, reservation);
        if (isRefusal(stored)) return stored;
        const { draft, warnings, body } = stored;
        const { firstSeq } = stored.stored;
        beforeDelivery?.(firstSeq);
        deliver(stored);
        const status = STATUS[sender.useCase];
        return { kind: 'accepted', status, data: draft.data, warnings, body, firstSeq };
      } finally {
        reservation?.release();
      }
    },
  };
}

export type Acceptance = ReturnType<typeof createAcceptance>;

/** The body without its Message-ID: a program that repeats a submission often changes it. */
function fingerprinted(body: SendRequest): SendRequest {
  return { ...body, messageId: undefined };
}

/** Events of one recipient, code and reason without an interval; further ones have at least RECORD_INTERVAL_MS between them. */
const MAX_REPEATED_EVENTS = 3;
const RECORD_INTERVAL_MS = HOUR;
/** Rows of refused sends of an account in an hour: events, and their deliveries to webhooks. */
const MAX_ROWS_PER_HOUR = 20_000;
/** Rows of a unit of work, unless one event has more deliveries. */
const UNIT_ROWS = 200;
/** Recipients and accounts in memory. One that was evicted counts from 0 again. */
const MAX_RECIPIENTS = 50_000;
const MAX_ACCOUNTS = 10_000;

interface Repeats {
  events: number;
  lastAt: number;
}

interface AccountHour {
  since: number;
  events: number;
  rows: number;
}

/**
 * Records an event for each recipient that causes the refusal of a send. A refused send costs the caller nothing, so
 * its events are bounded: repeated ones of a recipient, and the rows of an account in an hour. The bounds are in memory
 * and begin again after a restart; the response to the send does not depend on them. Begins with no event counted;
 * keeps up to 50,000 recipients and 10,000 accounts in memory. `record` resolves when the events are durable, in units
 * of about 200 rows.
 */
function createRefusalEvents(
  { clock, tables, writer }: Pick<Context, 'clock' | 'tables' | 'writer'>,
  { recorder, limits }: { recorder: Recorder; limits: Pick<AccountLimits, 'of'> },
) {
  const recipients = createLru<Repeats>(MAX_RECIPIENTS);
  const accounts = createLru<AccountHour>(MAX_ACCOUNTS);

  /** Counts the event of a recipient; false: it is not recorded. `rows`: the rows of one event. */
  function take(accountId: string, { recipient, code, reason }: RecipientDetail, rows: number): boolean {
    const now = clock.now();
    const key = `${accountId} ${emailIdentifier(recipient)} ${code} ${reason}`;
    const repeats = recipients.get(key) ?? { events: 0, lastAt: now };
    if (repeats.events >= MAX_REPEATED_EVENTS && !isPast(repeats.lastAt, now, RECORD_INTERVAL_MS))
      return false;
    const known = accounts.get(accountId);
    const hour =
      known === undefined || isPast(known.since, now, HOUR) ? { since: now, events: 0, rows: 0 } : known;
    if (hour.rows + rows > MAX_ROWS_PER_HOUR || hour.events >= maxEvents(accountId)) return false;
    recipients.set(key, { events: repeats.events + 1, lastAt: now });
    accounts.set(accountId, { since: hour.since, events: hour.events + 1, rows: hour.rows + rows });
    return true;
  }

  /** An account has at most as many of these events in an hour as it may send messages. */
  function maxEvents(accountId: string): number {
    const { messagesPerHour, messagesPerDay } = limits.of(accountId);
    return Math.min(messagesPerHour ?? MAX_ROWS_PER_HOUR, messagesPerDay ?? MAX_ROWS_PER_HOUR);
  }

  return {
    record: async (sender: Sender, send: ParsedSend, subject: string, refusal: Refusal): Promise<void> => {
      const { account_id: accountId } = sender.account;
      const refused = (refusal.extras.details ?? []).filter(isRecipientDetail);
      if (refused.length === 0) return;
      const rows = 1 + tables.webhooks.subscribed(accountId, 'email_suppressed').length;
      const recorded = refused.filter((detail) => take(accountId, detail, rows));
      const domain = checkDomain(tables, sender, send);
      const domainId = isRefusal(domain) ? null : domain.domain_id;
      const common = {
        ...(send.campaignId === null ? {} : { campaignId: send.campaignId }),
        ...(send.groupId === null ? {} : { subscriptionGroupId: send.groupId }),
        useCase: sender.useCase,
        from: send.from.address,
        subject,
        ...readLabels(send.labels),
        ...(sender.isSimulation === true ? { livemode: false } : {}),
      };
      const perUnit = Math.max(1, Math.floor(UNIT_ROWS / rows));
      for (let at = 0; at < recorded.length; at += perUnit) {
        const portion = recorded.slice(at, at + perUnit);
        await writer.run((tx) => {
          for (const { recipient, code, reason } of portion) {
            const contactIdentifier = emailIdentifier(recipient);
            const fields = { reasonCode: code, reason, ...common, recipient, contactIdentifier };
            recorder.refusedSend(tx, { accountId, domainId, fields });
          }
        }, accountId);
      }
    },
  };
}

/** Whether the interval has passed, or the clock was set back. */
function isPast(since: number, now: number, intervalMs: number): boolean {
  return now < since || now - since >= intervalMs;
}

/** Messages up to this size never wait: their number is bounded by the concurrent requests of each account. */
const MAX_SMALL_SIZE = 64 * 1024;
/** Messages up to this size do not wait for larger ones. */
const MAX_MEDIUM_SIZE = 512 * 1024;
/** Characters of medium messages, and of large ones, that are rendered at a time. */
const MAX_MEDIUM_TOTAL = 2 * 1024 * 1024;
const MAX_LARGE_TOTAL = 8 * 1024 * 1024;

/**
 * Limits the memory for messages that are being checked, rendered and stored. Rendering takes many times the size of a
 * message, and requests are rendered concurrently in slices: without a limit, a few dozen large messages exhaust the
 * heap. Small messages never wait. Accounts whose messages wait take turns, without a limit of time. Medium messages (up to
 * 512 Ki characters) and large ones have separate capacities, 2 Mi and 8 Mi characters.
 */
export function createRenderQueue() {
  const medium = createFairLimit({ concurrency: MAX_MEDIUM_TOTAL, order: 'turns' });
  const large = createFairLimit({ concurrency: MAX_LARGE_TOTAL, order: 'turns' });
  return {
    /** Runs `work` when there is capacity for a message of `size` characters. */
    run: <T>(accountId: string, size: number, work: () => Promise<T>): Promise<T> => {
      if (size <= MAX_SMALL_SIZE) return work();
      return (size <= MAX_MEDIUM_SIZE ? medium : large).run(accountId, work, size);
    },
  };
}

/**
 * An upper bound of the characters that are rendered and encoded: each variable counts like the longest one. `contents`:
 * the number of contents that are encoded; above MAX_STORED_CHARACTERS together they are refused.
 */
export function renderedSize(
  { attachments, alternatives, variables }: Pick<ParsedSend, 'attachments' | 'alternatives' | 'variables'>,
  { html, text }: Pick<TemplateContent, 'html' | 'text'>,
  contents: number,
): number {
  const encoded = [...attachments, ...alternatives].reduce((sum, { content }) => sum + content.length, 0);
  const source = html.length + (text?.length ?? 0);
  const filled = (slotsIn(html) + slotsIn(text ?? '')) * longestText(variables);
  const one = encoded + source + Math.min(filled, MAX_RENDERED);
  return Math.max(one, Math.min(one * contents, MAX_STORED_CHARACTERS));
}

function slotsIn(template: string): number {
  let slots = 0;
  for (let at = template.indexOf('{{'); at >= 0 && slots < MAX_SLOTS; at = template.indexOf('{{', at + 2))
    slots++;
  return slots;
}

function longestText(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((longest, inner) => Math.max(longest, longestText(inner)), 0);
}
