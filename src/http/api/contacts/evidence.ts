import * as z from 'zod';
import { CONSENT_STANDINGS, consentProof } from '../../../audience/consent-proof.ts';
import { findPerson } from '../../../audience/people.ts';
import { parsePosition, positionText, readPersonalData } from '../../../audience/personal-data.ts';
import { isRefusal } from '../../../core/refusal.ts';
import type { Context } from '../../../store/context.ts';
import { Reply, type Route, routesOf, unchecked } from '../../route.ts';
import { eventSchema } from '../event-schema.ts';
import { endOf, pageEndFields, paging } from '../paging.ts';
import { messageSchema } from '../sending/messages.ts';
import { messageStatus } from '../sending/send-schemas.ts';
import { suppression, suppressionRemoval } from '../suppressions.ts';
import { consentProofPage } from './consent-proof-page.ts';
import { CONTACT_EXAMPLES, contact, contactReference, membership } from './contact-schemas.ts';
import { consent } from './contacts.ts';

/* `/web-setup/contacts/{contactIdentifier}/consent-proof` and `/personal-data`: evidence, and all data about a person. */

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });
const params = { contactIdentifier: contactReference };
const time = z.iso.datetime();

const doubleOptIn = z
  .object({
    subscriptionGroupId: z.string(),
    form: z
      .object({ group: z.string(), description: z.string().optional() })
      .describe('What the form showed.'),
    formSentAt: time,
    confirmationMail: z
      .object({
        messageId: z.string(),
        from: z.string(),
        subject: z.string(),
        intro: z.string().optional().describe('First paragraph; absent: the default text.'),
        acceptedAt: time,
        status: messageStatus.optional().describe('As long as the message is stored.'),
        deliveredAt: time.optional(),
      })
      .nullable()
      .describe('The mail with the link; `null` when it was not stored any more at the confirmation.'),
    confirmedAt: time.optional().describe('When the person opened the link and confirmed.'),
    ipAddress: z.string().optional(),
    userAgent: z.string().optional(),
  })
  .meta({ id: 'DoubleOptIn' });

const groupName = z.string().optional();

export const proof = z
  .object({
    contactIdentifier: z.string(),
    userId: z.string(),
    email: z.string().optional(),
    phone: z.string().optional(),
    firstName: z.string().optional(),
    lastName: z.string().optional(),
    source: z.string(),
    addedBy: z.string(),
    createdAt: time,
    generatedAt: time,
    status: z
      .enum(CONSENT_STANDINGS)
      .describe('`opted_out`: the consent is on record, and the person opted out of marketing mail later.'),
    consent: consent.nullable().describe('The consent that is in effect.'),
    doubleOptIn: z.array(doubleOptIn).describe('Sign-ups by form that were confirmed by mail, oldest first.'),
    memberships: z.array(z.intersection(membership, z.object({ groupName }))),
    history: z
      .array(z.intersection(consent, z.object({ groupName })))
      .describe('Every consent, withdrawal and opt-out, oldest first.'),
  })
  .meta({ id: 'ConsentProof' });

const { contact: EXAMPLE, membership: MEMBERSHIP, time: TIME } = CONTACT_EXAMPLES;
const CONSENT = {
  action: 'given',
  method: 'double_opt_in',
  details: 'Form of Newsletter, sent 2026-01-31T11:58:00.000Z, confirmed by mail',
  ipAddress: '192.0.2.7',
  userAgent: 'Mozilla/5.0',
  timestamp: TIME,
  recordedAt: TIME,
  recordedBy: 'recipient',
} as const;

const PROOF_EXAMPLE: z.output<typeof proof> = {
  contactIdentifier: EXAMPLE.contactIdentifier,
  userId: EXAMPLE.userId,
  email: EXAMPLE.email,
  source: 'sign_up_form',
  addedBy: 'recipient',
  createdAt: TIME,
  generatedAt: '2026-02-03T09:00:00.000Z',
  status: 'given',
  consent: CONSENT,
  doubleOptIn: [],
  memberships: [{ ...MEMBERSHIP, groupName: 'Newsletter' }],
  history: [],
};

const personalData = z
  .object({
    contactIdentifier: z.string(),
    exportedAt: time,
    contact: contact.nullable().optional().describe('`null`: the person is a recipient, but no contact.'),
    memberships: z
      .array(
        membership.extend({
          consentMethod: z.string(),
          consentDetails: z.string().nullable(),
          updatedAt: time,
        }),
      )
      .optional(),
    consents: z.array(z.intersection(consent, z.object({ doubleOptIn: z.array(doubleOptIn) }))).optional(),
    optOuts: z
      .array(z.object({ subscriptionGroupId: z.string(), method: z.string(), createdAt: time }))
      .optional(),
    signUps: z
      .array(z.object({ subscriptionGroupId: z.string().nullable(), usedUntil: time }))
      .optional()
      .describe('Sign-up links that confirm nothing any more.'),
    suppressions: z.array(suppression).optional(),
    suppressionRemovals: z.array(suppressionRemoval).optional(),
    strikes: z
      .array(z.object({ kind: z.string(), at: time }))
      .optional()
      .describe('Bounces that suppress the address when they are repeated.'),
    engagement: z
      .object({})
      .catchall(z.unknown())
      .nullable()
      .optional()
      .describe('What the contact did with marketing mail; the 10,000 newest campaigns.'),
    sequences: z
      .array(
        z.object({
          sequenceId: z.string(),
          state: z.string(),
          step: z.int(),
          reason: z.string().optional(),
          properties: z.record(z.string(), z.unknown()).describe('Of the event that triggered it.'),
          enteredAt: time,
          endedAt: time.nullable(),
        }),
      )
      .optional()
      .describe('Sequences that the contact is or was in; the 10,000 newest.'),
    hygiene: z
      .array(
        z.object({
          hygieneId: z.string(),
          kind: z.string(),
          detail: z.string().optional(),
          examinedAt: time,
        }),
      )
      .optional()
      .describe('What examinations of the addresses of the account found.'),
    messages: z
      .array(z.intersection(messageSchema, z.object({ timeline: z.array(z.unknown()) })))
      .describe('Newest first, each with its events and delivery attempts.'),
    events: z.array(eventSchema).describe('Events about the person without a message, such as opt-outs.'),
    ...pageEndFields,
  })
  .meta({ id: 'PersonalData' });

export function evidenceRoutes({
  tables,
  reader,
  clock,
}: Pick<Context, 'tables' | 'reader' | 'clock'>): Route[] {
  return [
    route('GET /web-setup/contacts/{contactIdentifier}/consent-proof', {
      operationId: 'getConsentProof',
      summary: 'Get the proof of consent of a contact',
      description:
        'Who consented, when, how, from which address and browser; the form, the confirmation mail and its confirmation for each double opt-in; and every later change. With `format=html`, or `Accept: text/html`, the response is a page to print, without scripts.',
      params,
      query: z.object({
        format: z.enum(['json', 'html']).optional().describe('Default: `json`, or what `Accept` prefers.'),
      }),
      response: { description: 'The evidence.', data: proof, example: PROOF_EXAMPLE },
      refusals: ['CONTACT_NOT_FOUND'],
      handle: ({ caller, params: { contactIdentifier }, query: { format }, headers }) => {
        const found = findPerson(tables, caller.accountId, contactIdentifier);
        if (isRefusal(found)) return found;
        const evidence = consentProof(tables, found, clock.now());
        const isPage = format === undefined ? /^text\/html\b/.test(headers.accept ?? '') : format === 'html';
        if (!isPage) return evidence;
        const account = tables.accounts.get(caller.accountId);
        return new Reply(
          { raw: consentProofPage(evidence, account?.company_name ?? account?.name ?? caller.accountId) },
          { contentType: 'text/html; charset=utf-8', headers: PAGE_HEADERS },
        );
      },
    }),
    route('GET /web-setup/contacts/{contactIdentifier}/personal-data', {
      operationId: 'exportPersonalData',
      summary: 'Export all data about a person',
      permission: 'export',
      description:
        'For requests under articles 15 and 20 of the GDPR: profile, memberships, consent history, opt-outs, suppressions, messages with their events and delivery attempts, and other events. The person may also be a recipient who is no contact. The first page has everything but the messages and events that do not fit into it; further pages have only these. The contents of messages are returned by `GET /web-setup/messages/{id}/content` as long as they are stored.',
      params,
      query: z.object(paging),
      page: { list: 'personal-data', parse: parsePosition },
      hasLargeResponse: true,
      response: {
        description: 'A page of the data.',
        data: unchecked(personalData),
        example: {
          contactIdentifier: EXAMPLE.contactIdentifier,
          exportedAt: TIME,
          contact: EXAMPLE,
          memberships: [
            { ...MEMBERSHIP, consentMethod: 'double_opt_in', consentDetails: null, updatedAt: TIME },
          ],
          consents: [{ ...CONSENT, doubleOptIn: [] }],
          optOuts: [],
          signUps: [],
          suppressions: [],
          suppressionRemovals: [],
          strikes: [],
          engagement: { receivedAt: TIME, campaigns: [] },
          sequences: [],
          hygiene: [],
          messages: [],
          events: [],
          count: 0,
        },
      },
      refusals: ['CONTACT_NOT_FOUND'],
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, params: { contactIdentifier: identifier }, query, after }) => {
        const page = await readPersonalData(
          reader,
          { accountId, identifier, after, limit: query.limit },
          clock.now(),
        );
        if (isRefusal(page)) return page;
        const { data, messages, events, next } = page;
        const rows = [...messages, ...events];
        return { ...data, messages, events, ...endOf(rows, next === null ? null : positionText(next)) };
      },
    }),
  ];
}

const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};
