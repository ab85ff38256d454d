import { findSubscriptionGroup } from '../audience/groups.ts';
import { type Clock, iso } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { inSlices } from '../core/slices.ts';
import { hasRawVariables } from '../mail/compliance.ts';
import type { Sender } from '../sending/checks.ts';
import { clippingWarnings } from '../sending/clipping.ts';
import { createHtmlReader } from '../sending/html-reader.ts';
import type { Pressure } from '../sending/pressure.ts';
import { namesOf, type PreparedWording, readingWording, renderingWording } from '../sending/render.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { CampaignRow, CampaignStatus } from '../store/campaigns/campaigns.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { wordingOf } from '../templates/source.ts';
import { isThrough } from './batch.ts';
import { findCampaign } from './campaigns.ts';
import { knownCustomFields, NOBODY, tooManyFields } from './fields.ts';
import {
  type CampaignMail,
  type CampaignRequest,
  type ParsedCampaign,
  parseCampaign,
  readAhead,
  readyCampaign,
  stillReady,
} from './mail.ts';
import { begin, pauseSend } from './run.ts';

/**
 * A campaign's way to a whole group: accepted here, once, with everything checked that can be checked without a
 * recipient; sent by campaign-run.ts, which is told by `onChange`. Pausing holds what waits, cancelling calls it
 * off; neither reaches what is being sent at that moment.
 */
export interface CampaignSending {
  send(sender: Sender, campaignId: string, request: CampaignRequest): Promise<SentCampaign | Refusal>;
  pause(accountId: string, campaignId: string): Promise<CampaignRow | Refusal>;
  /** Refused for what would only have it paused again. */
  resume(accountId: string, campaignId: string): Promise<CampaignRow | Refusal>;
  cancel(accountId: string, campaignId: string): Promise<CampaignRow | Refusal>;
  /** How far it has come; null: it is not sent to a group. */
  progress(campaign: CampaignRow): CampaignProgress | null;
}

export interface SentCampaign {
  campaign: CampaignRow;
  /** Whole sentences about what recipients will not see as intended. */
  warnings: string[];
}

export interface CampaignSendingHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  pressure: Pick<Pressure, 'refusal'>;
  /** `public.url`, its port resolved: where links lead unless a domain has a host of its own for them. */
  publicUrl: string;
  /** Told after the commit. */
  onChange(): void;
}

export function createCampaignSending(house: CampaignSendingHouse): CampaignSending {
  const { tables, writer, clock, ids, pressure, publicUrl, onChange } = house;
  const html = createHtmlReader();

  /** The mail as it will be kept, with warnings, or why it cannot be sent. */
  async function checkedMail(
    sender: Sender,
    campaignId: string,
    parsed: ParsedCampaign,
  ): Promise<{ mail: CampaignMail; warnings: string[] } | Refusal> {
    const { account_id } = sender.account;
    const campaign = findCampaign(tables, account_id, campaignId);
    if (isRefusal(campaign)) return campaign;
    const group = findSubscriptionGroup(tables, account_id, parsed.groupId);
    if (isRefusal(group)) return group;
    const wording = wordingOf(tables, sender, parsed.wording);
    if (isRefusal(wording)) return wording;
    const notNew = onlyOnce(campaign);
    if (notNew !== null) return notNew;
    await inSlices(readingWording(wording, html), account_id);
    const ready = readyCampaign(tables, sender, parsed.groupId, { ...parsed, wording }, html);
    if (isRefusal(ready)) return ready;
    const tooMany = tooManyFields(ready.prepared.parts);
    if (tooMany !== null) return tooMany;
    const tooLong = rawInLongHtml(ready.prepared.parts, wording.html);
    if (tooLong !== null) return tooLong;
    const optional = await knownCustomFields(tables, account_id, namesOf(ready.prepared.parts));
    const variables = { ...parsed.variables, ...NOBODY };
    const tried = await inSlices(renderingWording(ready.prepared, variables, optional), account_id);
    if (isRefusal(tried)) return tried;
    const { from, fromDomain, replyTo, trackClicks, trackOpens } = parsed;
    const mail = {
      from,
      fromDomain,
      replyTo,
      wording,
      variables: parsed.variables,
      trackClicks,
      trackOpens,
      optional: [...optional],
    };
    const linkBase = `https://${ready.domain.tracking_host ?? new URL(publicUrl).host}`;
    return { mail, warnings: clippingWarnings(tried.html, { trackClicks, trackOpens, linkBase }) };
  }

  /** Moves a campaign from one of these states, in one unit of work. */
  async function change(
    accountId: string,
    campaignId: string,
    verb: string,
    from: readonly CampaignStatus[],
    move: (all: Tables, send: CampaignSend, now: number) => Refusal | null,
  ): Promise<CampaignRow | Refusal> {
    const changed = await writer.run((all): CampaignRow | Refusal => {
      const campaign = findCampaign(all, accountId, campaignId);
      if (isRefusal(campaign)) return campaign;
      const send = all.campaignSends.get(campaign.seq);
      if (send === null || !from.includes(campaign.status)) {
        return refuse('INVALID_STATE', `a campaign that is ${campaign.status} cannot be ${verb}`);
      }
      return move(all, send, clock.now()) ?? findCampaign(all, accountId, campaignId);
    });
    if (!isRefusal(changed)) onChange();
    return changed;
  }

  return {
    send: async (sender, campaignId, request) => {
      const parsed = parseCampaign(request, clock.now());
      if (isRefusal(parsed)) return parsed;
      const busy = pressure.refusal();
      if (busy !== null) return busy;
      const checked = await checkedMail(sender, campaignId, parsed);
      if (isRefusal(checked)) return checked;
      const { mail, warnings } = checked;
      const { account_id } = sender.account;
      const sent = await writer.run((all): CampaignRow | Refusal => {
        const campaign = findCampaign(all, account_id, campaignId);
        if (isRefusal(campaign)) return campaign;
        const notNew = onlyOnce(campaign);
        if (notNew !== null) return notNew;
        const now = clock.now();
        const later = parsed.scheduledAt !== null && parsed.scheduledAt > now;
        const row = {
          ...NOT_BEGUN,
          campaign_seq: campaign.seq,
          account_id,
          job_id: ids.make('job'),
          subscription_group_id: parsed.groupId,
          scheduled_at: parsed.scheduledAt,
          per_hour: parsed.perHour,
          next_at: now,
          created_at: now,
        };
        all.campaignSends.insert(row, JSON.stringify(mail));
        all.campaigns.setStatus(campaign.seq, later ? 'scheduled' : 'sending', now);
        if (!later) begin(all, campaign.seq, 'sending', now);
        return findCampaign(all, account_id, campaignId);
      });
      if (isRefusal(sent)) return sent;
      onChange();
      return { campaign: sent, warnings };
    },
    pause: (accountId, campaignId) =>
      change(accountId, campaignId, 'paused', ['scheduled', 'sending'], (all, send, now) => {
        pauseSend(all, send, null, now);
        return null;
      }),
    resume: async (accountId, campaignId) => {
      const campaign = findCampaign(tables, accountId, campaignId);
      const kept = isRefusal(campaign) ? null : tables.campaignSends.get(campaign.seq);
      if (kept !== null && !isThrough(kept)) await readAhead(tables, kept, html);
      return change(accountId, campaignId, 'resumed', ['paused'], (all, send, now) => {
        // When everybody has been dealt with, what waits may go whatever became of the rest.
        const ready = isThrough(send) ? null : stillReady(all, send, html);
        if (isRefusal(ready)) return ready;
        const waits = send.started_at === null && send.scheduled_at !== null && send.scheduled_at > now;
        all.campaigns.setStatus(send.campaign_seq, waits ? 'scheduled' : 'sending', now);
        all.campaignSends.update({ ...send, paused_reason: null });
        return null;
      });
    },
    cancel: (accountId, campaignId) =>
      change(
        accountId,
        campaignId,
        'cancelled',
        ['scheduled', 'sending', 'paused', 'sent'],
        (all, send, now) => {
          if (send.status === 'sent' && !all.campaignSends.anyInQueue(send.campaign_seq, { due: false }))
            return refuse('INVALID_STATE', 'the campaign is sent: nothing of it waits any more');
          all.campaigns.setStatus(send.campaign_seq, 'cancelled', now);
          all.campaignSends.update({ ...send, open: 1, paused_reason: null, finished_at: now });
          return null;
        },
      ),
    progress: ({ seq }) => {
      const send = tables.campaignSends.get(seq);
      return send === null ? null : progressOf(send);
    },
  };
}

/** Characters of html with raw variables: it is read anew for every member, as a value may hide the footer. */
const MAX_RAW_HTML = 256 * 1024;

function rawInLongHtml(parts: PreparedWording['parts'], html: string): Refusal | null {
  const isRaw = parts.some(({ field, template }) => field === 'html' && hasRawVariables(template));
  if (!isRaw || html.length <= MAX_RAW_HTML) return null;
  const message = `must be at most ${MAX_RAW_HTML} characters long in a campaign with {{{raw}}} variables`;
  return invalid('html', message);
}

/** A second send would reach people twice, and its counts would be those of two mails. */
function onlyOnce({ status }: CampaignRow): Refusal | null {
  if (status === 'draft') return null;
  const message = `the campaign is ${status}: a campaign is sent once, make a new one to send again`;
  return refuse('INVALID_STATE', message);
}

const NOT_BEGUN = {
  members: null,
  last_seq: null,
  at_seq: 0,
  queued: 0,
  without_email: 0,
  not_eligible: 0,
  not_renderable: 0,
  open: 1,
  paused_reason: null,
  started_at: null,
  finished_at: null,
} as const;

/** How far a campaign has come, as callers see it. */
export interface CampaignProgress {
  jobId: string;
  subscriptionGroupId: string;
  /** Active ones when sending began. */
  members: number | null;
  queued: number;
  skipped: { withoutEmail: number; notEligible: number; notRenderable: number };
  perHour: number | null;
  pausedReason: string | null;
  scheduledAt: string | null;
  startedAt: string | null;
  finishedAt: string | null;
}

function progressOf(send: CampaignSend): CampaignProgress {
  const time = (at: number | null) => (at === null ? null : iso(at));
  return {
    jobId: send.job_id,
    subscriptionGroupId: send.subscription_group_id,
    members: send.members,
    queued: send.queued,
    skipped: {
      withoutEmail: send.without_email,
      notEligible: send.not_eligible,
      notRenderable: send.not_renderable,
    },
    perHour: send.per_hour,
    pausedReason: send.paused_reason,
    scheduledAt: time(send.scheduled_at),
    startedAt: time(send.started_at),
    finishedAt: time(send.finished_at),
  };
}
