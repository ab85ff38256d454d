import type { MessageRow } from '../store/messages/messages.ts';

/*
 * Events of an erased recipient contain the identifier only. The links of a mail that was sent before the erasure still
 * work, so that events follow it.
 */

/** Fields of events that describe the person rather than the mail. */
const PERSONAL_FIELDS: ReadonlySet<string> = new Set(['ip', 'userAgent']);

/** Whether the recipient was erased, whose identifier is stored in place of the address. */
export function isErased({ recipient }: Pick<MessageRow, 'recipient'>): boolean {
  return !recipient.includes('@');
}

/** Whether the fields of an event describe the person. */
export function hasPersonalFields(fields: object): boolean {
  return [...PERSONAL_FIELDS].some((name) => name in fields);
}

/** The fields of an event, as JSON, without those that describe the person. */
export function withoutPersonalFields(json: string): string {
  return JSON.stringify(JSON.parse(json, withoutPersonal));
}

function withoutPersonal(name: string, value: unknown): unknown {
  return PERSONAL_FIELDS.has(name) ? undefined : value;
}

/**
 * The fields, as JSON, of an event that follows the erasure of its recipient: also without the path and the query of a
 * clicked link. The data of the person in them cannot be found, because it is not stored any more.
 */
export function fieldsAfterErasure(json: string): string {
  return JSON.stringify(
    JSON.parse(json, (name, value: unknown) =>
      name === 'url' && typeof value === 'string' ? originOf(value) : withoutPersonal(name, value),
    ),
  );
}

/** The fields of an event about received mail, without what its author wrote; null: the event is of another kind. */
export function receivedAfterErasure(
  fields: Record<string, unknown>,
  identifier: string,
): Record<string, unknown> | null {
  if (!('inboundId' in fields)) return null;
  return { ...fields, from: identifier, to: [], sender: '', subject: '', text: '', attachments: [] };
}

/** Empty if the link cannot be parsed. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '';
}
