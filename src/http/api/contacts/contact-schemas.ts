import * as z from 'zod';
import type { Actor } from '../../../audience/contacts.ts';
import {
  type ConsentInput,
  customFieldsFault,
  MAX_SOURCE,
  MAX_USER_AGENT,
  type Parsed,
  readDetails,
  readEmail,
  readIpAddress,
  readLanguage,
  readMoment,
  readName,
  readPhone,
  readSource,
  readUserAgent,
} from '../../../audience/profile.ts';
import { emailIdentifier, IDENTIFIER } from '../../../mail/identifier.ts';
import { CONSENT_METHODS, type ConsentMethod } from '../../../store/contacts/consent.ts';
import { GLOBAL_STATUSES } from '../../../store/contacts/contacts.ts';
import type { Call } from '../../route.ts';

/* Contacts and memberships in requests and responses: schemas, and examples for the documentation. */

/** A string that a reader of the audience module parses. */
function parsedString<Value>(reader: (text: string) => Parsed<Value>, maxLength: number) {
  return z
    .string()
    .meta({ maxLength })
    .transform((text, context): Value => {
      const read = reader(text);
      if ('value' in read) return read.value;
      context.addIssue({ code: 'custom', message: read.fault });
      return z.NEVER;
    });
}

export const email = parsedString(readEmail, 320).meta({
  id: 'ContactEmail',
  description: 'An address without a display name.',
});
export const phone = parsedString(readPhone, 50).meta({
  id: 'ContactPhone',
  description: 'An international number; stored as E.164.',
});
const name = parsedString(readName, 200);
export const language = parsedString(readLanguage, 40).meta({
  id: 'ContactLanguage',
  description: 'A language tag (BCP 47) such as `de` or `pt-BR`. The public pages use it.',
});
export const consentMethod = z.enum(CONSENT_METHODS).meta({ id: 'ConsentMethod' });
export const consentDetails = parsedString(readDetails, 2000).meta({
  id: 'ConsentDetails',
  description: 'A note that is recorded with the consent.',
});

const customFields = z
  .unknown()
  .superRefine((value, context) => {
    const fault = value === undefined ? null : customFieldsFault(value);
    if (fault === null) return;
    const path = fault.path === '' ? [] : fault.path.split('.');
    context.addIssue({ code: 'custom', message: fault.message, path });
  })
  // Sound: `customFieldsFault` accepts objects only.
  .transform((value) => value as Record<string, unknown> | undefined)
  .meta({ type: 'object', additionalProperties: true })
  .describe('Custom fields: any JSON values, at most 1000 fields and 64 KiB in total.');

/** Either identifier of a contact, in a path or a body. */
export const identifier = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine((text) => IDENTIFIER.test(text), 'must be email_<md5> or phone_<md5>')
  .meta({
    id: 'ContactIdentifier',
    description:
      '`email_` and the MD5 of the trimmed, lower-cased address, or `phone_` and the MD5 of the E.164 number.',
  });

/** A contact in a path: an identifier, or `email:` and the address. */
export const contactReference = z
  .string()
  .transform((text, context) => {
    if (!/^email:/i.test(text)) return text.toLowerCase();
    const read = readEmail(text.slice('email:'.length));
    if ('value' in read) return emailIdentifier(read.value);
    context.addIssue({ code: 'custom', message: read.fault });
    return z.NEVER;
  })
  .refine((text) => IDENTIFIER.test(text), 'must be email_<md5>, phone_<md5> or email:<address>')
  .meta({
    id: 'ContactReference',
    description: 'The identifier of a contact, or `email:` and its address, such as `email:ada@example.net`.',
  });

export const globalStatus = z.enum(GLOBAL_STATUSES).meta({ id: 'GlobalStatus' });

const evidence = {
  consentIpAddress: parsedString(readIpAddress, 45)
    .nullable()
    .meta({
      id: 'ConsentIpAddress',
      description:
        'Address from which the person consented. The address of the API request is recorded for `implicit_api` only, if neither this nor `consentUserAgent` is given.',
    })
    .optional(),
  consentUserAgent: parsedString(readUserAgent, MAX_USER_AGENT)
    .nullable()
    .meta({
      id: 'ConsentUserAgent',
      description:
        'Browser of the person. The client of the API request is recorded for `implicit_api` only, if neither this nor `consentIpAddress` is given.',
    })
    .optional(),
  consentTimestamp: parsedString(readMoment, 40)
    .nullable()
    .meta({ id: 'ConsentTimestamp', description: 'When the person consented, ISO 8601.' })
    .optional(),
  source: parsedString(readSource, MAX_SOURCE)
    .nullable()
    .transform((value) => value ?? undefined)
    .meta({
      id: 'ContactSourceInput',
      description: 'Origin of the contact, such as `checkout`. Default: `api`.',
    })
    .optional(),
};

export const profileFields = {
  email: email.nullable().optional(),
  phone: phone.nullable().optional(),
  firstName: name.nullable().optional(),
  lastName: name.nullable().optional(),
  language: language.nullable().optional(),
  customFields: customFields.optional(),
  globalStatus: globalStatus
    .optional()
    .describe(
      '`unsubscribed` records a marketing opt-out. `active` ends it, but only together with new consent. `bounced`, `complained` and `suppressed` record a suppression of all mail with the reason `hard_bounce`, `complaint` or `manual`.',
    ),
  consentMethod: consentMethod.nullable().optional(),
  consentDetails: consentDetails.nullable().optional(),
  ...evidence,
};

/** Converts the empty string, which a subscription has in place of a missing value, to null. */
function emptyAsNull<Value>(schema: z.ZodType<Value, string>) {
  return z.union([z.literal('').transform(() => null), schema]).nullable();
}

const memberName = emptyAsNull(name).meta({ id: 'ContactName', description: 'Name of the contact.' });

/** Fields of a request that writes a subscription. */
export const membershipFields = {
  consentMethod: consentMethod.optional(),
  consentDetails: emptyAsNull(consentDetails).optional(),
  ...evidence,
  firstName: memberName.optional(),
  lastName: memberName.optional(),
  customFields: customFields
    .optional()
    .describe('Custom fields of the contact; merged by field, `null` removes one.'),
};

export const memberPhone = emptyAsNull(phone).optional().describe('Phone number of the contact.');

interface ConsentBody {
  consentMethod?: ConsentMethod | null | undefined;
  consentDetails?: string | null | undefined;
  consentIpAddress?: string | null | undefined;
  consentUserAgent?: string | null | undefined;
  consentTimestamp?: number | null | undefined;
}

/** The consent in a body; undefined when it has none, null when it withdraws the consent. */
export function consentOf(body: ConsentBody): ConsentInput | null | undefined {
  return body.consentMethod === null ? null : consentInputOf({ ...body, consentMethod: body.consentMethod });
}

/** The consent in a body that writes a subscription; undefined when it has none. */
export function consentInputOf(
  body: ConsentBody & { consentMethod?: ConsentMethod | undefined },
): ConsentInput | undefined {
  const input: ConsentInput = {
    method: body.consentMethod,
    details: body.consentDetails,
    ipAddress: body.consentIpAddress,
    userAgent: body.consentUserAgent,
    consentedAt: body.consentTimestamp,
  };
  return Object.values(input).every((value) => value === undefined) ? undefined : input;
}

/** The caller as the consent record names it. */
export function callerOf({ caller, address, headers }: Call<unknown, unknown, unknown>): Actor {
  const userAgent = readUserAgent((headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT));
  return {
    by: caller.keyId,
    ipAddress: address,
    userAgent: 'value' in userAgent && userAgent.value !== '' ? userAgent.value : null,
  };
}

export const source = z
  .string()
  .meta({ id: 'ContactSource', description: '`api`, `import`, or the value that the caller set.' });
export const anyFields = z.record(z.string(), z.unknown());
const time = z.iso.datetime();

export const contact = z
  .object({
    contactIdentifier: z.string().describe('That of the email address, else that of the phone number.'),
    userId: z.uuid(),
    email: z.string().optional(),
    phone: z.string().optional(),
    firstName: z.string().optional(),
    lastName: z.string().optional(),
    language: z.string().optional().describe('Language tag (BCP 47); absent: unknown.'),
    customFields: anyFields,
    globalStatus: globalStatus.describe(
      'Derived from bounces, complaints, opt-outs and the suppression list.',
    ),
    pausedUntil: time
      .optional()
      .describe('The person paused marketing mail on the preference page. Absent: not paused.'),
    erasureRequestedAt: time
      .optional()
      .describe('The person asked on the preference page to be erased: `DELETE` the contact to complete it.'),
    consentMethod: consentMethod.optional().describe('Absent: no consent.'),
    consentDetails: z.string().optional(),
    consentIpAddress: z.string().optional(),
    consentUserAgent: z.string().optional(),
    consentTimestamp: time.optional().describe('When the person consented; absent: unknown.'),
    source,
    addedBy: z.string().describe('The API key, or `import`.'),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Contact' });

export const membership = z
  .object({
    subscriptionGroupId: z.string(),
    joinedAt: time,
    isActive: z.boolean(),
    source,
  })
  .meta({ id: 'Membership' });

const subscriptionId = z.string().describe('`<subscriptionGroupId>:<contactIdentifier>`.');

const subscriberFields = {
  subscriptionGroupId: z.string(),
  contactIdentifier: z.string(),
  email: z.string().describe('Empty if there is none.'),
  isActive: z.boolean(),
  joinedAt: time,
  source,
  consentMethod,
  consentDetails: z.string().describe('Empty if there is none.'),
};

export const subscriber = z.object({ ...subscriberFields, userId: z.uuid() }).meta({ id: 'Subscriber' });

const memberFields = {
  subscriptionId,
  firstName: z.string(),
  lastName: z.string(),
  phone: z.string(),
  globalStatus,
  customFields: anyFields,
};

/** An entry of a list: merged with the profile of the contact. */
export const member = z.intersection(subscriber, z.object(memberFields)).meta({ id: 'GroupMember' });

/** Merged with the profile of the contact, without its user id. */
export const subscription = z.object({ ...subscriberFields, ...memberFields }).meta({ id: 'Subscription' });

const TIME = '2026-01-31T12:00:00.000Z';
const GROUP_ID = 'sgroup_1769860800000_4k2m9x7q1zab';
const SUBSCRIBER = {
  subscriptionGroupId: GROUP_ID,
  contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
  email: 'ada@example.net',
  isActive: true,
  joinedAt: TIME,
  source: 'api',
  consentMethod: 'double_opt_in',
  consentDetails: 'Form of 1 May',
} as const;
const SUBSCRIPTION_ID = `${SUBSCRIBER.subscriptionGroupId}:${SUBSCRIBER.contactIdentifier}`;
const PROFILE = {
  firstName: 'Ada',
  lastName: 'Lovelace',
  phone: '+442079460000',
  customFields: { plan: 'gold' },
} as const;

export const CONTACT_EXAMPLES = {
  groupId: GROUP_ID,
  time: TIME,
  profile: {
    email: SUBSCRIBER.email,
    ...PROFILE,
    consentMethod: SUBSCRIBER.consentMethod,
    consentDetails: SUBSCRIBER.consentDetails,
  },
  contact: {
    ...PROFILE,
    contactIdentifier: SUBSCRIBER.contactIdentifier,
    userId: '019c1b2e-7f00-7c5e-9a55-3a1d5c0f2b11',
    email: SUBSCRIBER.email,
    globalStatus: 'active',
    consentMethod: SUBSCRIBER.consentMethod,
    consentDetails: SUBSCRIBER.consentDetails,
    consentIpAddress: '192.0.2.7',
    consentUserAgent: 'ExampleShop/2.0',
    consentTimestamp: TIME,
    source: 'api',
    addedBy: 'key_1769860800000_7q1zab4k2m9x',
    createdAt: TIME,
    updatedAt: TIME,
  } satisfies z.output<typeof contact>,
  membership: {
    subscriptionGroupId: GROUP_ID,
    joinedAt: TIME,
    isActive: true,
    source: 'api',
  } satisfies z.output<typeof membership>,
  subscriber: {
    ...SUBSCRIBER,
    userId: '019c1b2e-7f00-7c5e-9a55-3a1d5c0f2b11',
  } satisfies z.output<typeof subscriber>,
  member: {
    ...SUBSCRIBER,
    userId: '019c1b2e-7f00-7c5e-9a55-3a1d5c0f2b11',
    ...PROFILE,
    subscriptionId: SUBSCRIPTION_ID,
    globalStatus: 'active',
  } satisfies z.output<typeof member>,
  subscription: {
    ...SUBSCRIBER,
    ...PROFILE,
    subscriptionId: SUBSCRIPTION_ID,
    globalStatus: 'active',
  } satisfies z.output<typeof subscription>,
};
