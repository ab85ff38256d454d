import { findSubscriptionGroup } from '../audience/groups.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { CampaignSend } from '../store/campaign-sends.ts';
import type { DomainRow } from '../store/domains.ts';
import type { SubscriptionGroupRow } from '../store/subscription-groups.ts';
import type { Tables } from '../store/tables.ts';
import { CONTACT_FIELDS } from './campaign-fields.ts';
import { checkDomain, type Sender } from './checks.ts';
import type { ReadHtml } from './html-reader.ts';
import { type PreparedWording, prepareWording } from './render.ts';
import { collectFaults, type MailRequest, type ParsedMail, parseMail } from './request.ts';
import type { Wording } from './wording.ts';

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

/** The request in narrow types, or a VALIDATION_ERROR with every fault. */
export function parseCampaign(request: CampaignRequest, now: number): ParsedCampaign | Refusal {
  return collectFaults((fault) => {
    const mail = parseMail(request, now, fault);
    for (const name of CONTACT_FIELDS) {
      if (Object.hasOwn(request.templateVariables ?? {}, name))
        fault(`templateVariables.${name}`, 'is each contact’s own in a campaign and cannot be set for all');
    }
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
  readHtml: (html: string) => ReadHtml,
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
  const prepared = prepareWording(tables, account, { ...mail, groupId }, mail.wording, readHtml);
  return isRefusal(prepared) ? prepared : { domain, group, prepared };
}

/** The same for a campaign that was accepted, as things are now; the key that it came with was allowed to. */
export function stillReady(
  tables: Tables,
  send: CampaignSend,
  readHtml: (html: string) => ReadHtml,
): (ReadyCampaign & { mail: CampaignMail }) | Refusal {
  const account = tables.accounts.get(send.account_id);
  if (account === null) throw new Error(`the account of ${send.campaign_id} is gone`);
  // Sound: only campaign-send.ts writes it.
  const mail = JSON.parse(tables.campaignSends.mail(send.campaign_seq)) as CampaignMail;
  const sender: Sender = { account, useCase: 'mk', allowFrom: [] };
  const ready = readyCampaign(tables, sender, send.subscription_group_id, mail, readHtml);
  return isRefusal(ready) ? ready : { ...ready, mail };
}
