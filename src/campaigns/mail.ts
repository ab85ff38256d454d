import type { PageLanguage } from '../accounts/page-texts.ts';
import { findSubscriptionGroup } from '../audience/groups.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { requiredVariables } from '../mail/compliance.ts';
import { checkDomain, type Sender } from '../sending/checks.ts';
import type { HtmlReader } from '../sending/render/html-reader.ts';
import {
  type PreparedTemplate,
  parseContentInSteps,
  prepareIn,
  prepareTemplate,
  serviceOf,
  type TemplateContext,
} from '../sending/render/render.ts';
import {
  collectFaults,
  type MailRequest,
  type ParsedMail,
  parseMail,
  parseSource,
  type TrackingDefaults,
} from '../sending/request.ts';
import type { AccountRow } from '../store/accounts.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import { MAX_VARIANTS, MIN_VARIANTS } from '../store/campaigns/campaign-variants.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { isLiquid } from '../templates/liquid.ts';
import type { TemplateContent, TemplateSource } from '../templates/templates.ts';
import type { AudienceRequest } from './campaigns.ts';
import { CONTACT_FIELDS } from './fields.ts';
import type { CampaignTest, TestRequest } from './variants.ts';

/*
 * The mail of a campaign and the checks that depend on no recipient. They run when it is accepted and again for each
 * batch, because a domain or a group can be deleted, or the account disabled, while it is being sent.
 */

/** A campaign to its audience, as requested. */
export interface CampaignRequest extends MailRequest, AudienceRequest {
  /** Maximum number of messages an hour, from 1. */
  perHour?: number | undefined;
  /** Contents of an A/B test, with `test`. */
  variants?: VariantRequest[] | undefined;
  test?: TestRequest | undefined;
}

/** Replaces the subject of the campaign, or its content: a template, or html with its text. */
export interface VariantRequest
  extends Pick<MailRequest, 'templateId' | 'subject' | 'html' | 'text' | 'syntax'> {
  /** Default: A, B, C or D. */
  name?: string | undefined;
}

export interface ParsedCampaign extends ParsedMail {
  /** Null: as fast as delivery permits. */
  perHour: number | null;
  /** Null: one content. */
  test: ParsedTest | null;
}

/** `sources`: of the variants, the first of which is that of the campaign as well. */
interface ParsedTest extends Omit<CampaignTest, 'variants'> {
  names: string[];
  sources: TemplateSource[];
}

/** The mail in its stored form (JSON): with the content of the template, where the request named one. */
export interface CampaignMail
  extends Pick<ParsedMail, 'from' | 'fromDomain' | 'replyTo' | 'variables' | 'trackClicks' | 'trackOpens'> {
  /** The name is part of the stored form. */
  wording: TemplateContent;
  /** Fields of contacts that are empty where a contact does not have them. */
  optional: readonly string[];
  /** The variables of the service that a wording in Liquid uses. */
  service?: readonly string[];
  /** Tags and metadata in their stored form; absent: none. */
  labels?: string;
  /** The contents of the variants after the first one. */
  others?: readonly VariantMail[];
}

export type VariantMail = Pick<CampaignMail, 'wording' | 'optional' | 'service'>;

/** The mail of a variant, from 0. */
export function mailOfVariant({ others = [], ...mail }: CampaignMail, variant: number): CampaignMail {
  if (variant === 0) return mail;
  const own = others[variant - 1];
  if (own === undefined) throw new Error(`the campaign has no variant ${variant}`);
  const { service: _, ...shared } = mail;
  return { ...shared, ...own };
}

/** Characters of a campaign's variables as JSON, which are inserted for each member. */
const MAX_VARIABLES_LENGTH = 64 * 1024;

/** Parses a request into narrow types; refuses it with a VALIDATION_ERROR that lists the faults. */
export function parseCampaign(
  request: CampaignRequest,
  now: number,
  trackingOf: (domain: string) => TrackingDefaults,
): ParsedCampaign | Refusal {
  return collectFaults((report) => {
    const fault = onceEach(report);
    const { variants } = request;
    const mail =
      variants === undefined
        ? parseMail(request, now, fault, trackingOf)
        : parseMail(
            contentOfVariant(request, variants[0] ?? {}),
            now,
            faultOfVariant(variants, 0, fault),
            trackingOf,
          );
    const test = parseTest(request, mail, fault);
    for (const name of CONTACT_FIELDS) {
      if (Object.hasOwn(request.templateVariables ?? {}, name))
        fault(
          `templateVariables.${name}`,
          'is a field of each contact in a campaign and cannot be set for all',
        );
    }
    if (JSON.stringify(request.templateVariables ?? {}).length > MAX_VARIABLES_LENGTH)
      fault(
        'templateVariables',
        `must have at most ${MAX_VARIABLES_LENGTH} characters as JSON in a campaign`,
      );
    if (mail === null) return null;
    return {
      ...mail,
      perHour: request.perHour ?? null,
      test: test === null ? null : { ...test, sources: [mail.source, ...test.sources] },
    };
  });
}

type OnFault = (field: string, message: string) => void;

const VARIANT_NAMES = ['A', 'B', 'C', 'D'];
/** The names of variants, in their order. */
export function variantNames(variants: readonly Pick<VariantRequest, 'name'>[]): string[] {
  return variants.map(({ name }, index) => name ?? VARIANT_NAMES[index] ?? '');
}

/** A month, as far as a campaign can be scheduled ahead. */
export const MAX_WAIT_HOURS = 720;

/** Parses the variants after the first one, and how they are tested. */
function parseTest(request: CampaignRequest, mail: ParsedMail | null, fault: OnFault): ParsedTest | null {
  const { variants, test } = request;
  if (variants === undefined) {
    if (test !== undefined) fault('variants', 'is required with test');
    return null;
  }
  if (variants.length < MIN_VARIANTS || variants.length > MAX_VARIANTS)
    fault('variants', `must have ${MIN_VARIANTS} to ${MAX_VARIANTS} entries`);
  const names = variantNames(variants);
  for (const [index, name] of names.entries())
    if (names.indexOf(name) < index) fault(`variants[${index}].name`, `is that of another variant: ${name}`);
  for (const [index, own] of variants.entries()) {
    if (own.text !== undefined && own.html === undefined)
      fault(`variants[${index}].text`, 'needs the html of the variant');
    if (own.syntax !== undefined && own.html === undefined)
      fault(`variants[${index}].syntax`, 'needs the html of the variant');
  }
  const sources = variants
    .slice(1)
    .map((own, index) =>
      parseSource(contentOfVariant(request, own), faultOfVariant(variants, index + 1, fault)),
    );
  if (test === undefined) {
    fault('test', 'is required with variants');
    return null;
  }
  const { share, winner, waitHours = null } = test;
  if (share === 100 && winner !== 'none')
    fault('test.winner', 'must be none with a share of 100: no recipients remain for a winner');
  if (share < 100 && winner === 'none')
    fault('test.winner', 'must be opens or clicks with a share below 100: the others receive the winner');
  if (winner === 'none' && waitHours !== null) fault('test.waitHours', 'has no effect without a winner');
  if (winner !== 'none' && waitHours === null)
    fault('test.waitHours', `is required with the winner ${winner}`);
  if (winner === 'opens' && mail?.trackOpens === false)
    fault('test.winner', 'needs enableOpenTracking to find the winner by opens');
  if (winner === 'clicks' && mail?.trackClicks === false)
    fault('test.winner', 'needs enableClickTracking to find the winner by clicks');
  return { share, winner, waitHours, names, sources };
}

/** The request with the content of a variant. */
function contentOfVariant(request: CampaignRequest, own: VariantRequest): CampaignRequest {
  const { templateId, html, text, subject = request.subject, syntax = request.syntax } = own;
  if (templateId === undefined && html === undefined) return { ...request, subject };
  const content = { templateId, subject, html, text };
  return { ...request, ...content, syntax: templateId === undefined ? syntax : own.syntax };
}

/** Variants can have a fault in common, that of a field which they do not replace. */
function onceEach(fault: OnFault): OnFault {
  const reported = new Set<string>();
  return (field, message) => {
    if (reported.has(`${field}: ${message}`)) return;
    reported.add(`${field}: ${message}`);
    fault(field, message);
  };
}

/** Names the fields that a variant replaces. */
function faultOfVariant(variants: readonly VariantRequest[], index: number, fault: OnFault): OnFault {
  const own: Readonly<Record<string, unknown>> = { ...variants[index] };
  return (field, message) => fault(own[field] === undefined ? field : `variants[${index}].${field}`, message);
}

export interface ReadyCampaign {
  account: AccountRow;
  domain: DomainRow;
  group: SubscriptionGroupRow;
  prepared: PreparedTemplate;
}

/** Checks account, group, From domain and compliance, in the order of the checks of a send (sending/checks.ts). */
export function readyCampaign(
  tables: Tables,
  sender: Sender,
  groupId: string,
  mail: Pick<CampaignMail, 'from' | 'fromDomain' | 'wording' | 'service'>,
  htmlReader: HtmlReader,
): ReadyCampaign | Refusal {
  const { account } = sender;
  if (account.status !== 'active') return refuse('ACCOUNT_DISABLED', 'The account is disabled');
  const group = findSubscriptionGroup(tables, account.account_id, groupId);
  if (isRefusal(group)) return group;
  if (group.is_active === 0) {
    const message = `The subscription group ${group.name} is inactive: its members receive no mail`;
    return refuse('INVALID_STATE', message);
  }
  const domain = checkDomain(tables, sender, mail);
  if (isRefusal(domain)) return domain;
  const send = { ...mail, groupId, essential: false };
  const prepared = isLiquid(mail.wording)
    ? prepareLiquid(tables, account, send, mail.wording, mail.service ?? [])
    : prepareTemplate(tables, account, send, mail.wording, htmlReader);
  return isRefusal(prepared) ? prepared : { account, domain, group, prepared };
}

/** Characters of HTML that is prepared in one language only: the contents of a campaign are in memory in all of them. */
const MAX_TRANSLATED = 1024 * 1024;

/** The campaign for people with this language of the public pages: the same if nothing in its mail depends on it. */
export function campaignIn<Ready extends ReadyCampaign>(
  tables: Tables,
  ready: Ready,
  mail: Pick<CampaignMail, 'from' | 'fromDomain' | 'wording'>,
  language: PageLanguage,
): Ready {
  if (mail.wording.html.length > MAX_TRANSLATED) return ready;
  const send = { from: mail.from, fromDomain: mail.fromDomain, groupId: ready.group.subscription_group_id };
  const prepared = prepareIn(tables, ready.account, send, mail.wording, ready.prepared, language);
  return prepared === ready.prepared ? ready : { ...ready, prepared };
}

/** A wording in Liquid has no template here: a thread renders it, and finds what each copy shows (liquid.ts). */
function prepareLiquid(
  tables: Tables,
  account: AccountRow,
  send: TemplateContext,
  wording: TemplateContent,
  inserted: readonly string[],
): PreparedTemplate | Refusal {
  const service = serviceOf(tables, account, send, wording, inserted);
  return isRefusal(service) ? service : { parts: [], service, required: requiredVariables(send), inserted };
}

/** Reads the mail of an accepted campaign. */
export function storedMail(
  tables: Tables,
  { campaign_seq }: Pick<CampaignSend, 'campaign_seq'>,
): CampaignMail {
  // Sound: only createCampaignSending writes it.
  return JSON.parse(tables.campaignSends.mail(campaign_seq)) as CampaignMail;
}

/** Parses an accepted campaign's mail in slices, ahead of the unit of work that needs it. */
export async function readAhead(
  tables: Tables,
  send: Pick<CampaignSend, 'campaign_seq' | 'account_id'>,
  htmlReader: HtmlReader,
): Promise<void> {
  const { wording, others = [] } = storedMail(tables, send);
  for (const content of [wording, ...others.map((own) => own.wording)])
    if (!isLiquid(content)) await inSlices(parseContentInSteps(content, htmlReader), send.account_id);
}

/** Repeats the checks for an accepted campaign, without those of the API key. */
export function recheckCampaign(
  tables: Tables,
  send: CampaignSend,
  htmlReader: HtmlReader,
  mail: CampaignMail = storedMail(tables, send),
): (ReadyCampaign & { mail: CampaignMail }) | Refusal {
  const account = tables.accounts.get(send.account_id);
  if (account === null) throw new Error(`the account of campaign ${send.campaign_id} does not exist`);
  const sender: Sender = { account, useCase: 'mk', allowFrom: [], allowEssential: false };
  const ready = readyCampaign(tables, sender, send.subscription_group_id, mail, htmlReader);
  return isRefusal(ready) ? ready : { ...ready, mail };
}
