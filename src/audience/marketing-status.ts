import { iso } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import type { GlobalStatus, KnownContact } from '../store/contacts/contacts.ts';
import type { SuppressionReason } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import { isNewConsent } from './consent.ts';
import { addOptOut, apiOptOut, marketingOptOuts } from './opt-out.ts';
import { identifiersOf, reread } from './people.ts';
import type { ConsentInput } from './profile.ts';
import { marketingStanding, statusOf } from './standing.ts';

/**
 * `globalStatus` as a caller sets it. `unsubscribed` records a marketing opt-out. `active` ends one, but only together
 * with new consent; the other values record a suppression with their reason.
 */
export interface StatusChange {
  status: GlobalStatus | undefined;
  /** The consent fields of the request; with the status `unsubscribed` and no method they describe the opt-out. */
  consent: ConsentInput | null | undefined;
  /** The contact before this request; null: it is new. */
  before: KnownContact | null;
  /** Who makes the change; null: the recipient, whose own changes are not among the removals of suppressions. */
  by: string | null;
  at: number;
}

/** Sets the status of the contact `seq` in a unit of work and returns the changed contact. */
export function setStatus(
  tables: Tables,
  recorder: Pick<Recorder, 'optedOut'>,
  seq: number,
  change: StatusChange,
): KnownContact | Refusal {
  const contact = reread(tables, seq);
  const { status } = change;
  if (status === undefined) return contact;
  const refusal = statusRefusal(tables, recorder, contact, { ...change, status });
  return refusal ?? reread(tables, seq);
}

function statusRefusal(
  tables: Tables,
  recorder: Pick<Recorder, 'optedOut'>,
  contact: KnownContact,
  change: StatusChange & { status: GlobalStatus },
): Refusal | null {
  const { status } = change;
  if (status === 'unsubscribed') {
    optOut(tables, recorder, contact, change);
    return null;
  }
  if (status === contact.global_status) return null;
  if (status === 'active') return endOptOut(tables, contact, change);
  suppress(tables, contact, SUPPRESSION_REASONS[status], change);
  return null;
}

/** The reasons whose suppressions have these statuses (standing.ts). */
const SUPPRESSION_REASONS = {
  bounced: 'hard_bounce',
  complained: 'complaint',
  suppressed: 'manual',
} as const satisfies Record<Exclude<GlobalStatus, 'active' | 'unsubscribed'>, SuppressionReason>;

/** Records a suppression of all mail; an existing one with the reason is not changed. */
function suppress(
  tables: Tables,
  contact: KnownContact,
  reason: SuppressionReason,
  { at }: Pick<StatusChange, 'at'>,
): void {
  const [identifier] = identifiersOf(contact);
  if (identifier === undefined) return;
  const { account_id, email } = contact;
  tables.suppressions.add({
    account_id,
    recipient_hash: identifier,
    stream: 'all',
    reason,
    email,
    message_seq: null,
    created_at: at,
  });
  updateStatus(tables, contact, identifier, at);
}

/** Records an opt-out; an existing one is not changed. */
function optOut(
  tables: Tables,
  recorder: Pick<Recorder, 'optedOut'>,
  contact: KnownContact,
  { consent, before, by, at }: StatusChange,
): void {
  const [identifier] = identifiersOf(contact);
  if (identifier === undefined || marketingOptOuts(tables, contact.account_id, identifier).length > 0) return;
  // The consent of a new contact is recorded with the fields of its request.
  const evidence = before === null ? null : consent;
  const provenance = { by: by ?? 'recipient', ipAddress: null, userAgent: null, at };
  // The history has one entry if the same request withdraws the consent.
  const isWithdrawn = consent === null && before !== null && before.consent_n !== null;
  addOptOut(
    tables,
    {
      account_id: contact.account_id,
      recipient_hash: identifier,
      stream: 'mk',
      email: contact.email,
      message_seq: null,
      created_at: at,
    },
    isWithdrawn ? null : apiOptOut(evidence, provenance),
  );
  updateStatus(tables, contact, identifier, at);
  recorder.optedOut(tables, {
    accountId: contact.account_id,
    domainId: null,
    fields: {
      method: 'api',
      scope: 'marketing',
      useCase: 'mk',
      ...(contact.email === null ? {} : { recipient: contact.email }),
      contactIdentifier: identifier,
    },
  });
}

function endOptOut(
  tables: Tables,
  contact: KnownContact,
  { consent, before, by, at }: StatusChange,
): Refusal | null {
  const { account_id: accountId } = contact;
  const [identifier] = identifiersOf(contact);
  const standing = identifier === undefined ? null : marketingStanding(tables, accountId, identifier);
  if (identifier === undefined || standing === null) return null;
  const since = iso(standing.row.created_at);
  const refused = (message: string) =>
    refuse('INVALID_STATE', message, {
      details: [{ field: 'globalStatus', message, reason: standing.row.reason, since }],
    });
  if (standing.status !== 'unsubscribed')
    return refused(
      `The contact has had the status "${standing.status}" since ${since}: remove its suppression with DELETE /web-setup/suppressions before you set globalStatus to "active".`,
    );
  if (!isNewConsent(before, consent ?? null, standing.row.created_at))
    return refused(
      `The contact opted out of marketing mail at ${since}: globalStatus can be set to "active" only together with new consent: an express consentMethod, and as evidence a consentTimestamp after the opt-out, consentDetails, a consentIpAddress or a consentUserAgent, which differ from the recorded ones.`,
    );
  for (const row of marketingOptOuts(tables, accountId, identifier)) {
    tables.suppressions.remove(row.seq);
    if (by !== null) tables.suppressionRemovals.record(row, { note: null, by, at });
    // Consent to marketing does not end an opt-out from transactional mail.
    if (row.stream === 'all') tables.suppressions.add({ ...row, stream: 'tx' });
  }
  updateStatus(tables, contact, identifier, at);
  return null;
}

function updateStatus(tables: Tables, contact: KnownContact, identifier: string, at: number): void {
  const status = statusOf(tables, contact.account_id, identifier);
  tables.contacts.setStatus(contact.account_id, identifier, status, at);
}
