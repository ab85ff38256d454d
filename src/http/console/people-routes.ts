import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { invalid, type Refusal, refuse } from '../../core/refusal.ts';
import { type IssuedLink, linkAddress } from '../../people/links.ts';
import type { People } from '../../people/people.ts';
import type { ConsolePerson } from '../../people/person.ts';
import { ROLES, type Standing } from '../../people/roles.ts';
import { mapResult, Reply } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/*
 * `/console/people`: with X-Id the members of an account, for its owners and for operators; without X-Id all people of the
 * installation, for operators.
 */

const params = { personId: z.string().max(100) };
const role = z.enum(ROLES);

/**
 * All need the permission `people`, and changes a session that was confirmed recently. Nobody can disable themselves. A
 * link is in the response that issues it only.
 */
export function peopleRoutes({
  access,
  people,
  url,
}: {
  access: ConsoleAccess;
  people: People;
  /** `console.url`. */
  url(): string;
}): ConsoleRoute[] {
  const scopeOf = (call: { caller: Caller }) => access.identityOf(call.caller);
  const ownId = (call: { caller: Caller }) => access.sessionOf(call.caller).person.id;
  const presentLink = (link: IssuedLink | null): object =>
    link === null ? {} : { link: linkAddress(url(), link), expiresAt: iso(link.expiresAt) };
  const requestedBy = (standing: Standing | null) => (standing === 'operator' ? 'operator' : 'owner');
  const invited = (result: { person: ConsolePerson; link: IssuedLink | null } | Refusal) =>
    mapResult(
      result,
      ({ person, link }) => new Reply({ data: { person, ...presentLink(link) } }, { status: 201 }),
    );

  return [
    consoleRoute('GET /console/people', {
      operationId: 'listPeople',
      summary: 'List people',
      access: 'people',
      accountOptional: true,
      handle: (call) => {
        const { accountId } = scopeOf(call);
        const listed = accountId === null ? people.list() : people.members(accountId);
        return { people: listed };
      },
    }),
    consoleRoute('POST /console/people', {
      operationId: 'invitePerson',
      summary: 'Invite a person',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      body: z.strictObject({
        email: z.string().min(1).max(320),
        name: z.string().max(100).optional(),
        /** Required in an account. */
        role: role.optional(),
      }),
      handle: async (call) => {
        const { accountId, standing } = scopeOf(call);
        const { role: invitedRole, ...input } = call.body;
        if (accountId === null) return invited(await people.createOperator(input));
        if (invitedRole === undefined) return invalid('role', 'is required');
        return invited(
          await people.invite(accountId, { ...input, role: invitedRole }, requestedBy(standing)),
        );
      },
    }),
    consoleRoute('PATCH /console/people/{personId}', {
      operationId: 'updatePerson',
      summary: 'Change the role or status of a person',
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
      handle: async (call) => {
        const { accountId } = scopeOf(call);
        const { personId } = call.params;
        const { role: newRole, status } = call.body;
        if (accountId === null) {
          if (status === undefined) return invalid('status', 'is required');
          if (personId === ownId(call)) return refuse('INVALID_STATE', 'You cannot disable yourself');
          const person = await people.setStatus(personId, status);
          return person;
        }
        if (newRole === undefined) return invalid('role', 'is required');
        return (await people.setRole(accountId, personId, newRole)) ?? {};
      },
    }),
    consoleRoute('DELETE /console/people/{personId}', {
      operationId: 'removePerson',
      summary: 'Remove a person',
      access: 'people',
      accountOptional: true,
      confirmed: true,
      params,
      handle: async (call) => {
        const { accountId } = scopeOf(call);
        const { personId } = call.params;
        const refusal =
          accountId === null ? await people.remove(personId) : await people.removeMember(accountId, personId);
        return refusal ?? {};
      },
    }),
    consoleRoute('POST /console/people/{personId}/recovery', {
      operationId: 'recoverPerson',
      summary: 'Create a new link for a person',
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
