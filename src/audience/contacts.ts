import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import type { ConsentRow } from '../store/contacts/consent.ts';
import type { ContactFilter, GlobalStatus, KnownContact } from '../store/contacts/contacts.ts';
import type { Membership } from '../store/contacts/subscriptions.ts';
import type { Context } from '../store/context.ts';
import type { Page } from '../store/rows/page.ts';
import type { MayAdd } from '../store/tables.ts';
import type { Provenance } from './consent.ts';
import { setStatus } from './marketing-status.ts';
import { describesOptOut } from './opt-out.ts';
import { addPerson, changePerson, findPerson, futureConsent } from './people.ts';
import type { ProfileChanges } from './profile.ts';
import { contactSearch, type SearchFilter, type SearchPage } from './search.ts';

/** Changes of a profile, and the status that is set with it (marketing-status.ts). */
export interface ContactChanges extends ProfileChanges {
  globalStatus?: GlobalStatus | undefined;
}

/** Who makes a change, for the consent history. */
export interface Actor {
  by: string;
  ipAddress: string | null;
  userAgent: string | null;
}

/**
 * The contacts of an account. Contacts without a common identifier are different people. Stateless: lists, searches and
 * memberships run through `reader`, `get` and `history` on the calling thread. Each change is one unit of work together
 * with its consent entry and its status.
 */
export function createContacts(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  {
    recorder,
    mayAdd,
  }: {
    recorder: Pick<Recorder, 'optedOut'>;
    /** The limit on the number of an account's contacts. */
    mayAdd: MayAdd;
  },
) {
  const provenance = ({ by, ipAddress, userAgent }: Actor): Provenance => ({
    by,
    ipAddress,
    userAgent,
    at: clock.now(),
  });
  return {
    /** Newest first. */
    list: (filter: ContactFilter): Promise<Page<KnownContact>> =>
      reader.table(filter.accountId, 'contacts', 'list', filter),
    search: (filter: SearchFilter): Promise<SearchPage> =>
      reader.query(filter.accountId, contactSearch, filter),
    get: (accountId: string, identifier: string): KnownContact | Refusal =>
      findPerson(tables, accountId, identifier),
    /** Oldest first. */
    memberships: ({ account_id, seq }: KnownContact): Promise<Membership[]> =>
      reader.table(account_id, 'subscriptions', 'ofContact', seq),
    /** Consent history, newest first; `before`: only entries with a lower number. */
    history: (contact: KnownContact, before: number | null, limit: number): ConsentRow[] =>
      tables.consents.history(contact.seq, before, limit),
    create: async (
      accountId: string,
      { globalStatus, ...profile }: ContactChanges,
      caller: Actor,
    ): Promise<KnownContact | Refusal> => {
      if (profile.email === undefined && profile.phone === undefined)
        return invalid('email', 'an email address or a phone number is required');
      return writer.run((tx): KnownContact | Refusal => {
        const person = {
          accountId,
          source: 'api',
          defaultMethod: 'implicit_api',
          provenance: provenance(caller),
          mayAdd,
        } as const;
        const seq = addPerson(tx, ids, profile, person);
        if (isRefusal(seq)) return seq;
        const change = {
          status: globalStatus,
          consent: profile.consent,
          before: null,
          by: caller.by,
          at: clock.now(),
        };
        return setStatus(tx, recorder, seq, change);
      }, accountId);
    },
    /** `merge`: absent custom fields stay; else the custom fields are replaced as a whole. */
    update: (
      accountId: string,
      identifier: string,
      { globalStatus, ...changes }: ContactChanges,
      { merge, ...caller }: Actor & { merge: boolean },
    ): Promise<KnownContact | Refusal> =>
      writer.run((tx): KnownContact | Refusal => {
        const contact = findPerson(tx, accountId, identifier);
        if (isRefusal(contact)) return contact;
        const how = { merge, defaultMethod: 'implicit_api', provenance: provenance(caller) } as const;
        const isOptOut = globalStatus === 'unsubscribed' && describesOptOut(changes.consent);
        const profile = isOptOut ? { ...changes, consent: undefined } : changes;
        const changed = futureConsent(changes, how.provenance) ?? changePerson(tx, contact, profile, how);
        if (isRefusal(changed)) return changed;
        const change = {
          status: globalStatus,
          consent: changes.consent,
          before: contact,
          by: caller.by,
          at: clock.now(),
        };
        return setStatus(tx, recorder, contact.seq, change);
      }, accountId),
  };
}

export type Contacts = ReturnType<typeof createContacts>;
