import { setImmediate as turn } from 'node:timers/promises';
import { invalid, type Refusal } from '../core/refusal.ts';
import type { Mailbox } from '../mail/content.ts';
import type { PreparedWording } from '../sending/render.ts';
import type { CampaignMember } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';

/**
 * What a campaign's template may say of the person it goes to: `{{email}}`, `{{firstName}}`, `{{lastName}}`,
 * `{{phone}}` and `{{customFields.<name>}}`. What a contact does not have is empty. A custom field is known when
 * any contact of the account has it: a name that nobody has is a slip of the pen, and is found before a million
 * people get a mail with a hole in it.
 */
const OWN_FIELDS = ['email', 'firstName', 'lastName', 'phone'] as const;
const CUSTOM = 'customFields';

/** Names that stand for the contact, and so cannot be given for all. */
export const CONTACT_FIELDS: readonly string[] = [...OWN_FIELDS, CUSTOM];

/** Whether a template's name is a contact's own, and so differs from copy to copy. */
export function isContactField(name: string): boolean {
  const [first = ''] = name.split('.', 1);
  return CONTACT_FIELDS.includes(first);
}

/** A contact that has nothing: what a template is tried with. */
export const NOBODY: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(OWN_FIELDS.map((name) => [name, ''])),
  [CUSTOM]: {},
};

export function contactVariables(member: CampaignMember): Record<string, unknown> {
  return {
    email: member.email ?? '',
    firstName: member.first_name ?? '',
    lastName: member.last_name ?? '',
    phone: member.phone ?? '',
    // Sound: only the contacts' own room writes the column.
    [CUSTOM]: JSON.parse(member.custom_fields) as Record<string, unknown>,
  };
}

/** Whom a copy is addressed to: by name, where there is one. */
export function mailboxOf({ first_name, last_name }: CampaignMember, address: string): Mailbox {
  return { name: [first_name, last_name].filter(Boolean).join(' '), address };
}

/** Contacts looked through before others have their turn: a contact has up to a thousand fields. */
const PORTION = 200;
/** Names of custom fields in a campaign. */
const MOST_NAMES = 200;

/** More names of custom fields than a campaign may have would be work for every member: which part has them. */
export function tooManyFields(parts: PreparedWording['parts']): Refusal | null {
  const names = new Set<string>();
  for (const { field, template } of parts) {
    for (const name of template.names) if (fieldOf(name) !== null) names.add(name);
    if (names.size > MOST_NAMES) {
      const message = `names more than ${MOST_NAMES} custom fields of contacts: a campaign may name that many in all`;
      return invalid(field, message);
    }
  }
  return null;
}

/**
 * Which of a template's names are custom fields that a contact of the account has; of `customFields.a.b`, that
 * it has `a`. Looks through all contacts at worst, a portion at a time, and through each once whatever the number
 * of names.
 */
export async function knownCustomFields(
  tables: Tables,
  accountId: string,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const missing = new Set(names.flatMap((name) => fieldOf(name) ?? []));
  const known = new Set<string>();
  for (let after = 0; missing.size > 0; await turn()) {
    const upTo = tables.campaignSends.portionEnd(accountId, after, PORTION);
    if (upTo === null) break;
    for (const field of tables.campaignSends.fieldsAmong(accountId, after, upTo, [...missing])) {
      known.add(field);
      missing.delete(field);
    }
    after = upTo;
  }
  return new Set(names.filter((name) => known.has(fieldOf(name) ?? '')));
}

/** `plan` of `customFields.plan` and of `customFields.plan.name`; null: no custom field's name. */
function fieldOf(name: string): string | null {
  const [first, field = ''] = name.split('.');
  return first === CUSTOM && field !== '' ? field : null;
}
