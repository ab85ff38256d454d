import * as z from 'zod';
import { presentMember, presentSubscriber, presentSubscription } from '../../../audience/present.ts';
import type { MembershipInput, MembershipResult, Subscriptions } from '../../../audience/subscriptions.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal, type Refusal } from '../../../core/refusal.ts';
import type { Member } from '../../../store/contacts/subscriptions.ts';
import { type Call, mapResult, Reply, type Route, routesOf } from '../../route.ts';
import { messageResult } from '../fields.ts';
import { endOf, pageOf, paging, unknownKey } from '../paging.ts';
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
import { positionText, search, searchablePages } from './contact-search.ts';

const route = routesOf({ tag: 'Subscriptions', scope: 'setup', permissions: ['read', 'contacts'] });
const ALL = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions';
const ONE = `${ALL}/{identifier}` as const;
const params = { identifier };
// The resource is the first field of a response (guard.ts).
const joined = z.object({ subscriber, message: z.string() }).meta({ id: 'SubscriptionResult' });
const patch = z
  .object({ isActive: z.boolean().optional(), phone: memberPhone, ...membershipFields })
  .meta({ id: 'SubscriptionPatch' });

const JOINED = { message: 'Subscribed.', subscriber: CONTACT_EXAMPLES.subscriber };
const UPDATED = { message: 'The subscription has been updated.', subscriber: CONTACT_EXAMPLES.subscriber };

/** `…/subscription-groups/{subscriptionGroupId}/subscriptions`: memberships of contacts in groups. */
export function subscriptionRoutes({ subscriptions }: { subscriptions: Subscriptions }): Route[] {
  const put = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} ${ONE}`, {
      operationId,
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Add or update a subscription',
      description:
        'Idempotent. `isActive: false` records an opt-out, which remains after the membership is removed; an explicit `isActive: true` ends it. Consent and its evidence are recorded with the contact; values that are not given do not change. With `isActive: false` and without `consentMethod`, they are recorded with the opt-out instead. `warnings` names a `globalStatus` for which marketing mail to an active member is refused. `firstName`, `lastName`, `phone` and `customFields` update the contact.',
      params,
      body: patch.prefault({}),
      readOnly: ['subscriptionId', 'globalStatus'],
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
  return [
    route(`GET ${ALL}`, {
      operationId: 'listSubscriptions',
      summary: 'List the members of a group, newest contacts first',
      query: z.object({ search, isActive: z.enum(['true', 'false']).optional(), ...paging }),
      page: searchablePages('subscriptions'),
      response: pageOf('subscribers', member, CONTACT_EXAMPLES.member, { description: 'A page of members.' }),
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND'],
      narrowBy: ['search', 'isActive', 'limit'],
      handle: async ({
        caller: { accountId },
        params: { subscriptionGroupId: groupId },
        query: { search: text = '', isActive, limit },
        after,
      }) => {
        const filter = { limit, ...(isActive === undefined ? {} : { isActive: isActive === 'true' }) };
        const presentAll = (members: Member[]) => members.map((each) => presentMember(groupId, each));
        if (text.trim() === '') {
          if (typeof after === 'object' && after !== null) return unknownKey();
          const page = await subscriptions.list(accountId, groupId, { ...filter, beforeSeq: after });
          return mapResult(page, ({ rows, more }) => ({
            subscribers: presentAll(rows),
            ...endOf(rows, more ? rows.at(-1)?.contact.seq : null),
          }));
        }
        if (typeof after === 'number') return unknownKey();
        const found = await subscriptions.search(accountId, groupId, { ...filter, text, after });
        return mapResult(found, ({ rows, next }) => {
          const members = rows.flatMap(({ contact, subscription: joined }) =>
            joined === null ? [] : [{ contact, subscription: joined }],
          );
          return { subscribers: presentAll(members), ...endOf(members, positionText(next)) };
        });
      },
    }),
    route(`POST ${ALL}`, {
      operationId: 'addSubscription',
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Add an existing contact to a group',
      description:
        '`email`, `phone` or `contactIdentifier` is required. All that are given must identify the same contact, except for a phone number that no contact has: it is added to a contact without one. An existing membership and its contact do not change. A contact that opted out of the group becomes an inactive member, as `message` and `subscriber.isActive` show: only PUT or PATCH with `isActive: true` ends an opt-out. `warnings` names a `globalStatus` for which marketing mail to an active member is refused. Evidence that is not given is `null`, except for `implicit_api`.',
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
    put('PUT', 'putSubscription'),
    put('PATCH', 'patchSubscription'),
    route(`GET ${ONE}`, {
      operationId: 'getSubscription',
      summary: 'Get a subscription with the profile of the contact',
      params,
      response: {
        description: 'The subscription.',
        data: subscription,
        example: CONTACT_EXAMPLES.subscription,
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'SUBSCRIPTION_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const { subscriptionGroupId, identifier } = params;
        const found = subscriptions.get(caller.accountId, subscriptionGroupId, identifier);
        return mapResult(found, (each) => presentSubscription(subscriptionGroupId, each));
      },
    }),
    route(`DELETE ${ONE}`, {
      operationId: 'deleteSubscription',
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Remove a contact from a group',
      params,
      response: {
        description: 'The membership was removed. The contact remains, and so does an opt-out.',
        data: messageResult,
        example: { message: 'The subscription has been removed.' },
      },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'SUBSCRIPTION_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const { subscriptionGroupId, identifier } = params;
        const refusal = await subscriptions.remove(caller.accountId, subscriptionGroupId, identifier);
        return refusal ?? { message: 'The subscription has been removed.' };
      },
    }),
  ];
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
): Reply | Refusal {
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
  return new Reply({ data: { message, subscriber } }, { status: created ? 201 : 200, warnings: refused });
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
