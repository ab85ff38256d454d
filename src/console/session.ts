import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ConsoleSession, SessionPerson } from '../http/console/session-routes.ts';
import type { ApiOperationId } from './operations.ts';

export type { ConsoleSession, SessionPerson };

/** The person who is signed in, and the account that the pages are about. */
export interface CurrentMember {
  person: SessionPerson;
  accountId: string;
  /** Whether the person's role permits an operation of the API. */
  may(operationId: ApiOperationId): boolean;
  /** Whether it has a permission: for operations of the console itself. */
  has(permission: PermissionName): boolean;
}

export type PermissionName = SessionPerson['operations'][string];

const MemberContext = createContext<CurrentMember | null>(null);
export const MemberProvider = MemberContext.Provider;

/** The member; only below the shell, which shows no page without an account. */
export function useMember(): CurrentMember {
  const member = useContext(MemberContext);
  if (member === null) throw new Error('there is no MemberProvider');
  return member;
}

/** The member of an account; null: the person has no account. `accountId`: another one than the first. */
export function currentMember(person: SessionPerson, accountId: string | undefined): CurrentMember | null {
  const { memberships } = person;
  const membership = memberships.find((entry) => entry.accountId === accountId) ?? memberships[0];
  // An operator may use every account, also those that are not in the list.
  const id = person.operator ? (accountId ?? membership?.accountId) : membership?.accountId;
  if (id === undefined) return null;
  return memberWith(person, id, person.operator ? 'operator' : (membership?.role ?? ''));
}

/** A person without an account, for the pages about the person and the installation. */
export function memberWithoutAccount(person: SessionPerson): CurrentMember {
  return memberWith(person, '', person.operator ? 'operator' : '');
}

function memberWith(person: SessionPerson, accountId: string, role: string): CurrentMember {
  const permissions = person.roles[role] ?? [];
  const has = (permission: PermissionName) => permissions.includes(permission);
  return {
    person,
    accountId,
    has,
    may: (operationId) => has(person.operations[operationId] ?? 'operator'),
  };
}
