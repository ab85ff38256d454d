import * as z from 'zod';
import type { Caller } from '../../../accounts/authenticate.ts';
import type { SubscriptionGroups } from '../../../audience/groups.ts';
import { presentGroup } from '../../../audience/present.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import { parseMailbox } from '../../../mail/address.ts';
import type { SubscriptionGroupRow } from '../../../store/contacts/subscription-groups.ts';
import { type ComplianceTemplates, groupTemplatesRefusal } from '../../../templates/compliance-templates.ts';
import { type Route, type RouteDescription, route } from '../../route.ts';
import { definedFields, line, lines, messageResult, resourceName } from '../fields.ts';
import { nameSearch, pageEnd, pageEndFields, pagingWide, readPageKey } from '../paging.ts';
import { CONTACT_EXAMPLES } from './contact-schemas.ts';

/** The caller who chooses the sender of a sign-up form. */
type SignUpCaller = Pick<Caller, 'accountId' | 'allowFrom'>;

/** `/web-setup/contacts/subscription-groups`: lists that contacts subscribe to. */
export interface SubscriptionGroupRouteDeps {
  groups: SubscriptionGroups;
  complianceTemplates: Pick<ComplianceTemplates, 'get'>;
  /** Base of the addresses of sign-up forms. */
  publicUrl: string;
  /** Refuses a sender from whose domain the caller cannot send transactional mail. */
  senderRefusal(caller: SignUpCaller, address: string): Refusal | null;
}

/**
 * All with the scope `setup`. Changes are refused when a template is not the account's, or when the sender of the
 * sign-up form cannot send; PUT and PATCH are the same operation.
 */
export function subscriptionGroupRoutes(deps: SubscriptionGroupRouteDeps): Route[] {
  const { groups, complianceTemplates } = deps;
  const present = presentIn(deps);
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups',
      operationId: 'listSubscriptionGroups',
      summary: 'List subscription groups, newest first',
      query: z.object({ search: nameSearch, ...pagingWide }),
      responses: {
        200: {
          description: 'A page of groups.',
          data: z.object({ groups: z.array(group), ...pageEndFields }),
          example: { groups: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, lastKey, limit } }) => {
        const beforeSeq = readPageKey('sgroups', lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const page = await groups.list({ accountId, beforeSeq, limit, search });
        return { status: 200, data: { groups: page.rows.map(present), ...pageEnd('sgroups', page) } };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/contacts/subscription-groups',
      operationId: 'createSubscriptionGroup',
      summary: 'Create a subscription group',
      body: z.object({ name, ...fields }).meta({ id: 'SubscriptionGroupInput' }),
      example: { name: EXAMPLE.name, description: EXAMPLE.description },
      responses: { 201: { description: 'The created group.', data: result, example: { group: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND', ...SENDER_REFUSALS],
      handle: async ({ caller, body }) => {
        const refusal =
          groupTemplatesRefusal(complianceTemplates, caller.accountId, definedFields(body)) ??
          signUpRefusal(deps, caller, body.signUp);
        if (refusal !== null) return refusal;
        const created = await groups.create(caller.accountId, {
          ...DEFAULTS,
          ...definedFields(body),
          name: body.name,
        });
        return isRefusal(created) ? created : { status: 201, data: { group: present(created) } };
      },
    }),
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
      operationId: 'getSubscriptionGroup',
      summary: 'Get a subscription group',
      params,
      responses: { 200: { description: 'The group.', data: result, example: { group: EXAMPLE } } },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = groups.get(caller.accountId, params.subscriptionGroupId);
        return isRefusal(found) ? found : { status: 200, data: { group: present(found) } };
      },
    }),
    updateRoute(deps, 'PUT', 'updateSubscriptionGroup'),
    updateRoute(deps, 'PATCH', 'patchSubscriptionGroup'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
      operationId: 'deleteSubscriptionGroup',
      summary: 'Delete a subscription group and its memberships',
      params,
      responses: {
        200: {
          description: 'The group was deleted. Its contacts remain.',
          data: messageResult,
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

function presentIn({ publicUrl }: SubscriptionGroupRouteDeps) {
  return (row: SubscriptionGroupRow): z.output<typeof group> => {
    const presented = presentGroup(row);
    if (presented.signUp === null) return presented;
    return { ...presented, signUpUrl: `${publicUrl}/j/${presented.subscriptionGroupId}` };
  };
}

/** The sender of confirmation mails must be able to send when visitors fill in the form, and the key to send from it. */
function signUpRefusal(
  { senderRefusal }: SubscriptionGroupRouteDeps,
  caller: SignUpCaller,
  signUp: { from: string } | null | undefined,
): Refusal | null {
  const from = parseMailbox(signUp?.from ?? '');
  const refusal = typeof from === 'string' ? null : senderRefusal(caller, from.address);
  return (
    refusal &&
    refuse(refusal.code, refusal.message, { details: [{ field: 'signUp.from', message: refusal.message }] })
  );
}

function updateRoute(deps: SubscriptionGroupRouteDeps, method: 'PUT' | 'PATCH', operationId: string): Route {
  const { groups, complianceTemplates } = deps;
  return route({
    ...COMMON,
    method,
    path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}',
    operationId,
    summary: 'Update a subscription group',
    description: 'Replaces the fields that are given; `null` clears a field.',
    params,
    body: z.object({ name: name.optional(), ...fields }).meta({ id: 'SubscriptionGroupPatch' }),
    example: { description: 'What is new, once a month' },
    responses: {
      200: { description: 'The updated group.', data: result, example: { group: EXAMPLE } },
    },
    refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'TEMPLATE_NOT_FOUND', ...SENDER_REFUSALS],
    handle: async ({ caller, params, body }) => {
      const group = groups.get(caller.accountId, params.subscriptionGroupId);
      if (isRefusal(group)) return group;
      const refusal =
        groupTemplatesRefusal(complianceTemplates, caller.accountId, definedFields(body)) ??
        signUpRefusal(deps, caller, body.signUp);
      if (refusal !== null) return refusal;
      const updated = await groups.update(caller.accountId, params.subscriptionGroupId, definedFields(body));
      return isRefusal(updated) ? updated : { status: 200, data: { group: presentIn(deps)(updated) } };
    },
  });
}

const COMMON = { tag: 'Subscription groups', scope: 'setup' } satisfies Partial<RouteDescription>;
const SENDER_REFUSALS = ['DOMAIN_NOT_REGISTERED', 'DOMAIN_NOT_VERIFIED', 'USE_CASE_MISMATCH'] as const;
const params = z.object({ subscriptionGroupId: z.string() });
const templateId = z
  .string()
  .max(100)
  .nullable()
  .meta({
    id: 'GroupTemplateId',
    description: 'Compliance template for mail to this group; overrides the defaults of domain and account.',
  })
  .optional();
const name = resourceName;
const mailbox = z
  .string()
  .max(500)
  .superRefine((text, context) => {
    const parsed = parseMailbox(text);
    if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
  });
const fields = {
  description: lines(1000).nullable().optional(),
  isActive: z.boolean().optional().describe('An inactive group receives no mail.'),
  tags: z.array(line(50)).max(50).optional(),
  unsubscribeTemplateId: templateId,
  reportAbuseTemplateId: templateId,
  companyAddressTemplateId: templateId,
  signUp: z
    .object({
      from: mailbox.describe(
        'Sender of the confirmation mail: an address of a domain for transactional mail.',
      ),
      subject: line(200).nullable().default(null).describe('Subject of the confirmation mail.'),
      intro: lines(1000).nullable().default(null).describe('First paragraph of the confirmation mail.'),
    })
    .meta({ id: 'SignUpForm' })
    .nullable()
    .optional()
    .describe(
      'The form on the public pages. A person who submits it receives a confirmation mail, and is a member with consent by `double_opt_in` after the confirmation.',
    ),
};
const DEFAULTS = {
  description: null,
  isActive: true,
  tags: [],
  unsubscribeTemplateId: null,
  reportAbuseTemplateId: null,
  companyAddressTemplateId: null,
  signUp: null,
};

export const group = z
  .object({
    subscriptionGroupId: z.string(),
    groupId: z.string().describe('The same as `subscriptionGroupId`.'),
    name: z.string(),
    description: z.string().optional(),
    userId: z.string().describe('The account id.'),
    isActive: z.boolean(),
    isDefault: z.boolean(),
    isSystem: z.boolean(),
    totalSubscribers: z.int(),
    activeSubscribers: z.int(),
    importStatus: z
      .enum(['running', 'completed', 'interrupted'])
      .nullable()
      .describe('Status of the last import; `null`: there was none.'),
    tags: z.array(z.string()),
    unsubscribeTemplateId: z.string().optional(),
    reportAbuseTemplateId: z.string().optional(),
    companyAddressTemplateId: z.string().optional(),
    signUp: z
      .object({ from: z.string(), subject: z.string().optional(), intro: z.string().optional() })
      .nullable(),
    signUpUrl: z
      .string()
      .optional()
      .describe('Address of the form, for people and for `action` of own forms.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'SubscriptionGroup' });
const result = z.object({ group }).meta({ id: 'SubscriptionGroupResult' });

const EXAMPLE: z.output<typeof group> = {
  subscriptionGroupId: CONTACT_EXAMPLES.groupId,
  groupId: CONTACT_EXAMPLES.groupId,
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
  signUp: { from: 'news@example.com' },
  signUpUrl: 'https://mail.example.com/j/sgroup_1769860800000_4k2m9x7q1zab',
  createdAt: CONTACT_EXAMPLES.time,
  updatedAt: CONTACT_EXAMPLES.time,
};
