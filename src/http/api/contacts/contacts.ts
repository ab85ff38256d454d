import * as z from 'zod';
import type { Contacts } from '../../../audience/contacts.ts';
import type { Erasure } from '../../../audience/erasure/erase.ts';
import { presentConsent, presentContact, presentMembership } from '../../../audience/present.ts';
import type { Segments } from '../../../audience/segments/segments.ts';
import { invalid, isRefusal } from '../../../core/refusal.ts';
import { CONSENT_ACTIONS, CONSENT_METHODS, OPT_OUT_METHODS } from '../../../store/contacts/consent.ts';
import type { KnownContact } from '../../../store/contacts/contacts.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { messageResult } from '../fields.ts';
import { endOf, pageOf, pagesBySeq, paging, seqEnd, unknownKey } from '../paging.ts';
import {
  CONTACT_EXAMPLES,
  callerOf,
  consentOf,
  contact,
  contactReference,
  globalStatus,
  membership,
  profileFields,
} from './contact-schemas.ts';
import { positionText, search, searchablePages } from './contact-search.ts';

/* `/web-setup/contacts`: contacts of an account, their consent history and their erasure. */

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });
const params = { contactIdentifier: contactReference };
const result = z.object({ contact }).meta({ id: 'ContactResult' });
const input = z.object(profileFields).meta({ id: 'ContactInput' });
const example = { contact: CONTACT_EXAMPLES.contact };

export const consent = z
  .object({
    action: z
      .enum(CONSENT_ACTIONS)
      .describe(
        '`withdrawn`: the consent was withdrawn, or, with a `method`, the person opted out of all marketing mail. `given` with `page`: the person ended that opt-out on the unsubscribe page.',
      ),
    subscriptionGroupId: z.string().optional(),
    method: z.enum([...CONSENT_METHODS, ...OPT_OUT_METHODS]).optional(),
    details: z.string().optional(),
    ipAddress: z.string().optional(),
    userAgent: z.string().optional(),
    timestamp: z.iso.datetime().optional().describe('When the person made the choice; absent: unknown.'),
    recordedAt: z.iso.datetime(),
    recordedBy: z
      .string()
      .describe(
        'The API key, the person of the console, `command line`, `import`, or `recipient` for the person.',
      ),
  })
  .meta({ id: 'ConsentRecord' });

const CONSENT_EXAMPLE: z.output<typeof consent> = {
  action: 'given',
  method: 'double_opt_in',
  details: CONTACT_EXAMPLES.contact.consentDetails,
  ipAddress: CONTACT_EXAMPLES.contact.consentIpAddress,
  userAgent: CONTACT_EXAMPLES.contact.consentUserAgent,
  timestamp: CONTACT_EXAMPLES.time,
  recordedAt: CONTACT_EXAMPLES.time,
  recordedBy: CONTACT_EXAMPLES.contact.addedBy,
};

/** A list with `search` has page keys of the search, without it those of the table. */
export function contactRoutes({
  contacts,
  erasure,
  segments,
}: {
  contacts: Contacts;
  erasure: Erasure;
  segments: Segments;
}): Route[] {
  /** PUT replaces all custom fields, PATCH merges them. */
  const update = (method: 'PUT' | 'PATCH', operationId: string, summary: string, customFieldsNote: string) =>
    route(`${method} /web-setup/contacts/{contactIdentifier}`, {
      operationId,
      refusesTestKeys: 'whileSequenceActive',
      summary,
      description: `Replaces the fields that are given; \`null\` clears a field, \`consentMethod: null\` withdraws the consent. Evidence of the consent does not change unless it is given or \`consentMethod\` changes.${customFieldsNote} With \`globalStatus: "unsubscribed"\` and without \`consentMethod\`, the other consent fields are recorded with the opt-out. Opt-outs of the contact also apply to a new email address.`,
      params,
      body: input,
      example: { firstName: 'Augusta Ada', customFields: { plan: 'gold', since: 2026 } },
      stores: ({ globalStatus, customFields }) =>
        globalStatus === undefined || globalStatus === 'active' || customFields !== undefined,
      response: { description: 'The updated contact.', data: result, example },
      refusals: ['CONTACT_NOT_FOUND', 'CONTACT_ALREADY_EXISTS', 'INVALID_STATE'],
      handle: async (call) => {
        const { email, phone, firstName, lastName, language, customFields, source, globalStatus } = call.body;
        const consent = consentOf(call.body);
        const updated = await contacts.update(
          call.caller.accountId,
          call.params.contactIdentifier,
          { email, phone, firstName, lastName, language, customFields, source, globalStatus, consent },
          { ...callerOf(call), merge: method === 'PATCH' },
        );
        return mapResult(updated, present);
      },
    });
  return [
    route('GET /web-setup/contacts', {
      operationId: 'listContacts',
      summary: 'List contacts, newest first',
      query: z.object({
        search,
        status: globalStatus.optional(),
        segmentId: z
          .string()
          .max(100)
          .optional()
          .describe('Only contacts of this segment. Cannot be combined with `search`.'),
        erasureRequested: z
          .literal('true')
          .optional()
          .describe('Only contacts that asked to be erased; without `search`, `status` and `segmentId`.'),
        ...paging,
      }),
      page: searchablePages('contacts'),
      response: pageOf('contacts', contact, CONTACT_EXAMPLES.contact),
      narrowBy: ['search', 'limit'],
      refusals: ['SEGMENT_NOT_FOUND'],
      handle: async ({ caller: { accountId }, query, after }) => {
        const { search: text = '', status, segmentId, erasureRequested, limit } = query;
        if (
          erasureRequested !== undefined &&
          (text.trim() !== '' || status !== undefined || segmentId !== undefined)
        )
          return invalid('erasureRequested', 'must not be combined with search, status or segmentId');
        if (segmentId !== undefined) {
          if (text.trim() !== '') return invalid('segmentId', 'cannot be combined with search');
          if (typeof after === 'object' && after !== null) return unknownKey();
          const of = { segmentId, status: status ?? null, beforeSeq: after, limit };
          const page = await segments.contacts(accountId, of);
          return mapResult(page, (found) => ({
            contacts: found.rows.map(presentContact),
            ...seqEnd(found),
          }));
        }
        const filter = {
          accountId,
          limit,
          ...(status === undefined ? {} : { status }),
          ...(erasureRequested === undefined ? {} : { erasureRequested: true as const }),
        };
        if (text.trim() === '') {
          if (typeof after === 'object' && after !== null) return unknownKey();
          const page = await contacts.list({ ...filter, beforeSeq: after });
          return { contacts: page.rows.map(presentContact), ...seqEnd(page) };
        }
        if (typeof after === 'number') return unknownKey();
        const { rows, next } = await contacts.search({ ...filter, text, after });
        return {
          contacts: rows.map((row) => presentContact(row.contact)),
          ...endOf(rows, positionText(next)),
        };
      },
    }),
    route('POST /web-setup/contacts', {
      operationId: 'createContact',
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Create a contact',
      description:
        '`email` or `phone` is required. Without `consentMethod`, `implicit_api` is recorded with the address and the client of this request, or, if `consentIpAddress` or `consentUserAgent` is given, with these only. For any other method, evidence that is not given is `null`.',
      body: input,
      example: CONTACT_EXAMPLES.profile,
      response: { status: 201, description: 'The created contact.', data: result, example },
      refusals: ['CONTACT_ALREADY_EXISTS', 'LIMIT_REACHED', 'INVALID_STATE'],
      handle: async (call) => {
        const { body } = call;
        const profile = {
          email: body.email ?? undefined,
          phone: body.phone ?? undefined,
          firstName: body.firstName,
          lastName: body.lastName,
          language: body.language,
          customFields: body.customFields,
          source: body.source,
          globalStatus: body.globalStatus,
          consent: consentOf(body),
        };
        const created = await contacts.create(call.caller.accountId, profile, callerOf(call));
        return mapResult(created, present);
      },
    }),
    route('GET /web-setup/contacts/{contactIdentifier}', {
      operationId: 'getContact',
      summary: 'Get a contact with its memberships',
      params,
      response: {
        description: 'The contact.',
        data: result.extend({ memberships: z.array(membership) }),
        example: { ...example, memberships: [CONTACT_EXAMPLES.membership] },
      },
      refusals: ['CONTACT_NOT_FOUND'],
      narrowBy: [],
      handle: async ({ caller, params }) => {
        const found = contacts.get(caller.accountId, params.contactIdentifier);
        if (isRefusal(found)) return found;
        const memberships = (await contacts.memberships(found)).map(presentMembership);
        return { contact: presentContact(found), memberships };
      },
    }),
    update('PUT', 'replaceContactFields', 'Update a contact', ' `customFields` are replaced as a whole.'),
    update(
      'PATCH',
      'updateContact',
      'Update a contact and merge its custom fields',
      ' `customFields` are merged by field; `null` removes one.',
    ),
    route('GET /web-setup/contacts/{contactIdentifier}/consent-history', {
      operationId: 'listConsentHistory',
      summary: 'List the consent history of a contact, newest first',
      description:
        'Consents, withdrawals, and opt-outs of marketing mail and of groups. Deletions of suppressions are listed by `GET /web-setup/suppressions/removals`.',
      params,
      query: z.object(paging),
      page: pagesBySeq('consents'),
      response: pageOf('consents', consent, CONSENT_EXAMPLE, { description: 'A page of the history.' }),
      refusals: ['CONTACT_NOT_FOUND'],
      handle: ({ caller, params, query: { limit }, after }) => {
        const found = contacts.get(caller.accountId, params.contactIdentifier);
        if (isRefusal(found)) return found;
        const more = contacts.history(found, after, limit + 1);
        const rows = more.slice(0, limit);
        return {
          consents: rows.map(presentConsent),
          ...endOf(rows, more.length > limit ? rows.at(-1)?.n : null),
        };
      },
    }),
    route('DELETE /web-setup/contacts/{contactIdentifier}', {
      operationId: 'eraseContact',
      summary: 'Erase a contact',
      permission: 'erase',
      isConfirmed: true,
      description:
        'Deletes profile, memberships and history, cancels queued mail, and removes email address, phone number and name from messages, events and stored responses. Suppressions and opt-outs remain, by the identifier only. Later events of mail that was sent before contain no `ip`, no `userAgent` and only the origin of a clicked link. A recipient who is no contact: create the contact and erase it, or use `postrider contacts erase ADDRESS`.',
      params,
      response: {
        description: 'The contact was erased.',
        data: messageResult,
        example: { message: 'The contact has been erased.' },
      },
      refusals: ['CONTACT_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const erased = await erasure.erase(caller.accountId, params.contactIdentifier);
        if (isRefusal(erased)) return erased;
        const message = erased.complete
          ? 'The contact has been erased.'
          : 'The contact has been erased; its remaining data in messages and events is being cleared.';
        return { message };
      },
    }),
  ];
}

function present(row: KnownContact) {
  return { contact: presentContact(row) };
}
