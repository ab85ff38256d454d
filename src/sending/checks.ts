import {
  isRefusal,
  type Refusal,
  type RefusalDetail,
  refuse,
  type SubscriptionStatus,
} from '../core/refusal.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { AccountRow } from '../store/accounts.ts';
import type { DomainRow, UseCase } from '../store/domains.ts';
import type { Tables } from '../store/tables.ts';
import type { ReadHtml } from './html-reader.ts';
import { type Rendered, renderSend } from './render.ts';
import type { ParsedSend } from './request.ts';
import { suppressedFor, suppressionDetail } from './suppression.ts';
import type { Wording } from './wording.ts';

/**
 * May it go? The checks of a send in the contract's order (§13.1); each has one reason to say no. They read,
 * and never write.
 */
export interface Sender {
  account: AccountRow;
  useCase: UseCase;
  /** From domains the key is tied to, empty: any. */
  allowFrom: string[];
}

export interface Checked {
  domain: DomainRow;
  rendered: Rendered;
}

/** `wording`: what was found under the names that the request gives, which is checked before all this. */
export function checkSend(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  wording: Wording,
  readHtml: (html: string) => ReadHtml,
): Checked | Refusal {
  const domain = checkDomain(tables, sender, send);
  if (isRefusal(domain)) return domain;
  const rendered = renderSend(tables, sender.account, send, wording, readHtml);
  if (isRefusal(rendered)) return rendered;
  return checkSuppression(tables, sender, send) ?? { domain, rendered };
}

/** The From domain is registered here, verified, for this use case, and the key may use it. */
export function checkDomain(tables: Tables, sender: Sender, send: ParsedSend): DomainRow | Refusal {
  const name = send.fromDomain;
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

/** Nobody among the recipients is suppressed; every one who is stands in the details, the first gives the code. */
export function checkSuppression(tables: Tables, sender: Sender, send: ParsedSend): Refusal | null {
  const details: RefusalDetail[] = [];
  let first: { code: 'RECIPIENT_SUPPRESSED' | 'RECIPIENT_UNSUBSCRIBED'; status: SubscriptionStatus } | null =
    null;
  for (const { mailbox, role } of send.recipients) {
    const found = suppressedFor(
      tables,
      sender.account.account_id,
      emailIdentifier(mailbox.address),
      sender.useCase,
    );
    if (found === null) continue;
    first ??= { code: found.code, status: found.status };
    details.push(suppressionDetail(role, mailbox.address, found));
  }
  if (first === null) return null;
  return refuse(first.code, details.map(({ message }) => message).join('; '), {
    details,
    subscriptionStatus: first.status,
  });
}
