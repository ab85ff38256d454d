import * as z from 'zod';
import { refuse } from '../../src/core/refusal.ts';
import { Reply, type Route, routesOf } from '../../src/http/route.ts';

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

const route = routesOf({ tag: 'Things', scope: 'setup' });
const sending = routesOf({ tag: 'Sending', scope: 'transactional' });

export const sampleRoutes: Route[] = [
  route('POST /web-setup/things', {
    operationId: 'createThing',
    summary: 'Create a thing',
    body: sampleBody,
    example: { to: 'ann@example.net' },
    response: {
      status: 201,
      description: 'Made.',
      data: z.object({ got: sampleBody }),
      example: { got: { to: 'a' } },
    },
    handle: ({ body }) => ({ got: body }),
  }),
  route('GET /web-setup/things/{thingId}', {
    operationId: 'getThing',
    summary: 'Get a thing',
    params: { thingId: z.string().max(20) },
    query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
    response: { description: 'The thing.', data: z.object({ thingId: z.string(), limit: z.number() }) },
    refusals: ['DOMAIN_NOT_FOUND'],
    handle: ({ params, query }) =>
      params.thingId === 'none'
        ? refuse('DOMAIN_NOT_FOUND', 'there is no such thing')
        : { ...params, ...query },
  }),
  route('DELETE /web-setup/things/{thingId}', {
    operationId: 'deleteThing',
    summary: 'Delete a thing',
    response: { description: 'Gone.', data: z.object({ message: z.string() }) },
    handle: () => ({ message: 'gone' }),
  }),
  route('GET /web-setup/things/special', {
    operationId: 'getSpecialThing',
    summary: 'Get the special thing',
    response: { description: 'It.', data: z.object({ special: z.boolean() }) },
    handle: () => ({ special: true }),
  }),
  sending('POST /transactional/send', {
    operationId: 'sendTransactional',
    summary: 'Send',
    limit: 'send',
    body: sampleBody,
    example: { to: 'ann@example.net' },
    response: { description: 'Sent.', data: z.object({ messageId: z.string() }) },
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
        return new Reply({ raw: '{"stored":true}' }, { headers: { 'Idempotency-Replayed': 'true' } });
      }
      return { messageId: 'msg_1' };
    },
  }),
];
