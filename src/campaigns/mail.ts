import { findSubscriptionGroup } from '../audience/groups.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { inSlices } from '../core/slices.ts';
import { checkDomain, type Sender } from '../sending/checks.ts';
import type { HtmlReader } from '../sending/html-reader.ts';
import { type PreparedWording, prepareWording, readingWording } from '../sending/render.ts';
import { collectFaults, type MailRequest, type ParsedMail, parseMail } from '../sending/request.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import type { Wording } from '../templates/source.ts';
import { CONTACT_FIELDS } from './fields.ts';

/**
 * What a campaign sends, and what must be right about it, whoever it goes to: when it is accepted, and again for
 * every portion of it, because a domain or a group may go, or an account be disabled, while it is under way.
 */
export interface CampaignRequest extends MailRequest {
  subscriptionGroupId: string;
  /** Messages an hour at most, from 1. */
  perHour?: number | undefined;
}

export interface ParsedCampaign extends ParsedMail {
  groupId: string;
  /** Null: as fast as mail leaves. */
  perHour: number | null;
}

/** The mail as it is kept while it is sent: in its own words, even where a template was named. */
export interface CampaignMail
  extends Pick<ParsedMail, 'from' | 'fromDomain' | 'replyTo' | 'variables' | 'trackClicks' | 'trackOpens'> {
  wording: Wording;
  /** Fields of contacts that may be missing, and are empty then. */
  optional: readonly string[];
}

/** Characters of a campaign's variables as JSON: they are filled in anew for every member. */
const MAX_VARIABLES = 64 * 1024;

/** The request in narrow types, or a VALIDATION_ERROR with every fault. */
export function parseCampaign(request: CampaignRequest, now: number): ParsedCampaign | Refusal {
  return collectFaults((fault) => {
    const mail = parseMail(request, now, fault);
    for (const name of CONTACT_FIELDS) {
      if (Object.hasOwn(request.templateVariables ?? {}, name))
        fault(`templateVariables.${name}`, 'is each contact’s own in a campaign and cannot be set for all');
    }
    if (JSON.stringify(request.templateVariables ?? {}).length > MAX_VARIABLES)
      fault('templateVariables', `must be at most ${MAX_VARIABLES} characters of JSON in a campaign`);
    if (mail === null) return null;
    return { ...mail, groupId: request.subscriptionGroupId, perHour: request.perHour ?? null };
  });
}

export interface ReadyCampaign {
  domain: DomainRow;
  group: SubscriptionGroupRow;
  prepared: PreparedWording;
}

/** What stands in a campaign's way, in the contract's order of checks (§13.1), or what it is sent with. */
export function readyCampaign(
  tables: Tables,
  sender: Sender,
  groupId: string,
  mail: Pick<CampaignMail, 'from' | 'fromDomain' | 'wording'>,
  html: HtmlReader,
): ReadyCampaign | Refusal {
  const { account } = sender;
  if (account.status !== 'active') return refuse('ACCOUNT_DISABLED', 'The account is disabled');
  const group = findSubscriptionGroup(tables, account.account_id, groupId);
  if (isRefusal(group)) return group;
  if (group.is_active === 0) {
    const message = `The subscription group ${group.name} is switched off: nobody in it may be written to`;
    return refuse('INVALID_STATE', message);
  }
  const domain = checkDomain(tables, sender, mail);
  if (isRefusal(domain)) return domain;
  const prepared = prepareWording(
    tables,
    account,
    { ...mail, groupId, essential: false },
    mail.wording,
    html,
  );
  return isRefusal(prepared) ? prepared : { domain, group, prepared };
}

export function keptMail(tables: Tables, { campaign_seq }: Pick<CampaignSend, 'campaign_seq'>): CampaignMail {
  // Sound: only campaign-send.ts writes it.
  return JSON.parse(tables.campaignSends.mail(campaign_seq)) as CampaignMail;
}

/** Parses an accepted campaign's mail in slices, ahead of the unit of work that needs it. */
export async function readAhead(
  tables: Tables,
  send: Pick<CampaignSend, 'campaign_seq' | 'account_id'>,
  html: HtmlReader,
): Promise<void> {
  await inSlices(readingWording(keptMail(tables, send).wording, html), send.account_id);
}

/** The same for a campaign that was accepted, as things are now; the key that it came with was allowed to. */
export function stillReady(
  tables: Tables,
  send: CampaignSend,
  html: HtmlReader,
  mail: CampaignMail = keptMail(tables, send),
): (ReadyCampaign & { mail: CampaignMail }) | Refusal {
  const account = tables.accounts.get(send.account_id);
  if (account === null) throw new Error(`the account of ${send.campaign_id} is gone`);
  const sender: Sender = { account, useCase: 'mk', allowFrom: [], allowEssential: false };
  const ready = readyCampaign(tables, sender, send.subscription_group_id, mail, html);
  return isRefusal(ready) ? ready : { ...ready, mail };
}
