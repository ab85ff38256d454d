import { isoOrNull } from '../core/clock.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import { checkReason } from '../core/reason.ts';
import { invalid, isRefusal, Refusal, refuse } from '../core/refusal.ts';
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
import { type MailRequest, pastScheduleRefusal, trackingDefaults } from '../sending/request.ts';
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
  mailOfVariant,
  type ParsedCampaign,
  parseCampaign,
  type ReadyCampaign,
  readAhead,
  readyCampaign,
  recheckCampaign,
  storedMail,
  type VariantMail,
  variantNames,
} from './mail.ts';
import { begin, pauseSend } from './run.ts';
import { presentTest } from './variant-figures.ts';
import { type CampaignTest, type Decision, hasRest, isComplete, openVariants, testOf } from './variants.ts';

/** The mail of a campaign, with its variables in braces. */
export interface CampaignMailContent extends TemplateContent {
  from: string;
  replyTo: string | null;
  /** The contents of an A/B test; the first one is that of the campaign as well. */
  variants: ({ name: string } & TemplateContent)[];
}

/** Who resumes a campaign, and why; a reason is required where it was stopped automatically. */
export interface Resumption {
  /** The id of an API key or of a person, or the program. */
  by: string;
  reason?: string | undefined;
}

interface CheckedMail {
  mail: CampaignMail;
  test: CampaignTest | null;
  audience: CampaignAudience;
  warnings: string[];
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
  ): Promise<CheckedMail | Refusal> {
    const { account_id } = sender.account;
    const campaign = findCampaign(tables, account_id, campaignId);
    if (isRefusal(campaign)) return campaign;
    const audience = audienceOf(tables, account_id, request);
    if (isRefusal(audience)) return audience;
    const sources = parsed.test?.sources ?? [parsed.source];
    const templates: TemplateContent[] = [];
    for (const [index, source] of sources.entries()) {
      const template = resolveTemplate(tables, sender, source);
      if (isRefusal(template)) return inVariant(template, parsed, index);
      templates.push(template);
    }
    const same = parsed.test === null ? null : sameContent(templates);
    if (same !== null) return same;
    const notDraft = checkDraft(campaign);
    if (notDraft !== null) return notDraft;
    const { from, fromDomain, replyTo, variables, trackClicks, trackOpens } = parsed;
    const labels = parsed.labels === null ? {} : { labels: parsed.labels };
    const fixed = { from, fromDomain, replyTo, variables, trackClicks, trackOpens, ...labels };
    const contents: VariantMail[] = [];
    const warnings = new Set<string>();
    for (const [index, template] of templates.entries()) {
      const tried = await triedContent(sender, audience, parsed, template);
      if (isRefusal(tried)) return inVariant(tried, parsed, index);
      contents.push(tried.content);
      for (const warning of tried.warnings) warnings.add(warning);
    }
    const [first, ...others] = contents;
    if (first === undefined) throw new Error('the campaign has no content');
    const mail = { ...fixed, ...first, ...(others.length === 0 ? {} : { others }) };
    return { mail, test: testFrom(parsed, templates), audience, warnings: [...warnings] };
  }

  /** Checks one content for the whole audience. */
  async function triedContent(
    sender: Sender,
    audience: CampaignAudience,
    parsed: ParsedCampaign,
    template: TemplateContent,
  ): Promise<{ content: VariantMail; warnings: string[] } | Refusal> {
    const { trackClicks, trackOpens } = parsed;
    const tried = isLiquid(template)
      ? await tryLiquid(sender, audience, parsed, template)
      : await trySimple(sender, audience, parsed, template);
    if (isRefusal(tried)) return tried;
    const { rendered, domain, optional, service, warnings } = tried;
    const linkBase = `https://${domain.tracking_host ?? new URL(publicUrl).host}`;
    const clipping = clippingWarnings(rendered, { trackClicks, trackOpens, linkBase });
    const content = {
      wording: template,
      optional: [...optional],
      ...(service === undefined ? {} : { service }),
    };
    return { content, warnings: [...warnings, ...clipping] };
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

  /** Repeats the checks for each variant of an accepted campaign. */
  function recheckAll(all: Tables, send: CampaignSend): Refusal | null {
    const mail = storedMail(all, send);
    for (const variant of openVariants(send)) {
      const ready = recheckCampaign(all, send, htmlReader, mailOfVariant(mail, variant));
      if (isRefusal(ready)) return ready;
    }
    return null;
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
      const trackingOf = trackingDefaults(tables, sender.account.account_id, sender.useCase);
      const parsed = parseCampaign(request, clock.now(), trackingOf);
      if (isRefusal(parsed)) return parsed;
      const past = pastScheduleRefusal(parsed, clock.now());
      if (past !== null) return past;
      const busy = pressure.refusal(sender.account.account_id);
      if (busy !== null) return busy;
      const checked = await checkedMail(sender, campaignId, parsed, request);
      if (isRefusal(checked)) return checked;
      const { mail, test, audience, warnings } = checked;
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
          test: test === null ? null : JSON.stringify(test),
          simulated: sender.isSimulation === true ? (1 as const) : (0 as const),
          scheduled_at: parsed.scheduledAt,
          per_hour: parsed.perHour,
          next_at: now,
          created_at: now,
        };
        tx.campaignSends.insert(row, JSON.stringify(mail));
        for (const variant of test?.variants.keys() ?? []) tx.campaignVariants.add(campaign.seq, variant + 1);
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
        const ready = isComplete(send) ? null : recheckAll(tx, send);
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
    /** Ends an A/B test: everybody who has no message yet receives this variant. `variant`: its name. */
    choose: (
      accountId: string,
      campaignId: string,
      { variant: name, by }: { variant: string; by: string },
    ): Promise<CampaignRow | Refusal> =>
      change(accountId, campaignId, 'given a winner', ['scheduled', 'sending', 'paused'], (tx, send, now) => {
        const test = testOf(send);
        if (test === null || !hasRest(test))
          return refuse(
            'INVALID_STATE',
            `Campaign ${campaignId} has no A/B test after which others receive the winner`,
          );
        const variant = test.variants.findIndex((one) => one.name === name);
        if (variant === -1)
          return invalid('variant', `must be one of ${test.variants.map((one) => one.name).join(', ')}`);
        if (send.decision !== null)
          return refuse('INVALID_STATE', `The A/B test of campaign ${campaignId} is already decided`);
        const counts = tx.campaignVariants.counts(send.campaign_seq);
        const decision: Decision = { variant, reason: 'chosen', at: now, by, counts };
        tx.campaignSends.update({ ...send, decision: JSON.stringify(decision) });
        return null;
      }),
    /** Returns null if the campaign is not sent to a group. */
    progress: ({ seq }: CampaignRow) => {
      const send = tables.campaignSends.get(seq);
      if (send === null) return null;
      const test = presentTest(tables, send);
      return { ...presentProgress(send, isCancellable(tables, send)), ...(test === null ? {} : { test }) };
    },
    /** The mail of a campaign to try: as it was sent or is prepared, with the fields that `given` replaces. */
    testMail: (
      campaign: CampaignRow,
      { variant, ...given }: TestedMail & { variant?: string | undefined },
    ): MailRequest | Refusal => {
      if (variant !== undefined && hasContent(given))
        return invalid('variant', 'cannot be given together with a content');
      const own = testedMail(tables, campaign, variant);
      if (isRefusal(own)) return own;
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
      const { from, replyTo, wording, others = [] } = storedMail(tables, send);
      const names = testOf(send)?.variants ?? [];
      const variants = [wording, ...others.map((own) => own.wording)].map((content, index) => ({
        name: names[index]?.name ?? '',
        ...content,
      }));
      return {
        from: formatMailbox(from),
        replyTo: replyTo === null ? null : [replyTo].flat().map(formatMailbox).join(', '),
        ...wording,
        variants: names.length === 0 ? [] : variants,
      };
    },
  };
}

export type CampaignSending = ReturnType<typeof createCampaignSending>;

/** What of a mail a request to try it may replace. */
type TestedMail = { [Field in keyof MailRequest]?: MailRequest[Field] | undefined };

/** The mail of a campaign, or of one of its variants by name: as it was sent, or as it is prepared. */
function testedMail(tables: Tables, campaign: CampaignRow, name: string | undefined): TestedMail | Refusal {
  const send = tables.campaignSends.get(campaign.seq);
  const prepared = send === null ? (readPrepared(campaign.prepared) ?? {}) : {};
  const named = send === null ? (prepared.variants ?? []) : (testOf(send)?.variants ?? []);
  const names = variantNames(named);
  const variant = name === undefined ? 0 : names.indexOf(name);
  if (variant === -1) {
    const fault =
      names.length === 0 ? 'has no effect: the campaign has none' : `must be one of ${names.join(', ')}`;
    return invalid('variant', fault);
  }
  if (send !== null) return sentMail(mailOfVariant(storedMail(tables, send), variant));
  const { subject = prepared.subject, templateId = prepared.templateId } = prepared.variants?.[variant] ?? {};
  return { ...prepared, subject, templateId };
}

function hasContent({ templateId, html, text }: TestedMail): boolean {
  return [templateId, html, text].some((part) => part !== undefined);
}

function sentMail({ from, replyTo, wording, variables }: CampaignMail): MailRequest {
  return {
    from: formatMailbox(from),
    replyTo: replyTo === null ? undefined : [replyTo].flat().map(formatMailbox),
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

/** The test in its stored form; null: there is one content. */
function testFrom({ test }: ParsedCampaign, templates: readonly TemplateContent[]): CampaignTest | null {
  if (test === null) return null;
  const { share, winner, waitHours, names } = test;
  const variants = templates.map(({ subject }, index) => ({ name: names[index] ?? '', subject }));
  return { share, winner, waitHours, variants };
}

/** Two variants with one content would be a test without a question. */
function sameContent(templates: readonly TemplateContent[]): Refusal | null {
  const known = templates.map((template) => JSON.stringify(template));
  const index = known.findIndex((one, at) => known.indexOf(one) < at);
  return index === -1
    ? null
    : invalid(`variants[${index}]`, 'has the subject and content of another variant');
}

/** Says which variant a refusal of its content is about. */
function inVariant(refusal: Refusal, { test }: ParsedCampaign, index: number): Refusal {
  if (test === null) return refusal;
  const details = refusal.extras.details?.map((detail) =>
    detail.field !== undefined && CONTENT_FIELDS.includes(detail.field)
      ? { ...detail, field: `variants[${index}].${detail.field}` }
      : detail,
  );
  const message = `Variant ${test.names[index] ?? ''}: ${refusal.message}`;
  return new Refusal(refusal.code, message, {
    ...refusal.extras,
    ...(details === undefined ? {} : { details }),
  });
}

const CONTENT_FIELDS = ['subject', 'html', 'text', 'templateId'];

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
  test: null,
  decide_at: null,
  decision: null,
  in_rest: 0,
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
    livemode: send.simulated === 0,
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
