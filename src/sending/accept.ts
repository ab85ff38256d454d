import type { AccountLimits } from '../accounts/limits.ts';
import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { inSlices } from '../core/slices.ts';
import type { Recorder } from '../events/record.ts';
import { domainOf } from '../mail/address.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { MAX_SLOTS } from '../mail/template.ts';
import type { UseCase } from '../store/domains/domains.ts';
import type { QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Wording, wordingOf } from '../templates/source.ts';
import { checkDomain, checkingSend, type Sender } from './checks.ts';
import { clippingWarnings } from './clipping.ts';
import {
  countedCopies,
  type Draft,
  encodeContents,
  makeDraft,
  PRIORITIES,
  type SendResult,
  storeDraft,
} from './draft.ts';
import { createHtmlReader } from './html-reader.ts';
import type { IdempotencyKeys, Reservation } from './idempotency.ts';
import type { OneClickNotice } from './one-click.ts';
import type { Pressure } from './pressure.ts';
import { MAX_RENDERED } from './render.ts';
import { createRenderQueue } from './render-queue.ts';
import { type ParsedSend, parseSend, type SendRequest } from './request.ts';

/**
 * The door for mail of both streams: checked, rendered, stored, and only then answered. Message, queue row,
 * content and idempotent answer are one transaction. No MIME and no SMTP happens on this way.
 */
export interface AcceptRequest {
  sender: Sender;
  body: SendRequest;
  /** A well-formed Idempotency-Key with the endpoint it was given to, null when the caller gave none. */
  idempotency: { endpoint: string; key: string } | null;
  /** Only of mail submitted over SMTP: the compliance variables that it lacks are appended. */
  appendFooter?: boolean;
  /** Makes the answer's body from its data and from warnings, as it will be sent and stored. */
  envelope(data: SendResult, warnings: readonly string[]): string;
}

export type Accepted =
  | {
      kind: 'accepted';
      status: number;
      data: SendResult;
      /** Those that `body` was made with. */
      warnings: readonly string[];
      body: string;
      firstSeq: number;
    }
  | { kind: 'replayed'; status: number; body: string };

export interface Acceptance {
  /**
   * Accepts or refuses. When it returns an acceptance, it is on disk; `beforeAnnounce` (with the first
   * message's seq) runs after that and before delivery can start.
   */
  accept(request: AcceptRequest, beforeAnnounce?: (seq: number) => void): Promise<Accepted | Refusal>;
}

export interface AcceptanceSettings {
  clock: Clock;
  ids: Ids;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  keys: IdempotencyKeys;
  pressure: Pick<Pressure, 'refusal'>;
  limits: Pick<AccountLimits, 'takeMessages'>;
  oneClick: OneClickNotice;
  simulatorDomain: string;
  /** `public.url`, its port resolved: where links lead unless a domain has a host of its own for them. */
  publicUrl: string;
  /** How long a message is tried, ms. */
  expire: Record<UseCase, number>;
  announce(key: QueueKey): void;
}

/** Transactional mail is answered as sent, marketing mail as taken on. */
const STATUS: Record<UseCase, number> = { tx: 200, mk: 202 };

export function createAcceptance(settings: AcceptanceSettings): Acceptance {
  const { clock, ids, tables, writer, recorder, keys, pressure } = settings;
  const html = createHtmlReader();
  const renderQueue = createRenderQueue();

  async function checkAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    reservation: Reservation | null,
  ): Promise<{ draft: Draft; warnings: string[]; body: string; firstSeq: number } | Refusal> {
    const { sender } = request;
    const busy = pressure.refusal() ?? checkNames(sender, send);
    if (busy !== null) return busy;
    const wording = wordingOf(tables, sender, send.wording);
    if (isRefusal(wording)) return wording;
    const size = sizeOf(send, wording);
    return renderQueue.run(sender.account.account_id, size, () =>
      renderAndStore(request, send, wording, reservation),
    );
  }

  async function renderAndStore(
    request: AcceptRequest,
    send: ParsedSend,
    wording: Wording,
    reservation: Reservation | null,
  ): Promise<{ draft: Draft; warnings: string[]; body: string; firstSeq: number } | Refusal> {
    const { sender } = request;
    const { simulatorDomain, oneClick } = settings;
    const means = { html, appendFooter: request.appendFooter === true, simulatorDomain };
    const checked = await inSlices(
      checkingSend(tables, sender, send, wording, means),
      sender.account.account_id,
    );
    if (isRefusal(checked)) {
      await tellRefusal(sender, send, wording, checked);
      return checked;
    }
    const draft = makeDraft(sender, send, checked, ids, clock.now());
    const contents = await encodeContents(draft);
    if (isRefusal(contents)) return contents;
    const isMarketing = sender.useCase === 'mk';
    const clipping = clippingWarnings(checked.rendered.html, {
      ...send,
      linkBase: `https://${checked.domain.tracking_host ?? new URL(settings.publicUrl).host}`,
    });
    const unavailable = isMarketing ? oneClick.warnings(sender.account.account_id) : [];
    const warnings = [...send.warnings, ...clipping, ...unavailable];
    const body = request.envelope(draft.data, warnings);
    const firstSeq = await writer.run((all) => {
      // Deleted while this request waited for its turn: then nothing of it is stored.
      if (all.domains.byId(checked.domain.domain_id) === null)
        return refuse('DOMAIN_NOT_REGISTERED', 'The domain was deleted');
      const { account_id } = sender.account;
      const limited = settings.limits.takeMessages(
        all,
        account_id,
        countedCopies(draft, settings),
        clock.now(),
      );
      if (limited !== null) return limited;
      reservation?.keep(all, STATUS[sender.useCase], body);
      return storeDraft(all, draft, contents, settings);
    }, sender.account.account_id);
    if (isRefusal(firstSeq)) return firstSeq;
    if (isMarketing) oneClick.sent(sender.account.account_id);
    return { draft, warnings, body, firstSeq };
  }

  /** What the request names exists in this account; the template is looked for where it is read. */
  function checkNames({ account }: Sender, send: ParsedSend): Refusal | null {
    const { campaignId, groupId } = send;
    if (groupId !== null && tables.subscriptionGroups.get(account.account_id, groupId) === null) {
      return refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `there is no subscription group ${groupId}`);
    }
    if (campaignId !== null && tables.campaigns.get(account.account_id, campaignId) === null) {
      return refuse('CAMPAIGN_NOT_FOUND', `there is no campaign ${campaignId}`);
    }
    return null;
  }

  /** A refusal about a person (not about the request) is an event: the account's other systems want to know. */
  async function tellRefusal(
    sender: Sender,
    send: ParsedSend,
    wording: Wording,
    refusal: Refusal,
  ): Promise<void> {
    const people = (refusal.extras.details ?? []).filter(({ recipient }) => recipient !== undefined);
    if (people.length === 0) return;
    const domain = checkDomain(tables, sender, send);
    const domainId = isRefusal(domain) ? null : domain.domain_id;
    await writer.run((all) => {
      for (const { recipient = '', code, reason } of people) {
        const fields = {
          reasonCode: code ?? refusal.code,
          reason,
          ...(send.campaignId === null ? {} : { campaignId: send.campaignId }),
          ...(send.groupId === null ? {} : { subscriptionGroupId: send.groupId }),
          useCase: sender.useCase,
          from: send.from.address,
          recipient,
          contactIdentifier: emailIdentifier(recipient),
          subject: wording.subject,
        };
        recorder.refusedSend(all, { accountId: sender.account.account_id, domainId, fields });
      }
    });
  }

  function announce({ sender, send, now, dueAt }: Draft): void {
    if (dueAt > now) return;
    for (const destination of new Set(send.recipients.map(({ mailbox }) => domainOf(mailbox.address)))) {
      settings.announce({
        priority: PRIORITIES[sender.useCase],
        account_id: sender.account.account_id,
        destination,
      });
    }
  }

  return {
    accept: async (request, beforeAnnounce) => {
      const { sender, idempotency } = request;
      const send = parseSend(request.body, clock.now());
      if (isRefusal(send)) return send;
      const reservation =
        idempotency === null
          ? null
          : keys.begin({
              ...idempotency,
              accountId: sender.account.account_id,
              body: fingerprinted(request.body),
            });
      if (isRefusal(reservation)) return reservation;
      if (reservation?.kind === 'stored')
        return { kind: 'replayed', status: reservation.status, body: reservation.body };
      try {
        const stored = await checkAndStore(request, send, reservation);
        if (isRefusal(stored)) return stored;
        const { draft, warnings, body, firstSeq } = stored;
        beforeAnnounce?.(firstSeq);
        announce(draft);
        const status = STATUS[sender.useCase];
        return { kind: 'accepted', status, data: draft.data, warnings, body, firstSeq };
      } finally {
        reservation?.release();
      }
    },
  };
}

/** What makes two requests the same: a program that submits a mail again often gives it another Message-ID. */
function fingerprinted(body: SendRequest): SendRequest {
  return { ...body, messageId: undefined };
}

/** An estimate of the characters that are rendered and encoded: each variable counts like the longest one. */
function sizeOf({ attachments, variables }: ParsedSend, { html, text }: Wording): number {
  const attached = attachments.reduce((sum, { content }) => sum + content.length, 0);
  const given = html.length + (text?.length ?? 0);
  const filled = (slotsIn(html) + slotsIn(text ?? '')) * longestText(variables);
  return attached + given + Math.min(filled, MAX_RENDERED);
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
