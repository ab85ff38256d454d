import { MINUTE } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { SignUp } from '../mail/tokens.ts';
import type { SignUpEvidence } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Context } from '../store/context.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { Provenance } from './consent.ts';
import type { Actor } from './contacts.ts';
import { findSubscriptionGroup, signUpFormOf } from './groups.ts';
import { setStatus } from './marketing-status.ts';
import { knownIdentifiers, returnToGroup } from './opt-out.ts';
import { addPerson, changePerson, reread } from './people.ts';
import type { ConsentInput } from './profile.ts';
import { signUpConfirmed } from './sequences/entries.ts';
import { changeMembership, joinGroup } from './subscriptions.ts';

/**
 * `open`: it can be confirmed. `confirmed`: this link or a newer one of the group was confirmed, and the person is still
 * subscribed. `ended`: it confirms nothing any more.
 */
export type SignUpState = 'open' | 'confirmed' | 'ended';

const SOURCE = 'sign_up_form';
const METHOD = 'double_opt_in';

/**
 * Confirmations of sign-ups, each of which takes effect once: the link remains in a mail, and anyone who has the mail
 * can open it again. A link whose form was sent before an opt-out or an erasure of the person has no effect. Stateless:
 * the state of a link follows from closed sign-ups, opt-outs, suppressions and the membership. `confirm` is one unit of
 * work, and also refuses an unknown group and a contact above the account's limit.
 */
export function createSignUps(
  { tables, writer, clock, ids }: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids'>,
  { recorder, mayAdd }: { recorder: Pick<Recorder, 'optedOut'>; mayAdd: MayAdd },
) {
  return {
    state: (accountId: string, signUp: SignUp): SignUpState => {
      const group = tables.subscriptionGroups.get(accountId, signUp.groupId);
      return group === null ? 'ended' : stateOf(tables, group, signUp);
    },
    /**
     * Records the consent with its evidence, ends earlier opt-outs, and adds the contact to the group. Changes nothing
     * unless the state is `open`. Returns the state afterwards.
     */
    confirm: (accountId: string, signUp: SignUp, actor: Actor): Promise<SignUpState | Refusal> =>
      writer.run((tx): SignUpState | Refusal => {
        const group = findSubscriptionGroup(tx, accountId, signUp.groupId);
        if (isRefusal(group)) return group;
        const state = stateOf(tx, group, signUp);
        if (state !== 'open') return state;
        return (
          subscribe({ ids, recorder, mayAdd }, tx, group, signUp, { ...actor, at: clock.now() }) ??
          'confirmed'
        );
      }, accountId),
  };
}

function stateOf(tables: Tables, group: SubscriptionGroupRow, { email, at }: SignUp): SignUpState {
  const { account_id: accountId, subscription_group_id: groupId } = group;
  const identifier = emailIdentifier(email);
  const contact = tables.contacts.byIdentifier(accountId, identifier);
  const isEnded =
    tables.closedSignUps.isErased(accountId, identifier, at) ||
    optedOutAfter(tables, group, { identifier, contact, at });
  if (isEnded) return 'ended';
  if (!tables.closedSignUps.isUsed(accountId, identifier, groupId, at)) return 'open';
  const membership = contact === null ? null : tables.subscriptions.get(group.seq, contact.seq);
  return membership?.is_active === 1 ? 'confirmed' : 'ended';
}

/** Whether the person opted out of the group or of marketing mail after the form was sent. */
function optedOutAfter(
  tables: Tables,
  group: SubscriptionGroupRow,
  { identifier, contact, at }: { identifier: string; contact: KnownContact | null; at: number },
): boolean {
  return [...knownIdentifiers(identifier, contact)].some(
    (each) =>
      (tables.groupOptOuts.since(group.seq, each) ?? 0) > at ||
      tables.suppressions
        .of(group.account_id, each)
        .some((row) => row.reason === 'unsubscribe' && row.stream !== 'tx' && row.created_at > at),
  );
}

/** Returns null when the person is subscribed. */
function subscribe(
  { ids, recorder, mayAdd }: { ids: Ids; recorder: Pick<Recorder, 'optedOut'>; mayAdd: MayAdd },
  tx: Tables,
  group: SubscriptionGroupRow,
  { email, firstName, lastName, language, at }: SignUp,
  provenance: Provenance,
): Refusal | null {
  const { account_id: accountId, subscription_group_id: groupId } = group;
  const identifier = emailIdentifier(email);
  const consent: ConsentInput = {
    method: METHOD,
    details: `Form of ${group.name.slice(0, 200)}, sent ${new Date(at).toISOString()}, confirmed by mail`,
    ipAddress: provenance.ipAddress,
    userAgent: provenance.userAgent,
    consentedAt: provenance.at,
    signUp: signUpEvidence(tx, group, { identifier, formSentAt: at }),
  };
  const before = tx.contacts.byIdentifier(accountId, identifier);
  const profile = {
    ...(firstName === '' ? {} : { firstName }),
    ...(lastName === '' ? {} : { lastName }),
    // The language that the person chose before counts more than that of a browser.
    ...(language === null || (before !== null && before.language !== null) ? {} : { language }),
    consent,
  };
  const defaults = { defaultMethod: METHOD, provenance } as const;
  const changed =
    before === null
      ? addPerson(tx, ids, { ...profile, email }, { accountId, source: SOURCE, mayAdd, ...defaults })
      : changePerson(tx, before, profile, { merge: true, ...defaults });
  if (isRefusal(changed)) return changed;
  const contact = tx.contacts.byIdentifier(accountId, identifier);
  if (contact === null)
    throw new Error('the contact does not exist after its sign-up in the same unit of work');
  // After a bounce or a complaint this is refused: the person stays blocked, but is a member.
  setStatus(tx, recorder, contact.seq, { status: 'active', consent, before, by: null, at: provenance.at });
  returnToGroup(tx, group, identifier, { method: 'page', provenance });
  const input = { isActive: true, consent, source: SOURCE };
  const member = reread(tx, contact.seq);
  if (tx.subscriptions.get(group.seq, contact.seq) === null)
    joinGroup(tx, group, member, { ...input, defaultSource: SOURCE, ...defaults });
  else changeMembership(tx, group, member, input, provenance);
  signUpConfirmed(tx, groupId, contact, provenance.at);
  tx.closedSignUps.close(
    { account_id: accountId, recipient_hash: identifier, subscription_group_id: groupId },
    at,
    provenance.at,
  );
  return null;
}

/** The mail is accepted right after the form was sent, unless the daemon is busy. */
const MAX_MAIL_DELAY_MS = MINUTE;
/** Messages to the person in that minute among which the mail is searched. */
const MAX_CANDIDATES = 50;

/** The form of the group and the confirmation mail, as they are now. */
function signUpEvidence(
  tables: Tables,
  group: SubscriptionGroupRow,
  { identifier, formSentAt }: { identifier: string; formSentAt: number },
): SignUpEvidence {
  const { name, description } = group;
  const form = signUpFormOf(group);
  const { rows } = tables.messages.list({
    accountId: group.account_id,
    recipientHash: identifier,
    from: formSentAt,
    to: formSentAt + MAX_MAIL_DELAY_MS,
    limit: MAX_CANDIDATES,
  });
  const mail = rows.findLast((row) => row.essential === 1 && row.use_case === 'tx');
  return {
    subscriptionGroupId: group.subscription_group_id,
    formSentAt,
    form: { group: name, description },
    mail:
      mail === undefined
        ? null
        : {
            messageId: mail.message_id,
            from: mail.from_address,
            subject: mail.subject,
            intro: form?.intro ?? null,
            acceptedAt: mail.created_at,
          },
  };
}
