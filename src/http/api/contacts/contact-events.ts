import * as z from 'zod';
import { eventName } from '../../../audience/sequences/definition.ts';
import type { Sequences } from '../../../campaigns/sequences/sequences.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal } from '../../../core/refusal.ts';
import { type Route, routesOf } from '../../route.ts';
import { line, requestTime } from '../fields.ts';
import { CONTACT_EXAMPLES, contactReference } from './contact-schemas.ts';

const route = routesOf({ tag: 'Sequences', scope: 'setup', permissions: ['read', 'contacts'] });

const entry = z
  .object({
    sequenceId: z.string(),
    result: z
      .enum(['entered', 'in_progress', 'repeated', 'full'])
      .describe(
        '`in_progress`: the contact is in the sequence already. `repeated`: the same event was recorded before. `full`: as many people as possible are in the sequence.',
      ),
  })
  .meta({ id: 'ContactEventEntry' });

/** `POST /web-setup/contacts/{contactIdentifier}/events`: what a contact did, which triggers sequences. */
export function contactEventRoutes({ sequences }: { sequences: Sequences }): Route[] {
  return [
    route('POST /web-setup/contacts/{contactIdentifier}/events', {
      operationId: 'recordContactEvent',
      refusesTestKeys: 'always',
      summary: 'Record an event of a contact',
      description:
        'The contact enters the sequences that are triggered by this event. An event is not stored otherwise. A request that is repeated with the same `idempotencyKey`, or without one with the same `occurredAt`, is the same event.',
      params: { contactIdentifier: contactReference },
      body: z
        .object({
          name: eventName,
          properties: z
            .record(z.string(), z.unknown())
            .optional()
            .describe('At most 8 KiB as JSON. Variables of the sequence: `{{event.<property>}}`.'),
          occurredAt: requestTime.optional().describe('Default: now.'),
          idempotencyKey: line(255).optional(),
        })
        .meta({ id: 'ContactEventInput' }),
      example: { name: 'order placed', properties: { total: '49.90' }, idempotencyKey: 'order-1042' },
      response: {
        status: 202,
        description: 'The event was recorded.',
        data: z
          .object({
            contactIdentifier: z.string(),
            name: z.string(),
            occurredAt: z.iso.datetime(),
            sequences: z.array(entry).describe('The sequences that this event triggers.'),
          })
          .meta({ id: 'ContactEventResult' }),
        example: {
          contactIdentifier: CONTACT_EXAMPLES.contact.contactIdentifier,
          name: 'order placed',
          occurredAt: CONTACT_EXAMPLES.time,
          sequences: [{ sequenceId: 'seq_1769860800000_4w6e8r0t2y5u', result: 'entered' as const }],
        },
      },
      refusals: ['CONTACT_NOT_FOUND'],
      handle: async ({ caller, params: { contactIdentifier }, body: { occurredAt, ...event } }) => {
        const recorded = await sequences.recordEvent(caller.accountId, contactIdentifier, {
          ...event,
          occurredAt: occurredAt === undefined ? undefined : Date.parse(occurredAt),
        });
        if (isRefusal(recorded)) return recorded;
        const { contact, at, entries } = recorded;
        return {
          contactIdentifier: contact.email_hash ?? contact.phone_hash ?? contactIdentifier,
          name: event.name,
          occurredAt: iso(at),
          sequences: entries,
        };
      },
    }),
  ];
}
