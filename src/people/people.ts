import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { parseMailbox } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import type { MemberRole, PersonRow } from '../store/people/people.ts';
import type { Tables } from '../store/tables.ts';
import { createLink, type IssuedLink } from './links.ts';
import {
  type ConsolePerson,
  clearCredentials,
  MAX_MEMBERSHIPS,
  MAX_PEOPLE,
  newPerson,
  presentPerson,
} from './person.ts';
import type { Standing } from './roles.ts';

/** An account that a person may use. */
export interface AccountMembership {
  accountId: string;
  accountName: string;
  role: Standing;
}

export interface PersonInput {
  email: string;
  name?: string | undefined;
}

export interface PersonPatch {
  name?: string | undefined;
  language?: string | null | undefined;
  shortcuts?: boolean | undefined;
  failureMail?: boolean | undefined;
}

/** A person with a new link, which is shown once. */
export interface Invited {
  person: ConsolePerson;
  link: IssuedLink;
}

/** Who requests a change: an operator of the installation, or an owner of the account. */
export type RequestedBy = 'operator' | 'owner';

export const MAX_MEMBERS = 500;
export const MAX_LISTED_ACCOUNTS = 500;
const MAX_NAME = 100;

/**
 * Stateless: each change is one unit of work, in which the limits and the last operator or owner are checked. Unknown
 * people and members are refused with NOT_FOUND.
 */
export function createPeople(context: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids'>) {
  const { tables, writer, clock } = context;
  const change = (personId: string, fields: Partial<PersonRow>) => (tx: Tables) => {
    const row = tx.people.get(personId);
    if (row === null) return noPerson();
    const next = { ...row, ...fields, updated_at: clock.now() };
    tx.people.update(next);
    return presentPerson(tx, next);
  };

  return {
    get: (personId: string): ConsolePerson | null => {
      const row = tables.people.get(personId);
      return row === null ? null : presentPerson(tables, row);
    },
    /** All people of the installation, oldest first, up to MAX_PEOPLE. */
    list: (): ConsolePerson[] => tables.people.list(MAX_PEOPLE).map((row) => presentPerson(tables, row)),
    /** The members of an account, oldest first. */
    members: (accountId: string) =>
      tables.memberships
        .ofAccount(accountId, MAX_MEMBERS)
        .map((row) => ({ ...presentPerson(tables, row), role: row.role })),
    /** The accounts of a person: for an operator the first MAX_LISTED_ACCOUNTS of all. */
    memberships: ({ id, operator }: Pick<ConsolePerson, 'id' | 'operator'>): AccountMembership[] =>
      operator
        ? tables.accounts
            .list()
            .slice(0, MAX_LISTED_ACCOUNTS)
            .map((row) => ({ accountId: row.account_id, accountName: row.name, role: 'operator' as const }))
        : tables.memberships.ofPerson(id, MAX_MEMBERSHIPS).map((row) => ({
            accountId: row.account_id,
            accountName: row.account_name,
            role: row.role,
          })),
    /** The role of a person in an account; null: none, or there is no such account. */
    standing: (
      { id, operator }: Pick<ConsolePerson, 'id' | 'operator'>,
      accountId: string,
    ): Standing | null => {
      if (operator) return tables.accounts.get(accountId) === null ? null : 'operator';
      return tables.memberships.get(id, accountId)?.role ?? null;
    },
    /**
     * Creates an operator with a sign-in link. An existing person becomes an operator and loses all credentials and
     * sessions: an owner of an account may have created them in the name of another person. A person who is an operator
     * already, other than by a group, only gets a link.
     */
    createOperator: async (input: PersonInput): Promise<Invited | Refusal> => {
      const checked = checkPerson(input);
      if (isRefusal(checked)) return checked;
      return writer.run((tx): Invited | Refusal => {
        const person = findOrCreate(context, tx, checked, true);
        if (isRefusal(person)) return person;
        return { person: presentPerson(tx, person), link: createLink(context, tx, person, 'sign-in') };
      });
    },
    /**
     * Adds a person to an account. The link, which signs in as the person, is issued for new people only: otherwise,
     * everyone who sees it could sign in as an existing one. Owners cannot add existing people, whose identity they do
     * not know.
     */
    invite: async (
      accountId: string,
      input: PersonInput & { role: MemberRole },
      by: RequestedBy,
    ): Promise<(Omit<Invited, 'link'> & { link: IssuedLink | null }) | Refusal> => {
      const checked = checkPerson(input);
      if (isRefusal(checked)) return checked;
      return writer.run((tx) => {
        if (tx.accounts.get(accountId) === null)
          return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
        const known = tx.people.byEmail(checked.email.toLowerCase());
        if (known !== null && tx.memberships.get(known.person_id, accountId) !== null)
          return refuse('INVALID_STATE', `${checked.email} is already a member of the account`);
        if (known !== null && by === 'owner')
          return refuse(
            'INVALID_STATE',
            `${checked.email} uses the console already: ask an operator to add this person to the account`,
          );
        if (tx.memberships.countOf(accountId) >= MAX_MEMBERS)
          return refuse('LIMIT_REACHED', `An account has at most ${MAX_MEMBERS} members`);
        if (
          known !== null &&
          tx.memberships.ofPerson(known.person_id, MAX_MEMBERSHIPS).length >= MAX_MEMBERSHIPS
        )
          return refuse('LIMIT_REACHED', `A person is a member of at most ${MAX_MEMBERSHIPS} accounts`);
        const person = findOrCreate(context, tx, checked, false);
        if (isRefusal(person)) return person;
        tx.memberships.put({
          person_id: person.person_id,
          account_id: accountId,
          role: input.role,
          source: 'invitation',
          created_at: clock.now(),
        });
        return {
          person: presentPerson(tx, person),
          link: known === null ? createLink(context, tx, person, 'invitation') : null,
        };
      });
    },
    /** Refuses the last owner of an account a lower role. */
    setRole: (accountId: string, personId: string, role: MemberRole): Promise<Refusal | null> =>
      writer.run((tx): Refusal | null => {
        const membership = tx.memberships.get(personId, accountId);
        if (membership === null) return noMember();
        if (role !== 'owner' && isLastOwner(tx, accountId, personId)) return lastOwner(accountId);
        tx.memberships.put({ ...membership, role, source: 'invitation' });
        return null;
      }),
    /** Ends a membership; deletes a person without others. Refuses the last owner of an account. */
    removeMember: (accountId: string, personId: string): Promise<Refusal | null> =>
      writer.run((tx): Refusal | null => {
        if (tx.memberships.get(personId, accountId) === null) return noMember();
        if (isLastOwner(tx, accountId, personId)) return lastOwner(accountId);
        tx.memberships.remove(personId, accountId);
        const person = tx.people.get(personId);
        if (person?.operator === 0 && tx.memberships.ofPerson(personId, 1).length === 0)
          tx.people.remove(personId);
        return null;
      }),
    update: async (personId: string, patch: PersonPatch): Promise<ConsolePerson | Refusal> => {
      const name = patch.name === undefined ? undefined : checkName(patch.name);
      if (isRefusal(name)) return name;
      return writer.run(
        change(personId, {
          ...(name === undefined ? {} : { name }),
          ...(patch.language === undefined ? {} : { language: patch.language }),
          ...(patch.shortcuts === undefined ? {} : { shortcuts: patch.shortcuts ? 1 : 0 }),
          ...(patch.failureMail === undefined ? {} : { failure_mail: patch.failureMail ? 1 : 0 }),
        }),
      );
    },
    /** Disabling ends all sessions. Refuses the last active operator. */
    setStatus: (personId: string, status: PersonRow['status']): Promise<ConsolePerson | Refusal> =>
      writer.run((tx): ConsolePerson | Refusal => {
        const row = tx.people.get(personId);
        if (row === null) return noPerson();
        if (status === 'disabled') {
          if (isLastOperator(tx, row)) return lastOperator();
          tx.consoleSessions.removeOf(personId, null);
          tx.signInLinks.removeOf(personId);
        }
        return change(personId, { status })(tx);
      }),
    /** A sign-in link for a person. `recovery` removes all other credentials and ends all sessions. */
    issueLink: (personId: string, purpose: 'sign-in' | 'recovery'): Promise<Invited | Refusal> =>
      writer.run((tx): Invited | Refusal => linkFor(context, tx, personId, purpose)),
    /**
     * A recovery link for a member. Owners recover only those without other roles: the link would sign in with these.
     */
    recoverMember: (accountId: string, personId: string, by: RequestedBy): Promise<Invited | Refusal> =>
      writer.run((tx): Invited | Refusal => {
        if (tx.memberships.get(personId, accountId) === null) return noMember();
        const isOperator = tx.people.get(personId)?.operator === 1;
        if (by === 'owner' && (isOperator || tx.memberships.ofPerson(personId, 2).length > 1))
          return refuse('INVALID_STATE', 'This person has other roles: ask an operator for the link');
        return linkFor(context, tx, personId, 'recovery');
      }),
    /**
     * Deletes a person with sessions and credentials. Refuses the last active operator and the last owner of an
     * account.
     */
    remove: (personId: string): Promise<Refusal | null> =>
      writer.run((tx): Refusal | null => {
        const row = tx.people.get(personId);
        if (row === null) return noPerson();
        if (isLastOperator(tx, row)) return lastOperator();
        const owned = tx.memberships
          .ofPerson(personId, MAX_MEMBERSHIPS)
          .find(({ account_id }) => isLastOwner(tx, account_id, personId));
        if (owned !== undefined) return lastOwner(owned.account_id);
        tx.people.remove(personId);
        return null;
      }),
  };
}

export type People = ReturnType<typeof createPeople>;

/** The person with the address: an existing one, who becomes an operator if `operator` is set, or a new one. */
function findOrCreate(
  { ids, clock }: Pick<Context, 'ids' | 'clock'>,
  tx: Tables,
  { email, name }: { email: string; name: string },
  operator: boolean,
): PersonRow | Refusal {
  const now = clock.now();
  const known = tx.people.byEmail(email.toLowerCase());
  if (known !== null) {
    if (known.status === 'disabled')
      return refuse('INVALID_STATE', `${email} is disabled: enable the person first`);
    if (!operator || (known.operator === 1 && known.operator_by_group === 0)) return known;
    return clearCredentials(tx, { ...known, operator: 1, operator_by_group: 0, updated_at: now });
  }
  if (tx.people.count() >= MAX_PEOPLE)
    return refuse('LIMIT_REACHED', `An installation has at most ${MAX_PEOPLE} people`);
  const row = newPerson(ids.make('person'), email, name, now);
  tx.people.insert({ ...row, operator: operator ? 1 : 0 });
  return { ...row, operator: operator ? 1 : 0 };
}

/** Issues a link in the unit of work of the caller. */
function linkFor(
  context: Pick<Context, 'ids' | 'clock'>,
  tx: Tables,
  personId: string,
  purpose: 'sign-in' | 'recovery',
): Invited | Refusal {
  const row = tx.people.get(personId);
  if (row === null) return noPerson();
  if (row.status === 'disabled')
    return refuse('INVALID_STATE', `${row.email} is disabled: enable the person first`);
  const person =
    purpose === 'recovery' ? clearCredentials(tx, { ...row, updated_at: context.clock.now() }) : row;
  return { person: presentPerson(tx, person), link: createLink(context, tx, person, purpose) };
}

function checkPerson({ email, name = '' }: PersonInput): { email: string; name: string } | Refusal {
  const mailbox = parseMailbox(email.trim());
  if (typeof mailbox === 'string') return invalid('email', mailbox);
  if (mailbox.name !== '') return invalid('email', 'must be an address without a name');
  const checked = checkName(name);
  return isRefusal(checked) ? checked : { email: mailbox.address, name: checked };
}

function checkName(name: string): string | Refusal {
  const text = name.trim();
  return text.length > MAX_NAME || /\p{Cc}/u.test(text)
    ? invalid('name', `must be one line of at most ${MAX_NAME} characters`)
    : text;
}

function isLastOperator(tx: Tables, row: PersonRow): boolean {
  return row.operator === 1 && row.status === 'active' && tx.people.activeOperators() === 1;
}

/** Whether this is the only active owner of the account, which only operators could then give another one. */
function isLastOwner(tx: Tables, accountId: string, personId: string): boolean {
  const membership = tx.memberships.get(personId, accountId);
  if (membership?.role !== 'owner' || tx.people.get(personId)?.status !== 'active') return false;
  return tx.memberships.activeOwners(accountId) === 1;
}

function noPerson(): Refusal {
  return refuse('NOT_FOUND', 'This person does not exist');
}

function noMember(): Refusal {
  return refuse('NOT_FOUND', 'This person is not a member of the account');
}

function lastOperator(): Refusal {
  return refuse('INVALID_STATE', 'This is the last active operator: create another one first');
}

function lastOwner(accountId: string): Refusal {
  return refuse(
    'INVALID_STATE',
    `This is the last owner of account ${accountId}: make another member owner first`,
  );
}
