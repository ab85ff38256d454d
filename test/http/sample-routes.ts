import * as z from 'zod';
import { refuse } from '../../src/core/refusal.ts';
import { type Route, route } from '../../src/http/route.ts';

/** Operations that return their input. */
export const sampleBody = z.object({
  to: z.string().min(1),
  subject: z.string().max(20).optional(),
  attachments: z
    .array(z.object({ name: z.string().min(1), content: z.string() }))
    .max(2)
    .optional(),
  headers: z.record(z.string(), z.string()).optional(),
  anything: z.unknown().optional(),
});

export const sampleRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/web-setup/things',
    operationId: 'createThing',
    tag: 'Things',
    summary: 'Create a thing',
    scope: 'setup',
    body: sampleBody,
    example: { to: 'ann@example.net' },
    responses: {
      201: { description: 'Made.', data: z.object({ got: sampleBody }), example: { got: { to: 'a' } } },
    },
    refusals: [],
    handle: ({ body }) => ({ status: 201, data: { got: body } }),
  }),
  route({
    method: 'GET',
    path: '/web-setup/things/{thingId}',
    operationId: 'getThing',
    tag: 'Things',
    summary: 'Get a thing',
    scope: 'setup',
    params: z.object({ thingId: z.string().max(20) }),
    query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
    responses: {
      200: { description: 'The thing.', data: z.object({ thingId: z.string(), limit: z.number() }) },
    },
    refusals: ['DOMAIN_NOT_FOUND'],
    handle: ({ params, query }) =>
      params.thingId === 'none'
        ? refuse('DOMAIN_NOT_FOUND', 'there is no such thing')
        : { status: 200, data: { ...params, ...query } },
  }),
  route({
    method: 'DELETE',
    path: '/web-setup/things/{thingId}',
    operationId: 'deleteThing',
    tag: 'Things',
    summary: 'Delete a thing',
    scope: 'setup',
    params: z.object({ thingId: z.string() }),
    responses: { 200: { description: 'Gone.', data: z.object({ message: z.string() }) } },
    refusals: [],
    handle: () => ({ status: 200, data: { message: 'gone' } }),
  }),
  route({
    method: 'GET',
    path: '/web-setup/things/special',
    operationId: 'getSpecialThing',
    tag: 'Things',
    summary: 'Get the special thing',
    scope: 'setup',
    responses: { 200: { description: 'It.', data: z.object({ special: z.boolean() }) } },
    refusals: [],
    handle: () => ({ status: 200, data: { special: true } }),
  }),
  route({
    method: 'POST',
    path: '/transactional/send',
    operationId: 'sendTransactional',
    tag: 'Sending',
    summary: 'Send',
    scope: 'transactional',
    limit: 'send',
    body: sampleBody,
    example: { to: 'ann@example.net' },
    responses: { 200: { description: 'Sent.', data: z.object({ messageId: z.string() }) } },
    refusals: ['RECIPIENT_SUPPRESSED', 'CONSENT_REQUIRED'],
    handle: ({ body }) => {
      if (body.to === 'boom') throw new Error('secret detail of /srv/postrider');
      if (body.to === 'disk')
        throw Object.assign(new Error('disk I/O error in /srv/postrider'), { code: 'SQLITE_IOERR_READ' });
      if (body.to === 'unknown') {
        return refuse('CONSENT_REQUIRED', 'no consent', {
          subscriptionStatus: 'not_subscribed',
          details: [{ field: 'to', message: 'has given no consent' }],
        });
      }
      if (body.to === 'again') {
        return { status: 200, raw: '{"stored":true}', headers: { 'Idempotency-Replayed': 'true' } };
      }
      return { status: 200, data: { messageId: 'msg_1' } };
    },
  }),
];
