import type { AccountLimits } from '../accounts/limits.ts';
import { inSlices, type Order } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { QueueKey } from '../store/messages/queue.ts';
import { resolveTemplate, type TemplateContent } from '../templates/source.ts';
import { checkingSend, type Sender } from './checks.ts';
import {
  createDraft,
  type Draft,
  PRIORITY_OF_STREAM,
  runTaking,
  type SendResult,
  type StoredDraft,
  type StoreOptions,
  storeDraft,
  type TakeNew,
  type TakenMessage,
} from './draft.ts';
import { encodeContents, encodeTemplated, type StorableContent } from './encode.ts';
import { replacedFieldWarnings } from './headers.ts';
import type { IdempotencyKeys, Reservation } from './idempotency.ts';
import type { OneClickNotice } from './one-click.ts';
import type { Pressure } from './pressure.ts';
import { createRefusalEvents } from './refusal-events.ts';
import { clippingWarnings } from './render/clipping.ts';
import { createHtmlReader } from './render/html-reader.ts';
import { createRenderQueue, renderedSize } from './render/render-queue.ts';
import { createRepeatedTemplates } from './render/repeated-templates.ts';
import { type ParsedSend, parseSend, pastScheduleRefusal, type SendRequest } from './request.ts';

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
  /** Returns the response body as it is sent and stored. */
  envelope(data: SendResult, warnings: readonly string[]): string;
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
  /** `public.url` with its actual port: the base of links, except for domains with a link host. */
  publicUrl: string;
  /** Takes new messages whose delivery can begin immediately. Default: all wait in the queue. */
  take?: TakeNew;
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

/** Characters of HTML in the cache for mail that was submitted over SMTP: it is rarely repeated. */
const MAX_LITERAL_CHARACTERS = 1024 * 1024;

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
  /** The messages whose delivery begins now. */
  taken: readonly TakenMessage[];
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
  const renderQueue = createRenderQueue();
  const repeated = createRepeatedTemplates();
  const refusalEvents = createRefusalEvents(context, parts);

  /** Not asynchronous: the request and its texts can be freed while the message waits for its commit. */
  function checkAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> | Refusal {
    const { sender } = request;
    const refusal = pressure.refusal(sender.account.account_id) ?? checkGroupAndCampaign(sender, send);
    if (refusal !== null) return refusal;
    const content = resolveTemplate(tables, sender, send.source);
    if (isRefusal(content)) return content;
    // Marketing copies have separate contents.
    const contents = sender.useCase === 'mk' ? send.recipients.length : 1;
    const size = renderedSize(send, content, contents);
    const order = size >= CONTINUED.min && size <= CONTINUED.max ? 'continue' : 'alternate';
    return renderQueue.run(sender.account.account_id, size, () =>
      renderAndStore(request, send, content, order, reservation),
    );
  }

  async function renderAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    content: TemplateContent,
    order: Order,
    reservation: Reservation | null,
  ): Promise<StoredSend | Refusal> {
    const rendered = await render(request, send, content, order);
    return isRefusal(rendered) ? rendered : storeRendered(rendered, reservation);
  }

  /** Checks, renders and encodes. The result refers to no text of the message. */
  async function render(
    request: AcceptRequest,
    send: ParsedSend,
    content: TemplateContent,
    order: Order,
  ): Promise<RenderedSend | Refusal> {
    const { sender } = request;
    const { account_id: accountId } = sender.account;
    const literalBraces = request.literalBraces === true;
    const reading = {
      htmlReader: literalBraces ? literalReader : htmlReader,
      literalBraces,
      repeated,
      appendFooter: request.appendFooter === true,
      simulatorDomain,
    };
    const checked = await inSlices(checkingSend(tables, sender, send, content, reading), accountId, order);
    if (isRefusal(checked)) {
      await refusalEvents.record(sender, send, content.subject, checked);
      return checked;
    }
    if (checked.candidate !== null) await repeated.prepare(checked.candidate, accountId);
    const { draft, contents } = createDraft(sender, send, checked, ids, clock.now());
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
  ): Promise<StoredSend | Refusal> {
    const { sender, domain } = draft;
    const { account_id: accountId } = sender.account;
    const taken: TakenMessage[] = [];
    const stored = await runTaking<StoredDraft | Refusal>(writer, accountId, taken, (all) => {
      // The domain can have been deleted while the request waited.
      if (all.domains.byId(domain.domain_id) === null)
        return refuse('DOMAIN_NOT_REGISTERED', `The domain ${domain.name} was deleted`);
      const limited = parts.limits.takeMessages(all, accountId, draft.copies.length, clock.now());
      if (limited !== null) return limited;
      reservation?.store(all, STATUS[sender.useCase], body);
      return storeDraft(all, draft, contents, parts, taken);
    });
    if (isRefusal(stored)) return stored;
    if (sender.useCase === 'mk') oneClick.sent(accountId);
    return { draft, warnings, body, stored, taken };
  }

  /** Requires that the group and the campaign of the request exist. */
  function checkGroupAndCampaign({ account }: Sender, send: ParsedSend): Refusal | null {
    const { campaignId, groupId } = send;
    if (groupId !== null && tables.subscriptionGroups.get(account.account_id, groupId) === null) {
      return refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `There is no subscription group ${groupId}`);
    }
    if (campaignId !== null && tables.campaigns.get(account.account_id, campaignId) === null) {
      return refuse('CAMPAIGN_NOT_FOUND', `There is no campaign ${campaignId}`);
    }
    return null;
  }

  function deliver({ draft, stored, taken }: StoredSend): void {
    for (const message of taken) message.committed();
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
      const send = parseSend(request.body, clock.now(), request.maxRecipients);
      if (isRefusal(send)) return send;
      const reservation =
        idempotency === null
          ? null
          : keys.begin({
              accountId: sender.account.account_id,
              body: fingerprinted(request.body),
              ...idempotency,
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
