import { z } from 'zod';
import type { SubscriptionGroups } from '../../audience/groups.ts';
import { presentGroup } from '../../audience/present.ts';
import { isRefusal } from '../../core/refusal.ts';
import { type ComplianceTemplates, groupTemplatesRefusal } from '../../templates/compliance-templates.ts';
import { readPageKey } from '../page-key.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { EXAMPLES } from './contacts-forms.ts';
import { pageEnd, pageEndForm, pagingWide } from './paging.ts';
import { line, lines, withoutUndefined } from './text-form.ts';

/** `/web-setup/contacts/subscription-groups`: groups of contacts that subscribe to one kind of mail. */
export interface SubscriptionGroupRouteDeps {
  groups: SubscriptionGroups;
  complianceTemplates: Pick<ComplianceTemplates, 'get'>;
}

export function subscriptionGroupRoutes(deps: SubscriptionGroupRouteDeps): Route[] {
  const { groups, complianceTemplates } = deps;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups',
      operationId: 'listSubscriptionGroups',
      summary: 'List subscription groups, newest first',
      query: z.object(pagingWide),
      answers: {
        200: {
          description: 'A page of groups.',
          data: z.object({ groups: z.array(group), ...pageEndForm }),
          example: { groups: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { lastKey, limit } }) => {
        const beforeSeq = readPageKey('sgroups', lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const page = await groups.list({ accountId, beforeSeq, limit });
        return { status: 200, data: { groups: page.rows.map(presentGroup), ...pageEnd('sgroups', page) } };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/contacts/subscription-groups',
      operationId: 'createSubscriptionGroup',
      summary: 'Create a subscription group',
      body: z.object({ name, ...fields }),
      example: { name: EXAMPLE.name, description: EXAMPLE.description },
      answers: { 201: { description: 'Created.', data: one, example: { group: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, body }) => {
        const refused = groupTemplatesRefusal(complianceTemplates, caller.accountId, withoutUndefined(body));
        if (refused !== null) return refused;
        const created = await groups.create(caller.accountId, {
          ...DEFAULTS,
          ...withoutUndefined(body),
          name: body.name,
        });
        return { status: 201, data: { group: presentGroup(created) } };
      },
    }),
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
      operationId: 'getSubscriptionGroup',
      summary: 'Get a subscription group',
      params,
      answers: { 200: { description: 'The group.', data: one, example: { group: EXAMPLE } } },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = groups.get(caller.accountId, params.subscriptionGroupId);
        return isRefusal(found) ? found : { status: 200, data: { group: presentGroup(found) } };
      },
    }),
    updateRoute(deps, 'PUT', 'updateSubscriptionGroup'),
    updateRoute(deps, 'PATCH', 'patchSubscriptionGroup'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
      operationId: 'deleteSubscriptionGroup',
      summary: 'Delete a subscription group with its memberships; the contacts stay',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string() }),
          example: { message: 'The subscription group has been deleted.' },
        },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const removed = await groups.remove(caller.accountId, params.subscriptionGroupId);
        if (isRefusal(removed)) return removed;
        return { status: 200, data: { message: 'The subscription group has been deleted.' } };
      },
    }),
  ];
}

function updateRoute(deps: SubscriptionGroupRouteDeps, method: 'PUT' | 'PATCH', operationId: string): Route {
  const { groups, complianceTemplates } = deps;
  return route({
    ...COMMON,
    method,
    path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
    operationId,
    summary: 'Update a subscription group',
    description: 'Fields in the body replace the stored ones, absent fields stay, `null` removes a value.',
    params,
    body: z.object({ name: name.optional(), ...fields }),
    example: { description: 'What is new, once a month' },
    answers: {
      200: { description: 'The updated group.', data: one, example: { group: EXAMPLE } },
    },
    refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'TEMPLATE_NOT_FOUND'],
    handle: async ({ caller, params, body }) => {
      const group = groups.get(caller.accountId, params.subscriptionGroupId);
      if (isRefusal(group)) return group;
      const refused = groupTemplatesRefusal(complianceTemplates, caller.accountId, withoutUndefined(body));
      if (refused !== null) return refused;
      const changed = await groups.update(
        caller.accountId,
        params.subscriptionGroupId,
        withoutUndefined(body),
      );
      return isRefusal(changed) ? changed : { status: 200, data: { group: presentGroup(changed) } };
    },
  });
}

const COMMON = { tag: 'Subscription groups', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ subscriptionGroupId: z.string() });
const templateId = z
  .string()
  .max(100)
  .nullable()
  .optional()
  .describe('A compliance template for mail to this group, instead of the defaults of domain and account.');
const name = line(200);
const fields = {
  description: lines(1000).nullable().optional(),
  isActive: z.boolean().optional().describe('An inactive group receives no mail.'),
  tags: z.array(line(50)).max(50).optional(),
  unsubscribeTemplateId: templateId,
  reportAbuseTemplateId: templateId,
  companyAddressTemplateId: templateId,
};
const DEFAULTS = {
  description: null,
  isActive: true,
  tags: [],
  unsubscribeTemplateId: null,
  reportAbuseTemplateId: null,
  companyAddressTemplateId: null,
};

const group = z.object({
  subscriptionGroupId: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  userId: z.string().describe('The account.'),
  isActive: z.boolean(),
  isDefault: z.boolean(),
  isSystem: z.boolean(),
  totalSubscribers: z.int(),
  activeSubscribers: z.int(),
  importStatus: z.enum(['running', 'completed', 'interrupted']).nullable().describe('Of the last import.'),
  tags: z.array(z.string()),
  unsubscribeTemplateId: z.string().nullable(),
  reportAbuseTemplateId: z.string().nullable(),
  companyAddressTemplateId: z.string().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
const one = z.object({ group });

const EXAMPLE: z.output<typeof group> = {
  subscriptionGroupId: EXAMPLES.groupId,
  name: 'News',
  description: 'What is new, once a month',
  userId: 'acct_7f3k2m9x7q1z',
  isActive: true,
  isDefault: false,
  isSystem: false,
  totalSubscribers: 1204,
  activeSubscribers: 1187,
  importStatus: 'completed',
  tags: ['news'],
  unsubscribeTemplateId: null,
  reportAbuseTemplateId: null,
  companyAddressTemplateId: null,
  createdAt: EXAMPLES.time,
  updatedAt: EXAMPLES.time,
};
