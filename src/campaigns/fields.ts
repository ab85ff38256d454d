import { createFairLimit } from '../core/concurrency/gate.ts';
import { recordOf } from '../core/record-of.ts';
import { invalid, type Refusal } from '../core/refusal.ts';
import type { Mailbox } from '../mail/content.ts';
import type { CampaignMember } from '../store/campaigns/campaign-sends.ts';
import { type Reader, readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Fields of the contact in a campaign's template: `{{email}}`, `{{firstName}}`, `{{lastName}}`, `{{phone}}` and
 * `{{customFields.<name>}}`. A field that a contact does not have is empty. A custom field that no contact of the account
 * has is probably misspelled: the campaign is refused.
 */

const OWN_FIELDS = ['email', 'firstName', 'lastName', 'phone'] as const;
const CUSTOM = 'customFields';

/** Names that the variables of a request cannot have. */
export const CONTACT_FIELDS: readonly string[] = [...OWN_FIELDS, CUSTOM];

/** Whether a template variable is a field of the contact, so that it differs from copy to copy. */
export function isContactField(name: string): boolean {
  const [first = ''] = name.split('.', 1);
  return CONTACT_FIELDS.includes(first);
}

/** Whether a text in braces begins as a custom field does, whatever follows. */
export function isCustomField(text: string): boolean {
  return text.startsWith(`${CUSTOM}.`);
}

/** A contact without any values, for a test rendering. */
export const EMPTY_CONTACT: Readonly<Record<string, unknown>> = {
  ...recordOf(OWN_FIELDS, () => ''),
  [CUSTOM]: {},
};

/**
 * The values of the contact's fields in one copy: null columns become '', and `customFields` is parsed from its column.
 */
export function contactVariables(member: CampaignMember): Record<string, unknown> {
  return {
    email: member.email ?? '',
    firstName: member.first_name ?? '',
    lastName: member.last_name ?? '',
    phone: member.phone ?? '',
    // Sound: only the audience module writes the column.
    [CUSTOM]: JSON.parse(member.custom_fields) as Record<string, unknown>,
  };
}

/** The mailbox of a member, with the name where there is one. */
export function mailboxOf({ first_name, last_name }: CampaignMember, address: string): Mailbox {
  return { name: [first_name, last_name].filter(Boolean).join(' '), address };
}

/** Contacts of one read of custom fields, and their bytes; the last contact may exceed them. */
const PORTION = { contacts: 1000, bytes: 1024 * 1024 };
/** Custom fields that a campaign can use: each is work for every member. */
const MAX_CUSTOM_FIELDS = 200;

/** Refuses a campaign that uses too many custom fields. `field`: the part that uses the names. */
export function tooManyFields(parts: readonly { field: string; names: readonly string[] }[]): Refusal | null {
  const known = new Set<string>();
  for (const { field, names } of parts) {
    for (const name of names) if (fieldOf(name) !== null) known.add(name);
    if (known.size > MAX_CUSTOM_FIELDS)
      return invalid(field, `must use at most ${MAX_CUSTOM_FIELDS} custom fields of contacts`);
  }
  return null;
}

/** A portion of an account's contacts, and the custom fields that they have. */
interface FieldPortion {
  /** The last contact; null: there are no more. */
  upTo: number | null;
  found: string[];
}

/** Reads the portion after a contact, in a reader thread. */
export const customFieldsPortion = readQuery(
  'customFieldsPortion',
  (tables: Tables, accountId: string, after: number, fields: string[]): FieldPortion => {
    const { campaignSends } = tables;
    const upTo = campaignSends.portionEnd(accountId, after, PORTION);
    return { upTo, found: upTo === null ? [] : campaignSends.fieldsAmong(accountId, after, upTo, fields) };
  },
);

export function createContactFieldNames(reader: Reader) {
  // Requests of an account that wait are bounded by its limit of concurrent requests.
  const limit = createFairLimit({ concurrency: Number.POSITIVE_INFINITY, perKey: 1 });

  async function knownAmong(accountId: string, fields: readonly string[]): Promise<ReadonlySet<string>> {
    const missing = new Set(fields);
    const known = new Set<string>();
    for (let after: number | null = 0; after !== null && missing.size > 0; ) {
      const portion: FieldPortion = await reader.query(accountId, customFieldsPortion, accountId, after, [
        ...missing,
      ]);
      for (const field of portion.found) {
        known.add(field);
        missing.delete(field);
      }
      after = portion.upTo;
    }
    return known;
  }

  return {
    /**
     * Returns those of `names` whose custom field at least one contact of the account has; the field of
     * `customFields.a.b` is `a`. In the worst case it reads every contact once, in portions. One check of an account
     * runs at a time.
     */
    known: async (accountId: string, names: readonly string[]): Promise<ReadonlySet<string>> => {
      const fields = names.flatMap((name) => fieldOf(name) ?? []);
      if (fields.length === 0) return new Set();
      const known = await limit.run(accountId, () => knownAmong(accountId, fields));
      return new Set(names.filter((name) => known.has(fieldOf(name) ?? '')));
    },
  };
}

/** `plan` for `customFields.plan` and `customFields.plan.name`; null: not a custom field. */
function fieldOf(name: string): string | null {
  const [first, field = ''] = name.split('.');
  return first === CUSTOM && field !== '' ? field : null;
}
