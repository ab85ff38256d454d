import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { type IssuedLink, linkAddress } from '../../people/links.ts';
import type { People } from '../../people/people.ts';
import type { ConsolePerson } from '../../people/person.ts';
import { ROLES, type Standing } from '../../people/roles.ts';
import type { ApiResponse } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';
import { presentMe } from './session-routes.ts';

/*
 * `/console/people`: with X-Id the members of an account, for its owners and for operators; without X-Id all people of the
 * installation, for operators.
 */

export interface PeopleRouteDeps {
  access: ConsoleAccess;
  people: People;
  /** `console.url`. */
  url(): string;
}

const params = z.object({ personId: z.string().max(100) });
const role = z.enum(ROLES);

/**
 * All need the permission `people`, and changes a session that was confirmed recently. Nobody can disable themselves. A
 * link is in the response that issues it only.
 */
export function peopleRoutes({ access, people, url }: PeopleRouteDeps): ConsoleRoute[] {
  const scopeOf = (call: { caller: Caller }) => access.identityOf(call.caller);
  const ownId = (call: { caller: Caller }) => access.sessionOf(call.caller).person.id;
  const presentLink = (link: IssuedLink | null): object =>
    link === null ? {} : { link: linkAddress(url(), link), expiresAt: iso(link.expiresAt) };
  const requestedBy = (standing: Standing | null) => (standing === 'operator' ? 'operator' : 'owner');
  const invited = (result: { person: ConsolePerson; link: IssuedLink | null } | Refusal) =>
    isRefusal(result)
      ? result
      : { status: 201, data: { person: presentMe(result.person), ...presentLink(result.link) } };

  return [
    consoleRoute({
      method: 'GET',
      path: '/people',
      operationId: 'listPeople',
      access: 'people',
      accountOptional: true,
      handle: (call) => {
        const { accountId } = scopeOf(call);
        const listed = accountId === null ? people.list() : people.members(accountId);
        return { status: 200, data: { people: listed.map(presentMe) } };
      },
    }),
    consoleRoute({
      method: 'POST',
      path: '/people',
      operationId: 'invitePerson',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      body: z.strictObject({
        email: z.string().min(1).max(320),
        name: z.string().max(100).optional(),
        /** Required in an account. */
        role: role.optional(),
      }),
      handle: async (call): Promise<ApiResponse | Refusal> => {
        const { accountId, standing } = scopeOf(call);
        const { role: invitedRole, ...input } = call.body;
        if (accountId === null) return invited(await people.createOperator(input));
        if (invitedRole === undefined) return invalid('role', 'is required');
        return invited(
          await people.invite(accountId, { ...input, role: invitedRole }, requestedBy(standing)),
        );
      },
    }),
    consoleRoute({
      method: 'PATCH',
      path: '/people/{personId}',
      operationId: 'updatePerson',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      params,
      body: z.strictObject({
        /** Role in the account of the request. */
        role: role.optional(),
        /** Status of the person, which only operators change. */
        status: z.enum(['active', 'disabled']).optional(),
      }),
      handle: async (call): Promise<ApiResponse | Refusal> => {
        const { accountId } = scopeOf(call);
        const { personId } = call.params;
        const { role: newRole, status } = call.body;
        if (accountId === null) {
          if (status === undefined) return invalid('status', 'is required');
          if (personId === ownId(call)) return refuse('INVALID_STATE', 'You cannot disable yourself');
          const person = await people.setStatus(personId, status);
          return isRefusal(person) ? person : { status: 200, data: presentMe(person) };
        }
        if (newRole === undefined) return invalid('role', 'is required');
        return (await people.setRole(accountId, personId, newRole)) ?? { status: 200, data: {} };
      },
    }),
    consoleRoute({
      method: 'DELETE',
      path: '/people/{personId}',
      operationId: 'removePerson',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      params,
      handle: async (call): Promise<ApiResponse | Refusal> => {
        const { accountId } = scopeOf(call);
        const { personId } = call.params;
        const refusal =
          accountId === null ? await people.remove(personId) : await people.removeMember(accountId, personId);
        return refusal ?? { status: 200, data: {} };
      },
    }),
    consoleRoute({
      method: 'POST',
      path: '/people/{personId}/recovery',
      operationId: 'recoverPerson',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      params,
      handle: async (call) => {
        const { accountId, standing } = scopeOf(call);
        const { personId } = call.params;
        if (accountId === null) return invited(await people.issueLink(personId, 'recovery'));
        return invited(await people.recoverMember(accountId, personId, requestedBy(standing)));
      },
    }),
  ];
}
