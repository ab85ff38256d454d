import { setImmediate as turn } from 'node:timers/promises';
import { invalid, type Refusal } from '../core/refusal.ts';
import type { Mailbox } from '../mail/content.ts';
import type { PreparedTemplate } from '../sending/render.ts';
import type { CampaignMember } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';

/**
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

/** A contact without any values, for a test rendering. */
export const EMPTY_CONTACT: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(OWN_FIELDS.map((name) => [name, ''])),
  [CUSTOM]: {},
};

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

/** Contacts that are read between two turns of the event loop: a contact has up to a thousand fields. */
const CONTACT_BATCH_SIZE = 200;
/** Custom fields that a campaign can use: each is work for every member. */
const MAX_CUSTOM_FIELDS = 200;

/** Refuses a campaign that uses too many custom fields. */
export function tooManyFields(parts: PreparedTemplate['parts']): Refusal | null {
  const names = new Set<string>();
  for (const { field, template } of parts) {
    for (const name of template.names) if (fieldOf(name) !== null) names.add(name);
    if (names.size > MAX_CUSTOM_FIELDS)
      return invalid(field, `must use at most ${MAX_CUSTOM_FIELDS} custom fields of contacts`);
  }
  return null;
}

/**
 * Returns those of `names` whose custom field at least one contact of the account has; the field of `customFields.a.b` is
 * `a`. In the worst case it reads every contact once, in batches.
 */
export async function knownCustomFields(
  tables: Tables,
  accountId: string,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const missing = new Set(names.flatMap((name) => fieldOf(name) ?? []));
  const known = new Set<string>();
  for (let after = 0; missing.size > 0; await turn()) {
    const upTo = tables.campaignSends.portionEnd(accountId, after, CONTACT_BATCH_SIZE);
    if (upTo === null) break;
    for (const field of tables.campaignSends.fieldsAmong(accountId, after, upTo, [...missing])) {
      known.add(field);
      missing.delete(field);
    }
    after = upTo;
  }
  return new Set(names.filter((name) => known.has(fieldOf(name) ?? '')));
}

/** `plan` for `customFields.plan` and `customFields.plan.name`; null: not a custom field. */
function fieldOf(name: string): string | null {
  const [first, field = ''] = name.split('.');
  return first === CUSTOM && field !== '' ? field : null;
}
