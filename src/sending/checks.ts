import { mayReceiveMarketing } from '../audience/eligibility.ts';
import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse, type SubscriptionStatus } from '../core/refusal.ts';
import type { Work } from '../core/slices.ts';
import { domainOf } from '../mail/address.ts';
import { requiredVariables } from '../mail/compliance.ts';
import type { MailingList } from '../mail/content.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { AccountRow } from '../store/accounts.ts';
import type { DomainRow, UseCase } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { type RecipientDetail, suppressedFor, suppressionDetail } from '../suppression/suppression.ts';
import type { Wording } from '../templates/source.ts';
import { appendingFooter } from './footer.ts';
import type { HtmlReader } from './html-reader.ts';
import { type Rendered, renderingSend } from './render.ts';
import type { ParsedSend } from './request.ts';

/**
 * May it go? The checks of a send in the contract's order (§13.1); each has one reason to say no. They read,
 * and never write.
 */
export interface Sender {
  account: AccountRow;
  useCase: UseCase;
  /** From domains the key is tied to, empty: any. */
  allowFrom: string[];
  /** May send essential mail. */
  allowEssential: boolean;
}

export interface Checked {
  domain: DomainRow;
  rendered: Rendered;
  list: MailingList | null;
}

/** In steps. `wording`: what was found under the names that the request gives, which is checked before all this. */
export function* checkingSend(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  wording: Wording,
  means: CheckMeans,
): Work<Checked | Refusal> {
  const domain = checkDomain(tables, sender, send);
  if (isRefusal(domain)) return domain;
  if (send.essential && !sender.allowEssential) return essentialNotAllowed();
  const complete = means.appendFooter
    ? yield* appendingFooter(wording, requiredVariables(send), means.html)
    : wording;
  const rendered = yield* renderingSend(tables, sender.account, send, complete, means.html);
  if (isRefusal(rendered)) return rendered;
  const refused =
    sender.useCase === 'mk'
      ? checkConsent(tables, sender, send, means.simulatorDomain)
      : checkSuppression(tables, sender, send);
  return refused ?? { domain, rendered, list: listOf(tables, sender, send) };
}

export interface CheckMeans {
  html: HtmlReader;
  /** Append the compliance variables that the wording lacks, instead of refusing it. */
  appendFooter: boolean;
  /** Its addresses are nobody's: they need no consent. */
  simulatorDomain: string;
}

/** The list that the mail belongs to: its group, else its campaign, whose name is the account's own business. */
function listOf(
  tables: Tables,
  { account }: Sender,
  { groupId, campaignId }: Pick<ParsedSend, 'groupId' | 'campaignId'>,
): MailingList | null {
  if (groupId === null) return campaignId === null ? null : { id: campaignId, name: '' };
  return { id: groupId, name: tables.subscriptionGroups.get(account.account_id, groupId)?.name ?? '' };
}

/** The From domain is registered here, verified, for this use case, and the key may use it. */
export function checkDomain(
  tables: Tables,
  sender: Sender,
  { fromDomain: name }: Pick<ParsedSend, 'fromDomain'>,
): DomainRow | Refusal {
  const field = (message: string) => ({ details: [{ field: 'from', message }] });
  const registered = tables.domains.named(sender.account.account_id, name);
  if (registered.length === 0) {
    return refuse(
      'DOMAIN_NOT_REGISTERED',
      `The domain ${name} is not registered in this account`,
      field(`${name} is not registered`),
    );
  }
  const verified = registered.filter(({ status }) => status === 'SUCCESS' || status === 'TEMPORARY_FAILURE');
  if (verified.length === 0) {
    return refuse(
      'DOMAIN_NOT_VERIFIED',
      `The domain ${name} is not verified yet: publish its DNS records and verify it`,
      field(`${name} is not verified`),
    );
  }
  const fitting = verified.find(({ use_case }) => use_case === sender.useCase);
  if (fitting === undefined) {
    if (registered.some(({ use_case }) => use_case === sender.useCase)) {
      return refuse(
        'DOMAIN_NOT_VERIFIED',
        `The domain ${name} is not verified yet for this use case`,
        field(`${name} is not verified`),
      );
    }
    const wanted = sender.useCase === 'tx' ? 'transactional' : 'marketing';
    return refuse(
      'USE_CASE_MISMATCH',
      `The domain ${name} is not registered for ${wanted} mail`,
      field(`${name} is for the other use case`),
    );
  }
  if (sender.allowFrom.length > 0 && !sender.allowFrom.includes(name)) {
    return refuse(
      'KEY_NOT_ALLOWED',
      `This API key may not send from ${name}`,
      field(`the key is tied to ${sender.allowFrom.join(', ')}`),
    );
  }
  return fitting;
}

function essentialNotAllowed(): Refusal {
  return refuse('KEY_NOT_ALLOWED', 'This API key may not send essential mail', {
    details: [{ field: 'essential', message: 'the key was created with --no-essential' }],
  });
}

/** Nobody among the recipients is suppressed. */
export function checkSuppression(tables: Tables, sender: Sender, send: ParsedSend): Refusal | null {
  return refusePeople(send, (address, role) => {
    const found = suppressedFor(tables, sender.account.account_id, emailIdentifier(address), {
      useCase: sender.useCase,
      essential: send.essential,
    });
    return found === null ? null : { status: found.status, detail: suppressionDetail(role, address, found) };
  });
}

/** Marketing: nobody is suppressed, and everybody has agreed, to the group where one is named. */
export function checkConsent(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  simulatorDomain: string,
): Refusal | null {
  return refusePeople(send, (address, role) => {
    if (domainOf(address) === simulatorDomain) return null;
    const { account_id } = sender.account;
    const found = mayReceiveMarketing(tables, account_id, emailIdentifier(address), send.groupId);
    if (found === null) return null;
    const { code, message, reason, since, status } = found;
    const detail = {
      field: role,
      message: `${address}: ${message}`,
      code,
      recipient: address,
      reason,
    };
    return { status, detail: since === undefined ? detail : { ...detail, since: iso(since) } };
  });
}

interface RefusedPerson {
  status: SubscriptionStatus;
  detail: RecipientDetail;
}

/** One refused refuses the whole: every one of them stands in the details, the first gives the code. */
function refusePeople(
  send: ParsedSend,
  judge: (address: string, role: string) => RefusedPerson | null,
): Refusal | null {
  const people = send.recipients.flatMap(({ mailbox, role }) => judge(mailbox.address, role) ?? []);
  const [first] = people;
  if (first === undefined) return null;
  const details = people.map(({ detail }) => detail);
  const sentence = details.map(({ message }) => message).join('; ');
  return refuse(first.detail.code, sentence, { details, subscriptionStatus: first.status });
}
