import * as z from 'zod';
import { isRefusal, type Refusal } from '../../../core/refusal.ts';
import { presentMessage } from '../../../events/message-view.ts';
import type { QueuedMail } from '../../../sending/queued-mail.ts';
import type { ListedMessage } from '../../../store/messages/messages.ts';
import { type ApiResponse, type Route, route } from '../../route.ts';
import { MESSAGE_EXAMPLE, messageSchema } from './messages.ts';

/** `/web-setup/messages/{id}/cancel` and `/retry`: actions on queued messages. */
export function messageActionRoutes({ queuedMail }: { queuedMail: QueuedMail }): Route[] {
  return [
    route({
      method: 'POST',
      path: '/web-setup/messages/{id}/cancel',
      operationId: 'cancelMessage',
      stores: () => false,
      tag: 'Messages and events',
      summary: 'Cancel a queued message',
      description:
        'Records `email_failed` with the reason `cancelled`. A message that is being sent or final cannot be cancelled.',
      scope: 'setup',
      params: z.object({ id: z.string() }),
      responses: {
        200: {
          description: 'The updated message.',
          data: updated,
          example: { message: CANCELLED, ...MESSAGE_EXAMPLE, status: 'cancelled', attempts: 0 },
        },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) =>
        response(CANCELLED, await queuedMail.cancel(caller.accountId, params.id)),
    }),
    route({
      method: 'POST',
      path: '/web-setup/messages/{id}/retry',
      operationId: 'retryMessage',
      stores: () => false,
      tag: 'Messages and events',
      summary: 'Retry a deferred message now',
      description: 'Makes the message due now. `message` states why it waits, if it does.',
      scope: 'setup',
      params: z.object({ id: z.string() }),
      responses: {
        200: {
          description: 'The updated message.',
          data: updated,
          example: {
            message: DUE,
            ...MESSAGE_EXAMPLE,
            status: 'deferred',
            nextAttemptAt: '2026-01-31T12:04:00.000Z',
          },
        },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) => {
        const retried = await queuedMail.retry(caller.accountId, params.id);
        return isRefusal(retried) ? retried : response(`The message ${retried.report}.`, retried.message);
      },
    }),
  ];
}

const CANCELLED = 'The message has been cancelled.';
const DUE = 'The message is due now and is tried immediately.';

const updated = z.intersection(messageSchema, z.object({ message: z.string() }));

function response(message: string, row: ListedMessage | Refusal): ApiResponse | Refusal {
  return isRefusal(row) ? row : { status: 200, data: { message, ...presentMessage(row) } };
}
