import {
  type BounceEffect,
  type EventFields,
  MESSAGE_EVENT_TYPES,
  type MessageEvent,
  type MessageEventKind,
} from '../../src/events/event-types.ts';
import type { DomainEventFields } from '../../src/events/record.ts';

/** An event of a message with the example fields of its kind, except for `fields`. A bounce is a proven hard one. */
export function exampleEvent<Kind extends MessageEventKind>(
  kind: Kind,
  fields: Partial<EventFields[Kind]> = {},
  effect: BounceEffect = { scope: 'recipient', suppress: 'now' },
): MessageEvent {
  // The recorder adds `suppressed`.
  const example: object = { ...MESSAGE_EVENT_TYPES[kind].example, suppressed: undefined };
  const event: unknown = { kind, fields: { ...example, ...fields }, effect };
  // Sound: the fields are those of the kind, which TypeScript cannot derive for a type parameter.
  return event as MessageEvent;
}

export const DOMAIN_EVENT_FIELDS: DomainEventFields = {
  status: 'TEMPORARY_FAILURE',
  previousStatus: 'SUCCESS',
  failing: [{ check: 'spf', hint: 'Publish the SPF record' }],
};
