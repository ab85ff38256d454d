import * as z from 'zod';
import { isRefusal } from '../../../core/refusal.ts';
import type { ControlOrders } from '../../../delivery/control/orders.ts';
import { type Route, route } from '../../route.ts';
import { controlSchema, EXAMPLE_CONTROL, scopeSchema } from './queue-schemas.ts';

/** `/web-setup/queue/controls`: pauses, and destinations whose mail is rejected. */
export function queueControlRoutes({ orders }: { orders: ControlOrders }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/web-setup/queue/controls',
      operationId: 'listQueueControls',
      tag: 'Queue',
      summary: 'List pauses and rejected destinations',
      scope: 'operator',
      responses: {
        200: {
          description: 'The controls in force, oldest first.',
          data: z.object({ controls: z.array(controlSchema), count: z.int() }),
          example: { controls: [EXAMPLE_CONTROL], count: 1 },
        },
      },
      refusals: [],
      handle: () => {
        const controls = orders.list();
        return { status: 200, data: { controls, count: controls.length } };
      },
    }),
    route({
      method: 'POST',
      path: '/web-setup/queue/controls',
      operationId: 'createQueueControl',
      tag: 'Queue',
      summary: 'Pause mail, or reject the mail to a destination',
      description:
        'Takes effect immediately; sessions in progress end normally. Paused mail stays queued and does not expire. Replaces the control with the same scope and target.',
      scope: 'operator',
      body: z
        .object({
          action: controlSchema.shape.action.describe('`bounce` requires the scope `destination`.'),
          scope: scopeSchema,
          target: z.string(),
          reason: z.string().describe('Shown wherever the reason of the delay is; 1 to 200 characters.'),
          until: z.iso.datetime().nullish().describe('When it ends by itself. Default: never.'),
        })
        .meta({ id: 'QueueControlInput' }),
      example: {
        action: 'pause',
        scope: 'destination',
        target: 'example.net',
        reason: 'Maintenance at the receiver',
        until: '2026-02-01T12:00:00.000Z',
      },
      responses: { 201: { description: 'The control.', data: controlSchema, example: EXAMPLE_CONTROL } },
      refusals: ['ACCOUNT_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ body, caller }) => {
        const until = body.until === undefined || body.until === null ? null : Date.parse(body.until);
        const created = await orders.create({ ...body, until }, caller.keyId);
        return isRefusal(created) ? created : { status: 201, data: created };
      },
    }),
    route({
      method: 'DELETE',
      path: '/web-setup/queue/controls/{scope}/{target}',
      operationId: 'deleteQueueControl',
      tag: 'Queue',
      summary: 'Resume mail',
      description: 'Removes a pause or a rejection.',
      scope: 'operator',
      params: z.object({ scope: scopeSchema, target: z.string() }),
      responses: {
        200: { description: 'The removed control.', data: controlSchema, example: EXAMPLE_CONTROL },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ params }) => {
        const removed = await orders.remove(params.scope, params.target);
        return isRefusal(removed) ? removed : { status: 200, data: removed };
      },
    }),
  ];
}
