import { isoOrNull } from '../core/clock.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import { checkReason } from '../core/reason.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { RateFigures } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import { formatMailbox } from '../mail/address.ts';
import { hidingVariable } from '../mail/compliance.ts';
import { RESUMED } from '../reputation/limits.ts';
import type { Sender } from '../sending/checks.ts';
import type { Pressure } from '../sending/pressure.ts';
import { clippingWarnings } from '../sending/render/clipping.ts';
import { createHtmlReader, type HtmlReader } from '../sending/render/html-reader.ts';
import {
  foreignSyntaxRefusal,
  leftoverWarnings,
  misnamedRefusal,
  namesOf,
  type PreparedTemplate,
  parseContentInSteps,
  type Rendered,
  renderPreparedInSteps,
} from '../sending/render/render.ts';
import { renderLiquidContent } from '../sending/render/render-liquid.ts';
import { type MailRequest, pastScheduleRefusal } from '../sending/request.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { CampaignRow, CampaignStatus } from '../store/campaigns/campaigns.ts';
import type { Context } from '../store/context.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { isLiquid, type LiquidContent, readLiquid } from '../templates/liquid.ts';
import { resolveTemplate, type TemplateContent } from '../templates/templates.ts';
import type { TemplateThreads } from '../templates/thread/threads.ts';
import { audienceOf, type CampaignAudience, readAudience, writeAudience } from './audience.ts';
import { type AudienceRequest, findCampaign, readPrepared } from './campaigns.ts';
import { createContactFieldNames, EMPTY_CONTACT, isCustomField, tooManyFields } from './fields.ts';
import { seenNow } from './guard.ts';
import {
  type CampaignMail,
  type CampaignRequest,
  type ParsedCampaign,
  parseCampaign,
  type ReadyCampaign,
  readAhead,
  readyCampaign,
  recheckCampaign,
  storedMail,
} from './mail.ts';
import { begin, isComplete, pauseSend } from './run.ts';

/** The mail of a campaign, with its variables in braces. */
export interface CampaignMailContent extends TemplateContent {
  from: string;
  replyTo: string | null;
}

/** Who resumes a campaign, and why; a reason is required where it was stopped automatically. */
export interface Resumption {
  /** The id of an API key, the address of a person, or the program. */
  by: string;
  reason?: string | undefined;
}

/** A mail as a contact without values would receive it. */
interface TriedMail {
  rendered: Rendered;
  domain: DomainRow;
  /** Fields of contacts that are empty where a contact does not have them. */
  optional: ReadonlySet<string>;
  /** The variables of the service that a mail in Liquid uses. */
  service?: string[];
  /** Sentences about text in braces that is sent unchanged. */
  warnings: string[];
}

export interface SentCampaign {
  campaign: CampaignRow;
  /** Sentences about parts that recipients will not see as intended. */
  warnings: string[];
}

/**
 * Accepts a campaign that is sent to a group, and pauses, resumes and cancels it. All checks that need no recipient run
 * here, before the response; the runner sends the campaign. Pausing holds queued messages and cancelling cancels them;
 * messages that are being sent are not affected. Starts nothing, and puts no mail into the queue: `onChange`, called
 * after the commit of each accepted change, wakes the runner, which otherwise notices within a second. Its cache of
 * parsed HTML is separate from that of the runner.
 */
export function createCampaignSending(
  context: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  {
    recorder,
    pressure,
    publicUrl,
    threads,
    onChange,
  }: {
    recorder: Pick<Recorder, 'account'>;
    pressure: Pick<Pressure, 'refusal'>;
    /** `public.url` with its actual port: the base of links, except for domains with a link host. */
    publicUrl: string;
    /** Renders Liquid. */
    threads: TemplateThreads;
    /** Called after the commit. */
    onChange(): void;
  },
) {
  const { tables, writer, clock, ids } = context;
  const htmlReader = createHtmlReader();
  const marksReader = createHtmlReader('marks');
  const fields = createContactFieldNames(context.reader);

  /** Returns the mail in its stored form with warnings, or the reason for which it cannot be sent. */
  async function checkedMail(
    sender: Sender,
    campaignId: string,
    parsed: ParsedCampaign,
    request: AudienceRequest,
  ): Promise<{ mail: CampaignMail; audience: CampaignAudience; warnings: string[] } | Refusal> {
    const { account_id } = sender.account;
    const campaign = findCampaign(tables, account_id, campaignId);
    if (isRefusal(campaign)) return campaign;
    const audience = audienceOf(tables, account_id, request);
    if (isRefusal(audience)) return audience;
    const template = resolveTemplate(tables, sender, parsed.source);
    if (isRefusal(template)) return template;
    const notDraft = checkDraft(campaign);
    if (notDraft !== null) return notDraft;
    const { from, fromDomain, replyTo, trackClicks, trackOpens } = parsed;
    const fixed = {
      from,
      fromDomain,
      replyTo,
      wording: template,
      variables: parsed.variables,
      trackClicks,
      trackOpens,
      ...(parsed.labels === null ? {} : { labels: parsed.labels }),
    };
    const tried = isLiquid(template)
      ? await tryLiquid(sender, audience, parsed, template)
      : await trySimple(sender, audience, parsed, template);
    if (isRefusal(tried)) return tried;
    const { rendered, domain, optional, service, warnings } = tried;
    const linkBase = `https://${domain.tracking_host ?? new URL(publicUrl).host}`;
    const clipping = clippingWarnings(rendered, { trackClicks, trackOpens, linkBase });
    const mail = { ...fixed, optional: [...optional], ...(service === undefined ? {} : { service }) };
    return { mail, audience, warnings: [...warnings, ...clipping] };
  }

  /** Checks the mail for each group of the audience; the result for the first one. */
  function readyForAll(
    sender: Sender,
    { groupIds }: CampaignAudience,
    parsed: ParsedCampaign,
    wording: TemplateContent,
    reader: HtmlReader,
  ): ReadyCampaign | Refusal {
    const ready = groupIds.map((groupId) =>
      readyCampaign(tables, sender, groupId, { ...parsed, wording }, reader),
    );
    return ready.find(isRefusal) ?? ready[0] ?? invalid('subscriptionGroupId', 'is required');
  }

  async function trySimple(
    sender: Sender,
    audience: CampaignAudience,
    parsed: ParsedCampaign,
    template: TemplateContent,
  ): Promise<TriedMail | Refusal> {
    const { account_id } = sender.account;
    await inSlices(parseContentInSteps(template, htmlReader), account_id);
    const ready = readyForAll(sender, audience, parsed, template, htmlReader);
    if (isRefusal(ready)) return ready;
    const { parts } = ready.prepared;
    const refusal =
      tooManyFields(parts.map(({ field, template: { names } }) => ({ field, names }))) ??
      rawInLongHtml(parts, template.html) ??
      foreignSyntaxRefusal(parts) ??
      misnamedRefusal(parts, (name) => Object.hasOwn(parsed.variables, name) || isCustomField(name));
    if (refusal !== null) return refusal;
    const optional = await fields.known(account_id, namesOf(parts));
    const variables = { ...parsed.variables, ...EMPTY_CONTACT };
    const rendered = await inSlices(renderPreparedInSteps(ready.prepared, variables, optional), account_id);
    if (isRefusal(rendered)) return rendered;
    return { rendered, domain: ready.domain, optional, warnings: leftoverWarnings(parts) };
  }

  /** Renders the mail for a contact without values, and checks the result. */
  async function tryLiquid(
    sender: Sender,
    audience: CampaignAudience,
    parsed: ParsedCampaign,
    template: LiquidContent,
  ): Promise<TriedMail | Refusal> {
    const { account_id } = sender.account;
    const read = await readLiquid(threads, account_id, template);
    if (isRefusal(read)) return read;
    const refusal = tooManyFields([{ field: 'html', names: read.names }]);
    if (refusal !== null) return refusal;
    const optional = await fields.known(account_id, read.names);
    const variables = { ...parsed.variables, ...EMPTY_CONTACT };
    const content = await renderLiquidContent(threads, account_id, template, variables, (name) =>
      optional.has(name),
    );
    if (isRefusal(content)) return content;
    await inSlices(parseContentInSteps(content, marksReader), account_id);
    const ready = readyForAll(sender, audience, parsed, content, marksReader);
    if (isRefusal(ready)) return ready;
    const rendered = await inSlices(renderPreparedInSteps(ready.prepared, {}), account_id);
    if (isRefusal(rendered)) return rendered;
    const service = [...new Set(Object.values(read.service).flat())];
    return { rendered, domain: ready.domain, optional, service, warnings: [] };
  }

  /** Changes a campaign that has one of these states, in one unit of work. */
  async function change(
    accountId: string,
    campaignId: string,
    verb: string,
    from: readonly CampaignStatus[],
    move: (all: Tables, send: CampaignSend, now: number) => Refusal | null,
  ): Promise<CampaignRow | Refusal> {
    const changed = await writer.run((tx): CampaignRow | Refusal => {
      const campaign = findCampaign(tx, accountId, campaignId);
      if (isRefusal(campaign)) return campaign;
      const send = tx.campaignSends.get(campaign.seq);
      if (send === null || !from.includes(campaign.status)) {
        return refuse('INVALID_STATE', `Campaign ${campaignId} is ${campaign.status} and cannot be ${verb}`);
      }
      return move(tx, send, clock.now()) ?? findCampaign(tx, accountId, campaignId);
    }, accountId);
    if (!isRefusal(changed)) onChange();
    return changed;
  }

  return {
    send: async (
      sender: Sender,
      campaignId: string,
      request: CampaignRequest,
    ): Promise<SentCampaign | Refusal> => {
      const parsed = parseCampaign(request, clock.now());
      if (isRefusal(parsed)) return parsed;
      const past = pastScheduleRefusal(parsed, clock.now());
      if (past !== null) return past;
      const busy = pressure.refusal(sender.account.account_id);
      if (busy !== null) return busy;
      const checked = await checkedMail(sender, campaignId, parsed, request);
      if (isRefusal(checked)) return checked;
      const { mail, audience, warnings } = checked;
      const { account_id } = sender.account;
      const sent = await writer.run((tx): CampaignRow | Refusal => {
        const campaign = findCampaign(tx, account_id, campaignId);
        if (isRefusal(campaign)) return campaign;
        const notDraft = checkDraft(campaign);
        if (notDraft !== null) return notDraft;
        const now = clock.now();
        const later = parsed.scheduledAt !== null && parsed.scheduledAt > now;
        const row = {
          ...NOT_STARTED,
          campaign_seq: campaign.seq,
          account_id,
          job_id: ids.make('job'),
          subscription_group_id: audience.groupIds[0] ?? '',
          audience: writeAudience(audience),
          scheduled_at: parsed.scheduledAt,
          per_hour: parsed.perHour,
          next_at: now,
          created_at: now,
        };
        tx.campaignSends.insert(row, JSON.stringify(mail));
        tx.campaigns.setStatus(campaign.seq, later ? 'scheduled' : 'sending', now);
        // An audience is counted in a reader thread first.
        if (!later && row.audience === null) begin(tx, campaign.seq, 'sending', now);
        return findCampaign(tx, account_id, campaignId);
      }, account_id);
      if (isRefusal(sent)) return sent;
      onChange();
      return { campaign: sent, warnings };
    },
    pause: (accountId: string, campaignId: string): Promise<CampaignRow | Refusal> =>
      change(accountId, campaignId, 'paused', ['scheduled', 'sending'], (tx, send, now) => {
        pauseSend(tx, send, { reason: null, figures: null }, now);
        return null;
      }),
    /**
     * Refused while there is a reason that would pause it again, and without a reason if the campaign was stopped
     * automatically: the results until now no longer stop it.
     */
    resume: async (
      accountId: string,
      campaignId: string,
      { reason, by }: Resumption,
    ): Promise<CampaignRow | Refusal> => {
      const campaign = findCampaign(tables, accountId, campaignId);
      const paused = isRefusal(campaign) ? null : tables.campaignSends.get(campaign.seq);
      if (paused !== null && !isComplete(paused)) await readAhead(tables, paused, htmlReader);
      return change(accountId, campaignId, 'resumed', ['paused'], (tx, send, now) => {
        // When all members were processed, the held messages can be sent whatever has changed since.
        const ready = isComplete(send) ? null : recheckCampaign(tx, send, htmlReader);
        if (isRefusal(ready)) return ready;
        if (send.paused_figures !== null) {
          const fault = checkReason(reason ?? '', RESUMED);
          if (fault !== null) return fault;
        }
        const waits = send.started_at === null && send.scheduled_at !== null && send.scheduled_at > now;
        tx.campaigns.setStatus(send.campaign_seq, waits ? 'scheduled' : 'sending', now);
        const resumed = { ...send, paused_reason: null, paused_figures: null };
        if (send.paused_figures === null) {
          tx.campaignSends.update(resumed);
          return null;
        }
        tx.campaignSends.update({ ...resumed, seen_counts: seenNow(tx, send, now) });
        recorder.account(tx, { accountId }, 'sending_resumed', {
          campaignId,
          by,
          reason: (reason ?? '').trim(),
        });
        return null;
      });
    },
    cancel: (accountId: string, campaignId: string): Promise<CampaignRow | Refusal> =>
      change(accountId, campaignId, 'cancelled', CANCELLABLE, (tx, send, now) => {
        if (!isCancellable(tx, send))
          return refuse('INVALID_STATE', `Campaign ${campaignId} is sent: none of its messages is queued`);
        tx.campaigns.setStatus(send.campaign_seq, 'cancelled', now);
        tx.campaignSends.update({
          ...send,
          open: 1,
          paused_reason: null,
          paused_figures: null,
          finished_at: now,
        });
        return null;
      }),
    /** Returns null if the campaign is not sent to a group. */
    progress: ({ seq }: CampaignRow) => {
      const send = tables.campaignSends.get(seq);
      return send === null ? null : presentProgress(send, isCancellable(tables, send));
    },
    /** The mail of a campaign to try: as it was sent or is prepared, with the fields that `given` replaces. */
    testMail: (campaign: CampaignRow, given: TestedMail): MailRequest | Refusal => {
      const send = tables.campaignSends.get(campaign.seq);
      const own: TestedMail =
        send === null ? (readPrepared(campaign.prepared) ?? {}) : sentMail(storedMail(tables, send));
      const { templateId, html, text, syntax } = hasContent(given) ? given : own;
      const from = given.from ?? own.from;
      if (from === undefined) return invalid('from', 'is required: the campaign has none');
      if (!hasContent({ templateId, html, text }))
        return invalid('templateId', 'is required, or html or text: the campaign has no content');
      return {
        from,
        subject: given.subject ?? own.subject,
        templateId,
        html,
        text,
        syntax,
        replyTo: own.replyTo,
        templateVariables: { ...own.templateVariables, ...given.templateVariables },
      };
    },
    /** Sender and content for all recipients. Refused if the campaign is not sent to a group. */
    content: (accountId: string, campaignId: string): CampaignMailContent | Refusal => {
      const campaign = findCampaign(tables, accountId, campaignId);
      if (isRefusal(campaign)) return campaign;
      const send = tables.campaignSends.get(campaign.seq);
      if (send === null)
        return refuse('INVALID_STATE', 'The campaign is not sent to a group: it has no content');
      const { from, replyTo, wording } = storedMail(tables, send);
      return {
        from: formatMailbox(from),
        replyTo: replyTo === null ? null : formatMailbox(replyTo),
        ...wording,
      };
    },
  };
}

export type CampaignSending = ReturnType<typeof createCampaignSending>;

/** What of a mail a request to try it may replace. */
type TestedMail = { [Field in keyof MailRequest]?: MailRequest[Field] | undefined };

function hasContent({ templateId, html, text }: TestedMail): boolean {
  return [templateId, html, text].some((part) => part !== undefined);
}

function sentMail({ from, replyTo, wording, variables }: CampaignMail): MailRequest {
  return {
    from: formatMailbox(from),
    replyTo: replyTo === null ? undefined : formatMailbox(replyTo),
    subject: wording.subject,
    html: wording.html === '' ? undefined : wording.html,
    text: wording.text ?? undefined,
    syntax: isLiquid(wording) ? 'liquid' : 'simple',
    templateVariables: variables,
  };
}

/** Characters of HTML with variables that are raw or in styles: it is parsed for each member, since a value can hide the footer. */
const MAX_RAW_HTML = 256 * 1024;

function rawInLongHtml(parts: PreparedTemplate['parts'], html: string): Refusal | null {
  const isRaw = parts.some(({ field, template }) => field === 'html' && hidingVariable(template) !== null);
  if (!isRaw || html.length <= MAX_RAW_HTML) return null;
  const message = `must have at most ${MAX_RAW_HTML} characters in a campaign with {{{raw}}} variables or variables in styles`;
  return invalid('html', message);
}

/** A second send would reach recipients twice and mix the counts of two mails. */
function checkDraft({ status }: CampaignRow): Refusal | null {
  if (status === 'draft') return null;
  const message = `The campaign is ${status} and can be sent only once: create a new one to send again`;
  return refuse('INVALID_STATE', message);
}

const NOT_STARTED = {
  members: null,
  last_seq: null,
  at_seq: 0,
  queued: 0,
  without_email: 0,
  not_eligible: 0,
  not_renderable: 0,
  open: 1,
  paused_reason: null,
  paused_figures: null,
  seen_counts: null,
  started_at: null,
  finished_at: null,
  audience: null,
} as const;

const CANCELLABLE: readonly CampaignStatus[] = ['scheduled', 'sending', 'paused', 'sent'];

/** Whether a cancellation has an effect: a campaign that is sent can have deferred messages. */
function isCancellable({ campaignSends }: Tables, { status, campaign_seq }: CampaignSend): boolean {
  return (
    CANCELLABLE.includes(status) &&
    (status !== 'sent' || campaignSends.anyInQueue(campaign_seq, { due: false }))
  );
}

/** What of the audience is more than a group. */
function presentAudience(send: CampaignSend) {
  const audience = readAudience(send);
  if (audience === null) return {};
  const { groupIds, segmentId, excludeSegmentIds, excludeCampaignIds } = audience;
  return {
    subscriptionGroupIds: groupIds,
    ...(segmentId === null ? {} : { segmentId }),
    excludeSegmentIds,
    excludeCampaignIds,
  };
}

function presentProgress(send: CampaignSend, cancellable: boolean) {
  return {
    jobId: send.job_id,
    subscriptionGroupId: send.subscription_group_id,
    ...presentAudience(send),
    // Active members when sending began.
    members: send.members,
    queued: send.queued,
    skipped: {
      withoutEmail: send.without_email,
      notEligible: send.not_eligible,
      notRenderable: send.not_renderable,
    },
    perHour: send.per_hour,
    pausedReason: send.paused_reason,
    ...(send.paused_figures === null
      ? {}
      : // Sound: only the runner writes it.
        { pausedFigures: JSON.parse(send.paused_figures) as RateFigures }),
    scheduledAt: isoOrNull(send.scheduled_at),
    startedAt: isoOrNull(send.started_at),
    finishedAt: isoOrNull(send.finished_at),
    cancellable,
  };
}
