import * as z from 'zod';
import type { Caller } from '../../../accounts/authenticate.ts';
import type { SubscriptionGroups } from '../../../audience/groups.ts';
import { presentGroup } from '../../../audience/present.ts';
import { archiveKeyOf } from '../../../campaigns/archive.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import { accountLinkBase } from '../../../delivery/prepare.ts';
import { domainOf, parseMailbox } from '../../../mail/address.ts';
import { checkDomain, type Sender } from '../../../sending/checks.ts';
import type { SubscriptionGroupRow } from '../../../store/contacts/subscription-groups.ts';
import type { Context } from '../../../store/context.ts';
import { type ComplianceTemplates, groupTemplatesRefusal } from '../../../templates/compliance-templates.ts';
import { ARCHIVE_ROUTE } from '../../public/archive.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { definedFields, line, lines, messageResult, resourceName } from '../fields.ts';
import { nameSearch, pageOf, pagesBySeq, pagingWide, seqEnd } from '../paging.ts';
import { CONTACT_EXAMPLES } from './contact-schemas.ts';

const route = routesOf({ tag: 'Subscription groups', scope: 'setup', permissions: ['read', 'contacts'] });
const SENDER_REFUSALS = ['DOMAIN_NOT_REGISTERED', 'DOMAIN_NOT_VERIFIED', 'USE_CASE_MISMATCH'] as const;
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
  isPublic: z
    .boolean()
    .nullable()
    .optional()
    .describe(
      'Whether people can join and leave the group on the preference page. `null`, the default: if the group has a sign-up form.',
    ),
  archive: z
    .boolean()
    .optional()
    .describe(
      'Whether campaigns to all members of the group are public pages with a feed, without personal values and links. The address of a public group contains its id, that of another one cannot be guessed and changes when the archive is switched off and on. Default: false.',
    ),
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
  isPublic: null,
  archive: false,
};

const patch = z.object({ name: name.optional(), ...fields }).meta({ id: 'SubscriptionGroupPatch' });

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
    isPublic: z.boolean().describe('The preference page shows the group.'),
    archive: z.boolean().describe('Campaigns to the group are public pages.'),
    archiveUrl: z.string().optional().describe('Address of the archive; that of its feed ends with `.rss`.'),
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
  isPublic: true,
  archive: true,
  archiveUrl: 'https://link.example.com/a/sgroup_1769860800000_4k2m9x7q1zab',
  signUpUrl: 'https://mail.example.com/j/sgroup_1769860800000_4k2m9x7q1zab',
  createdAt: CONTACT_EXAMPLES.time,
  updatedAt: CONTACT_EXAMPLES.time,
};
const one = { data: result, example: { group: EXAMPLE } };

/** Changes are refused when a template is not the account's, or when the sender of the sign-up form cannot send. */
export function subscriptionGroupRoutes(
  { tables }: Pick<Context, 'tables'>,
  {
    groups,
    complianceTemplates,
    publicUrl,
  }: {
    groups: SubscriptionGroups;
    complianceTemplates: Pick<ComplianceTemplates, 'get'>;
    /** Base of the addresses of sign-up forms, and of archives without a link host. */
    publicUrl: string;
  },
): Route[] {
  function present(row: SubscriptionGroupRow): { group: z.output<typeof group> } {
    const presented = presentGroup(row);
    const { signUp, subscriptionGroupId } = presented;
    const key = archiveKeyOf(row);
    return {
      group: {
        ...presented,
        ...(signUp === null ? {} : { signUpUrl: `${publicUrl}/j/${subscriptionGroupId}` }),
        ...(key === null
          ? {}
          : { archiveUrl: `${accountLinkBase(tables, publicUrl, row.account_id)}/${ARCHIVE_ROUTE}/${key}` }),
      },
    };
  }

  function refusalOf({ accountId, allowFrom }: Caller, body: z.output<typeof patch>): Refusal | null {
    return (
      groupTemplatesRefusal(complianceTemplates, accountId, definedFields(body)) ??
      signUpRefusal(accountId, allowFrom, body.signUp)
    );
  }

  /** The sender of confirmation mails must be able to send when visitors fill in the form, and the key to send from it. */
  function signUpRefusal(
    accountId: string,
    allowFrom: Caller['allowFrom'],
    signUp: { from: string } | null | undefined,
  ): Refusal | null {
    const from = parseMailbox(signUp?.from ?? '');
    const account = tables.accounts.get(accountId);
    if (typeof from === 'string' || account === null) return null;
    const sender: Sender = { account, useCase: 'tx', allowFrom, allowEssential: true };
    const refusal = checkDomain(tables, sender, { fromDomain: domainOf(from.address) });
    if (!isRefusal(refusal)) return null;
    const { code, message } = refusal;
    return refuse(code, message, { details: [{ field: 'signUp.from', message }] });
  }

  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/contacts/subscription-groups/{subscriptionGroupId}`, {
      operationId,
      summary: 'Update a subscription group',
      description: 'Replaces the fields that are given; `null` clears a field.',
      body: patch,
      example: { description: 'What is new, once a month' },
      response: { description: 'The updated group.', ...one },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'TEMPLATE_NOT_FOUND', ...SENDER_REFUSALS],
      handle: async ({ caller, params, body }) => {
        const group = groups.get(caller.accountId, params.subscriptionGroupId);
        if (isRefusal(group)) return group;
        const refusal = refusalOf(caller, body);
        if (refusal !== null) return refusal;
        const updated = await groups.update(
          caller.accountId,
          params.subscriptionGroupId,
          definedFields(body),
        );
        return mapResult(updated, present);
      },
    });
  return [
    route('GET /web-setup/contacts/subscription-groups', {
      operationId: 'listSubscriptionGroups',
      summary: 'List subscription groups, newest first',
      query: z.object({ search: nameSearch, ...pagingWide }),
      page: pagesBySeq('sgroups'),
      response: pageOf('groups', group, EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await groups.list({ accountId, beforeSeq: after, limit, search });
        return { groups: page.rows.map((row) => present(row).group), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/contacts/subscription-groups', {
      operationId: 'createSubscriptionGroup',
      summary: 'Create a subscription group',
      body: z.object({ name, ...fields }).meta({ id: 'SubscriptionGroupInput' }),
      example: { name: EXAMPLE.name, description: EXAMPLE.description },
      response: { status: 201, description: 'The created group.', ...one },
      refusals: ['TEMPLATE_NOT_FOUND', ...SENDER_REFUSALS],
      handle: async ({ caller, body }) => {
        const refusal = refusalOf(caller, body);
        if (refusal !== null) return refusal;
        const created = await groups.create(caller.accountId, {
          ...DEFAULTS,
          ...definedFields(body),
          name: body.name,
        });
        return mapResult(created, present);
      },
    }),
    route('GET /web-setup/contacts/subscription-groups/{subscriptionGroupId}', {
      operationId: 'getSubscriptionGroup',
      summary: 'Get a subscription group',
      response: { description: 'The group.', ...one },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: ({ caller, params }) =>
        mapResult(groups.get(caller.accountId, params.subscriptionGroupId), present),
    }),
    update('PUT', 'updateSubscriptionGroup'),
    update('PATCH', 'patchSubscriptionGroup'),
    route('DELETE /web-setup/contacts/subscription-groups/{subscriptionGroupId}', {
      operationId: 'deleteSubscriptionGroup',
      summary: 'Delete a subscription group and its memberships',
      response: {
        description: 'The group was deleted. Its contacts remain.',
        data: messageResult,
        example: { message: 'The subscription group has been deleted.' },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const removed = await groups.remove(caller.accountId, params.subscriptionGroupId);
        if (isRefusal(removed)) return removed;
        return { message: 'The subscription group has been deleted.' };
      },
    }),
  ];
}
