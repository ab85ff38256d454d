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
import { collectFaults, type MailRequest, type ParsedMail, parseMail } from '../sending/request.ts';
import type { AccountRow } from '../store/accounts.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { isLiquid } from '../templates/liquid.ts';
import type { TemplateContent } from '../templates/templates.ts';
import type { AudienceRequest } from './campaigns.ts';
import { CONTACT_FIELDS } from './fields.ts';

/*
 * The mail of a campaign and the checks that depend on no recipient. They run when it is accepted and again for each
 * batch, because a domain or a group can be deleted, or the account disabled, while it is being sent.
 */

/** A campaign to its audience, as requested. */
export interface CampaignRequest extends MailRequest, AudienceRequest {
  /** Maximum number of messages an hour, from 1. */
  perHour?: number | undefined;
}

export interface ParsedCampaign extends ParsedMail {
  /** Null: as fast as delivery permits. */
  perHour: number | null;
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
}

/** Characters of a campaign's variables as JSON, which are inserted for each member. */
const MAX_VARIABLES_LENGTH = 64 * 1024;

/** Parses a request into narrow types; refuses it with a VALIDATION_ERROR that lists the faults. */
export function parseCampaign(request: CampaignRequest, now: number): ParsedCampaign | Refusal {
  return collectFaults((fault) => {
    const mail = parseMail(request, now, fault);
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
    return { ...mail, perHour: request.perHour ?? null };
  });
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
  const { wording } = storedMail(tables, send);
  if (!isLiquid(wording)) await inSlices(parseContentInSteps(wording, htmlReader), send.account_id);
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
