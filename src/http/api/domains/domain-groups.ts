import * as z from 'zod';
import { refuse } from '../../../core/refusal.ts';
import { type DomainGroup, presentDomainGroup } from '../../../domains/present.ts';
import type { Domains } from '../../../domains/service.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { definedFields, line, lines, optionalLine } from '../fields.ts';
import { endOf, pageOf, pagesById, pagingWide, unknownKey } from '../paging.ts';

const route = routesOf({ tag: 'Domain groups', scope: 'setup', permissions: ['read', 'develop'] });

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
const one = {
  data: z.object({ domainGroup: group }).meta({ id: 'DomainGroupResult' }),
  example: { domainGroup: EXAMPLE },
};
const LIST = {
  query: z.object(pagingWide),
  page: pagesById('domain-groups'),
  response: pageOf('domainGroups', group, EXAMPLE, {
    description: 'A page of domain groups, oldest first.',
    id: 'DomainGroupList',
  }),
};

/** `/web-setup/domain-groups`: groups that organize the domains of an account. */
export function domainGroupRoutes({ domains: { groups } }: { domains: Domains }): Route[] {
  const listed = (accountId: string, afterId: string | null, limit: number) => {
    const page = groups.page({ accountId, afterId, limit });
    if (page === null) return unknownKey();
    const { rows, more } = page;
    return {
      domainGroups: rows.map(presentDomainGroup),
      ...endOf(rows, more ? rows.at(-1)?.group_id : null),
    };
  };
  return [
    route('GET /web-setup/domain-groups', {
      operationId: 'listDomainGroups',
      summary: 'List domain groups',
      ...LIST,
      handle: ({ caller, query, after }) => listed(caller.accountId, after, query.limit),
    }),
    route('POST /web-setup/domain-groups', {
      operationId: 'createDomainGroup',
      summary: 'Create a domain group',
      body: z.object({ ...fields, name }).meta({ id: 'DomainGroupInput' }),
      example: { name: 'Shops', description: 'Domains of the web shops', color: '#2563eb', icon: '🛒' },
      response: { status: 201, description: 'The created group.', ...one },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const { description = null, color = null, icon = null } = body;
        const input = { name: body.name, description, color, icon };
        return mapResult(await groups.create(caller.accountId, input), present);
      },
    }),
    route('GET /web-setup/domain-groups/owner/{ownerId}', {
      operationId: 'listDomainGroupsOfOwner',
      summary: 'List the domain groups of an account',
      description: 'The owner must be the account of the key; any other is not found.',
      ...LIST,
      refusals: ['NOT_FOUND'],
      handle: ({ caller, params, query, after }) =>
        params.ownerId === caller.accountId
          ? listed(caller.accountId, after, query.limit)
          : refuse('NOT_FOUND', `There is no owner ${params.ownerId}`),
    }),
    route('GET /web-setup/domain-groups/{groupId}', {
      operationId: 'getDomainGroup',
      summary: 'Get a domain group',
      response: { description: 'The group.', ...one },
      refusals: ['GROUP_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(groups.get(caller.accountId, params.groupId), present),
    }),
    route('PUT /web-setup/domain-groups/{groupId}', {
      operationId: 'updateDomainGroup',
      summary: 'Update a domain group',
      description: 'Replaces the fields that are given; `null` clears a field.',
      body: z.object({ ...fields, name: name.optional() }).meta({ id: 'DomainGroupPatch' }),
      example: { name: 'Shops' },
      response: { description: 'The updated group.', ...one },
      refusals: ['GROUP_NOT_FOUND'],
      handle: async ({ caller, params, body }) =>
        mapResult(await groups.update(caller.accountId, params.groupId, definedFields(body)), present),
    }),
    route('DELETE /web-setup/domain-groups/{groupId}', {
      operationId: 'deleteDomainGroup',
      summary: 'Delete an empty domain group',
      response: {
        description: 'The group was deleted.',
        data: z.object({ message: z.string(), groupId: z.string() }),
        example: { message: 'The domain group has been deleted.', groupId: EXAMPLE_ID },
      },
      refusals: ['GROUP_NOT_FOUND', 'GROUP_NOT_EMPTY'],
      handle: async ({ caller, params: { groupId } }) => {
        const refusal = await groups.remove(caller.accountId, groupId);
        return refusal ?? { message: 'The domain group has been deleted.', groupId };
      },
    }),
  ];
}

function present(row: Parameters<typeof presentDomainGroup>[0]) {
  return { domainGroup: presentDomainGroup(row) };
}
