import * as z from 'zod';
import { isRefusal, refuse } from '../../../core/refusal.ts';
import { type DomainGroup, presentDomainGroup } from '../../../domains/present.ts';
import type { Domains } from '../../../domains/service.ts';
import { type Route, route } from '../../route.ts';
import { definedFields, line, lines, optionalLine } from '../fields.ts';
import { idPageEnd, pageEndFields, pagingWide, readIdPageKey, unknownKey } from '../paging.ts';

/** The name of the list in its page keys. */
const LIST = 'domain-groups';

/** `/web-setup/domain-groups`: groups that organize the domains of an account. */
export function domainGroupRoutes({ domains: { groups } }: { domains: Domains }): Route[] {
  const listed = (accountId: string, query: { limit: number; lastKey?: string | undefined }) => {
    const afterId = readIdPageKey(LIST, query.lastKey);
    if (isRefusal(afterId)) return afterId;
    const page = groups.page({ accountId, afterId, limit: query.limit });
    if (page === null) return unknownKey();
    const end = idPageEnd(LIST, page, ({ group_id }) => group_id);
    return { status: 200, data: { domainGroups: page.rows.map(presentDomainGroup), ...end } };
  };
  return [
    route({
      method: 'GET',
      path: '/web-setup/domain-groups',
      operationId: 'listDomainGroups',
      tag: 'Domain groups',
      summary: 'List domain groups',
      scope: 'setup',
      query: z.object(pagingWide),
      responses: {
        200: {
          description: 'A page of domain groups, oldest first.',
          data: list,
          example: { domainGroups: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      handle: ({ caller, query }) => listed(caller.accountId, query),
    }),
    route({
      method: 'POST',
      path: '/web-setup/domain-groups',
      operationId: 'createDomainGroup',
      tag: 'Domain groups',
      summary: 'Create a domain group',
      scope: 'setup',
      body: z.object({ ...fields, name }).meta({ id: 'DomainGroupInput' }),
      example: { name: 'Shops', description: 'Domains of the web shops', color: '#2563eb', icon: '🛒' },
      responses: { 201: { description: 'The created group.', data: one, example: { domainGroup: EXAMPLE } } },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const { description = null, color = null, icon = null } = body;
        const group = await groups.create(caller.accountId, { name: body.name, description, color, icon });
        return isRefusal(group) ? group : { status: 201, data: { domainGroup: presentDomainGroup(group) } };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/domain-groups/owner/{ownerId}',
      operationId: 'listDomainGroupsOfOwner',
      tag: 'Domain groups',
      summary: 'List the domain groups of an account',
      description: 'The owner must be the account of the key; any other is not found.',
      scope: 'setup',
      params: z.object({ ownerId: z.string() }),
      query: z.object(pagingWide),
      responses: {
        200: {
          description: 'A page of domain groups, oldest first.',
          data: list,
          example: { domainGroups: [EXAMPLE], count: 1 },
        },
      },
      refusals: ['NOT_FOUND'],
      handle: ({ caller, params, query }) =>
        params.ownerId === caller.accountId
          ? listed(caller.accountId, query)
          : refuse('NOT_FOUND', `There is no owner ${params.ownerId}`),
    }),
    route({
      method: 'GET',
      path: '/web-setup/domain-groups/{groupId}',
      operationId: 'getDomainGroup',
      tag: 'Domain groups',
      summary: 'Get a domain group',
      scope: 'setup',
      params,
      responses: { 200: { description: 'The group.', data: one, example: { domainGroup: EXAMPLE } } },
      refusals: ['GROUP_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const group = groups.get(caller.accountId, params.groupId);
        return isRefusal(group) ? group : { status: 200, data: { domainGroup: presentDomainGroup(group) } };
      },
    }),
    route({
      method: 'PUT',
      path: '/web-setup/domain-groups/{groupId}',
      operationId: 'updateDomainGroup',
      tag: 'Domain groups',
      summary: 'Update a domain group',
      description: 'Replaces the fields that are given; `null` clears a field.',
      scope: 'setup',
      params,
      body: z.object({ ...fields, name: name.optional() }).meta({ id: 'DomainGroupPatch' }),
      example: { name: 'Shops' },
      responses: {
        200: { description: 'The updated group.', data: one, example: { domainGroup: EXAMPLE } },
      },
      refusals: ['GROUP_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const group = await groups.update(caller.accountId, params.groupId, definedFields(body));
        return isRefusal(group) ? group : { status: 200, data: { domainGroup: presentDomainGroup(group) } };
      },
    }),
    route({
      method: 'DELETE',
      path: '/web-setup/domain-groups/{groupId}',
      operationId: 'deleteDomainGroup',
      tag: 'Domain groups',
      summary: 'Delete an empty domain group',
      scope: 'setup',
      params,
      responses: {
        200: {
          description: 'The group was deleted.',
          data: z.object({ message: z.string(), groupId: z.string() }),
          example: { message: 'The domain group has been deleted.', groupId: EXAMPLE_ID },
        },
      },
      refusals: ['GROUP_NOT_FOUND', 'GROUP_NOT_EMPTY'],
      handle: async ({ caller, params }) => {
        const refusal = await groups.remove(caller.accountId, params.groupId);
        if (refusal !== null) return refusal;
        return {
          status: 200,
          data: { message: 'The domain group has been deleted.', groupId: params.groupId },
        };
      },
    }),
  ];
}

const params = z.object({ groupId: z.string() });
const name = line(100);
const fields = {
  description: lines(500).trim().nullable().optional(),
  color: optionalLine(50)
    .nullable()
    .meta({ id: 'DomainGroupColor', description: 'For display, such as `#2563eb`.' })
    .optional(),
  icon: optionalLine(50)
    .nullable()
    .meta({ id: 'DomainGroupIcon', description: 'For display, such as an emoji.' })
    .optional(),
};

const group = z
  .object({
    groupId: z.string(),
    name: z.string(),
    description: z.string().optional(),
    color: z.string().optional(),
    icon: z.string().optional(),
    ownerId: z.string().describe('The account id.'),
    isDefault: z.boolean(),
    domainCount: z.int(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'DomainGroup' });
const one = z.object({ domainGroup: group }).meta({ id: 'DomainGroupResult' });
const list = z.object({ domainGroups: z.array(group), ...pageEndFields }).meta({ id: 'DomainGroupList' });

const EXAMPLE_ID = 'dgroup_1769860800000_4k2m9x7q1zab';
const EXAMPLE: DomainGroup = {
  groupId: EXAMPLE_ID,
  name: 'Shops',
  description: 'Domains of the web shops',
  color: '#2563eb',
  icon: '🛒',
  ownerId: 'acct_7f3k2m9x7q1z',
  isDefault: false,
  domainCount: 2,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
