import type { MemberRole } from '../store/people/people.ts';

/** Roles of the members of an account, from the most to the least permitted. */
export const ROLES = ['owner', 'sender', 'author', 'developer', 'viewer'] as const satisfies MemberRole[];

/**
 * What a member may do. Each operation of the API requires one permission; `operator` is required for operations on the
 * whole installation, and no role of an account has it.
 */
export const PERMISSIONS = [
  /** Read what the account has. */
  'read',
  /** Create and change templates and campaigns that were not sent. */
  'prepare',
  /** Send mail and campaigns; schedule, pause, resume and cancel them. */
  'send',
  /** Change contacts, groups, subscriptions and suppressions. */
  'contacts',
  /** Retry and cancel messages. */
  'messages',
  /** Change domains and webhooks. */
  'develop',
  /** Create and revoke API keys. */
  'keys',
  /** Export data. */
  'export',
  /** Erase contacts. */
  'erase',
  /** Change the profile of the account. */
  'account',
  /** Invite people and change their roles; read the audit log. */
  'people',
  /** Operations on the installation. */
  'operator',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** The permissions of each role. */
export const ROLE_PERMISSIONS: Readonly<Record<MemberRole, readonly Permission[]>> = {
  owner: PERMISSIONS.filter((permission) => permission !== 'operator'),
  sender: ['read', 'prepare', 'send', 'contacts', 'messages'],
  author: ['read', 'prepare'],
  developer: ['read', 'messages', 'develop', 'keys'],
  viewer: ['read'],
};

/** The role of a member in an account, or `operator`. */
export type Standing = MemberRole | 'operator';

/** The permissions of an operator or of a member with a role. */
export function permissionsOf(standing: Standing): readonly Permission[] {
  return standing === 'operator' ? PERMISSIONS : ROLE_PERMISSIONS[standing];
}

/** The roles that have a permission, for error messages. */
export function rolesWith(permission: Permission): MemberRole[] {
  return ROLES.filter((role) => ROLE_PERMISSIONS[role].includes(permission));
}
