import * as z from 'zod';
import type { MembershipInput } from '../../../audience/membership.ts';
import { presentMember, presentSubscriber, presentSubscription } from '../../../audience/present.ts';
import type { MembershipResult, Subscriptions } from '../../../audience/subscriptions.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal, type Refusal } from '../../../core/refusal.ts';
import type { Member } from '../../../store/contacts/subscriptions.ts';
import { successBody } from '../../responses.ts';
import { type ApiResponse, type Call, type Route, type RouteDescription, route } from '../../route.ts';
import { messageResult } from '../fields.ts';
import { pageEnd, pageEndFields, paging, readPageKey } from '../paging.ts';
import {
  CONTACT_EXAMPLES,
  callerOf,
  consentInputOf,
  email,
  identifier,
  member,
  memberPhone,
  membershipFields,
  phone,
  subscriber,
  subscription,
} from './contact-schemas.ts';
import { readSearchPageKey, search, searchPageKey } from './contact-search.ts';

/** `…/subscription-groups/{subscriptionGroupId}/subscriptions`: memberships of contacts in groups. */
export function subscriptionRoutes({ subscriptions }: { subscriptions: Subscriptions }): Route[] {
  return [...collectionRoutes(subscriptions), ...memberRoutes(subscriptions)];
}

const COMMON = { tag: 'Subscriptions', scope: 'setup' } satisfies Partial<RouteDescription>;
const groupParams = z.object({ subscriptionGroupId: z.string() });
const params = groupParams.extend({ identifier });
const joined = z.object({ message: z.string(), subscriber }).meta({ id: 'SubscriptionResult' });
const patch = z
  .object({ isActive: z.boolean().optional(), phone: memberPhone, ...membershipFields })
  .meta({ id: 'SubscriptionPatch' });

const JOINED = { message: 'Subscribed.', subscriber: CONTACT_EXAMPLES.subscriber };
const UPDATED = { message: 'The subscription has been updated.', subscriber: CONTACT_EXAMPLES.subscriber };

function collectionRoutes(subscriptions: Subscriptions): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions',
      operationId: 'listSubscriptions',
      summary: 'List the members of a group, newest contacts first',
      params: groupParams,
      query: z.object({ search, isActive: z.enum(['true', 'false']).optional(), ...paging }),
      responses: {
        200: {
          description: 'A page of members.',
          data: z.object({ subscribers: z.array(member), ...pageEndFields }),
          example: { subscribers: [CONTACT_EXAMPLES.member], count: 1 },
        },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      narrowBy: ['search', 'isActive', 'limit'],
      handle: ({ caller, params, query }) => {
        const { search: text = '', isActive, ...page } = query;
        const filter = {
          ...page,
          groupId: params.subscriptionGroupId,
          ...(isActive === undefined ? {} : { isActive: isActive === 'true' }),
        };
        return text.trim() === ''
          ? listMembers(subscriptions, caller.accountId, filter)
          : searchMembers(subscriptions, caller.accountId, { ...filter, text });
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions',
      operationId: 'addSubscription',
      summary: 'Add an existing contact to a group',
      description:
        '`email`, `phone` or `contactIdentifier` is required. All that are given must identify the same contact, except for a phone number that no contact has: it is added to a contact without one. An existing membership and its contact do not change. A contact that opted out of the group becomes an inactive member, as `message` and `subscriber.isActive` show: only PUT or PATCH with `isActive: true` ends an opt-out. `warnings` names a `globalStatus` for which marketing mail to an active member is refused. Evidence that is not given is `null`, except for `implicit_api`.',
      params: groupParams,
      body: z
        .object({
          email: email.optional(),
          phone: phone.optional(),
          contactIdentifier: identifier.optional(),
          isActive: z.boolean().default(true),
          ...membershipFields,
        })
        .meta({ id: 'SubscriptionInput' }),
      example: {
        email: CONTACT_EXAMPLES.subscriber.email,
        isActive: true,
        consentMethod: 'double_opt_in',
        consentDetails: CONTACT_EXAMPLES.subscriber.consentDetails,
      },
      responses: {
        201: { description: 'The contact was added.', data: joined, example: JOINED },
        200: {
          description: 'The contact was already a member.',
          data: joined,
          example: { ...JOINED, message: 'Already subscribed.' },
        },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'CONTACT_NOT_FOUND'],
      handle: async (call) => {
        const { email, phone, contactIdentifier, isActive } = call.body;
        const groupId = call.params.subscriptionGroupId;
        const added = await subscriptions.add(
          call.caller.accountId,
          groupId,
          { email, phone, contactIdentifier, isActive, ...membershipOf(call.body) },
          callerOf(call),
        );
        return joinResponse(call, added, existingMessage);
      },
    }),
  ];
}

function memberRoutes(subscriptions: Subscriptions): Route[] {
  return [
    putRoute(subscriptions, 'PUT', 'putSubscription'),
    putRoute(subscriptions, 'PATCH', 'patchSubscription'),
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions/{identifier}',
      operationId: 'getSubscription',
      summary: 'Get a subscription with the profile of the contact',
      params,
      responses: {
        200: { description: 'The subscription.', data: subscription, example: CONTACT_EXAMPLES.subscription },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'SUBSCRIPTION_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = subscriptions.get(caller.accountId, params.subscriptionGroupId, params.identifier);
        return isRefusal(found)
          ? found
          : { status: 200, data: presentSubscription(params.subscriptionGroupId, found) };
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions/{identifier}',
      operationId: 'deleteSubscription',
      summary: 'Remove a contact from a group',
      params,
      responses: {
        200: {
          description: 'The membership was removed. The contact remains, and so does an opt-out.',
          data: messageResult,
          example: { message: 'The subscription has been removed.' },
        },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'SUBSCRIPTION_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const refusal = await subscriptions.remove(
          caller.accountId,
          params.subscriptionGroupId,
          params.identifier,
        );
        return refusal ?? { status: 200, data: { message: 'The subscription has been removed.' } };
      },
    }),
  ];
}

function putRoute(subscriptions: Subscriptions, method: 'PUT' | 'PATCH', operationId: string): Route {
  return route({
    ...COMMON,
    method,
    path: '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions/{identifier}',
    operationId,
    summary: 'Add or update a subscription',
    description:
      'Idempotent. `isActive: false` records an opt-out, which remains after the membership is removed; an explicit `isActive: true` ends it. Consent and its evidence are recorded with the contact; values that are not given do not change. With `isActive: false` and without `consentMethod`, they are recorded with the opt-out instead. `warnings` names a `globalStatus` for which marketing mail to an active member is refused. `firstName`, `lastName`, `phone` and `customFields` update the contact.',
    params,
    body: patch.prefault({}),
    example: { isActive: true, consentMethod: 'web_form', consentDetails: 'Preference page' },
    stores: ({ isActive, customFields }) => isActive !== false || customFields !== undefined,
    responses: {
      200: { description: 'The subscription was updated.', data: joined, example: UPDATED },
      201: { description: 'The contact was added.', data: joined, example: JOINED },
    },
    refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'CONTACT_NOT_FOUND', 'CONTACT_ALREADY_EXISTS'],
    handle: async (call) => {
      const groupId = call.params.subscriptionGroupId;
      const result = await subscriptions.put(
        call.caller.accountId,
        groupId,
        call.params.identifier,
        { isActive: call.body.isActive, ...membershipOf(call.body, call.body.phone) },
        callerOf(call),
      );
      return joinResponse(call, result, () => UPDATED.message);
    },
  });
}

type MembershipBody = z.output<z.ZodObject<typeof membershipFields>>;

function membershipOf(body: MembershipBody, phone?: string | null): MembershipInput {
  const { firstName, lastName, customFields, source } = body;
  const profile = { firstName, lastName, customFields, phone };
  const hasProfile = Object.values(profile).some((value) => value !== undefined);
  return { consent: consentInputOf(body), source, profile: hasProfile ? profile : undefined };
}

/** The body has a warning if it makes the contact an active member, but marketing mail to the contact is refused. */
function joinResponse(
  call: Call<{ subscriptionGroupId: string }, unknown, { isActive?: boolean | undefined }>,
  result: MembershipResult | Refusal,
  messageOf: (joined: MembershipResult) => string,
): ApiResponse | Refusal {
  if (isRefusal(result)) return result;
  const { member, created } = result;
  const isActive = member.subscription.is_active === 1;
  const message = created ? (isActive ? JOINED.message : ADDED_INACTIVE) : messageOf(result);
  const subscriber = presentSubscriber(call.params.subscriptionGroupId, member);
  const { global_status: status } = member.contact;
  const isRefused = call.body.isActive === true && isActive && status !== 'active';
  const refused = isRefused
    ? [`marketing mail to the contact is refused: its globalStatus is "${status}"`]
    : [];
  return {
    status: created ? 201 : 200,
    raw: successBody({ message, subscriber }, [...call.warnings, ...refused]),
  };
}

const ADDED_INACTIVE = 'Added as an inactive member: the contact has opted out of this group.';

/** Message about a membership that existed before. */
function existingMessage({ member: { contact, subscription }, leftAt }: MembershipResult): string {
  if (subscription.is_active === 0) {
    const since = leftAt === null ? '' : ` at ${iso(leftAt)}`;
    return `Not subscribed: the contact opted out of this group${since}. PUT or PATCH with isActive: true ends the opt-out.`;
  }
  return contact.global_status === 'unsubscribed'
    ? 'Already subscribed, but the contact has opted out of all marketing mail.'
    : 'Already subscribed.';
}

interface ListFilter {
  groupId: string;
  isActive?: boolean;
  lastKey?: string | undefined;
  limit: number;
}

async function listMembers(
  subscriptions: Subscriptions,
  accountId: string,
  { groupId, lastKey, ...filter }: ListFilter,
): Promise<ApiResponse | Refusal> {
  const beforeSeq = readPageKey('subscriptions', lastKey);
  if (isRefusal(beforeSeq)) return beforeSeq;
  const page = await subscriptions.list(accountId, groupId, { ...filter, beforeSeq });
  if (isRefusal(page)) return page;
  const rows = page.rows.map(({ contact }) => ({ seq: contact.seq }));
  return {
    status: 200,
    data: {
      subscribers: presentMembers(groupId, page.rows),
      ...pageEnd('subscriptions', { rows, more: page.more }),
    },
  };
}

async function searchMembers(
  subscriptions: Subscriptions,
  accountId: string,
  { groupId, lastKey, ...filter }: ListFilter & { text: string },
): Promise<ApiResponse | Refusal> {
  const after = readSearchPageKey(lastKey);
  if (isRefusal(after)) return after;
  const found = await subscriptions.search(accountId, groupId, { ...filter, after });
  if (isRefusal(found)) return found;
  const members = found.rows.flatMap(({ contact, subscription }) =>
    subscription === null ? [] : [{ contact, subscription }],
  );
  return {
    status: 200,
    data: {
      subscribers: presentMembers(groupId, members),
      count: members.length,
      ...(found.next === null ? {} : { nextKey: searchPageKey(found.next) }),
    },
  };
}

function presentMembers(groupId: string, members: Member[]) {
  return members.map((member) => presentMember(groupId, member));
}
