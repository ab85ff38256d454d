import { z } from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { presentMessage } from '../../events/message-view.ts';
import type { QueuedMail } from '../../sending/queued-mail.ts';
import type { ListedMessage } from '../../store/messages/messages.ts';
import { type Answer, type Route, route } from '../route.ts';
import { MESSAGE_EXAMPLE, messageForm } from './messages.ts';

/** `/web-setup/messages/{id}/cancel` and `/retry`: the hand on mail that waits. */
export function messageActionRoutes({ queuedMail }: { queuedMail: QueuedMail }): Route[] {
  return [
    route({
      method: 'POST',
      path: '/web-setup/messages/{id}/cancel',
      operationId: 'cancelMessage',
      tag: 'Messages and events',
      summary: 'Calls off a message that waits',
      description:
        'It becomes `failed`, with the event `email_failed` and reason `cancelled`. What is being sent at this moment, or is final, cannot be called off.',
      scope: 'setup',
      params: z.object({ id: z.string() }),
      answers: {
        200: {
          description: 'The message as it is now.',
          data: changed,
          example: { message: CANCELLED, ...MESSAGE_EXAMPLE, status: 'cancelled', attempts: 0 },
        },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) =>
        answer(CANCELLED, await queuedMail.cancel(caller.accountId, params.id)),
    }),
    route({
      method: 'POST',
      path: '/web-setup/messages/{id}/retry',
      operationId: 'retryMessage',
      tag: 'Messages and events',
      summary: 'Tries a deferred message again now',
      description:
        'It becomes due now. `message` says what that leads to: it is tried at once, or waits because its destination cannot be reached or its domain cannot send at present.',
      scope: 'setup',
      params: z.object({ id: z.string() }),
      answers: {
        200: {
          description: 'The message as it is now.',
          data: changed,
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
        return isRefusal(retried) ? retried : answer(`The message ${retried.report}.`, retried.message);
      },
    }),
  ];
}

const CANCELLED = 'The message has been cancelled.';
const DUE = 'The message is due now and is tried at once.';

const changed = messageForm.extend({ message: z.string() });

function answer(message: string, row: ListedMessage | Refusal): Answer | Refusal {
  return isRefusal(row) ? row : { status: 200, data: { message, ...presentMessage(row) } };
}
