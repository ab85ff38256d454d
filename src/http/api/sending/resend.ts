import * as z from 'zod';
import { isRefusal, refuse } from '../../../core/refusal.ts';
import type { Resend } from '../../../sending/resend.ts';
import type { AccountRow } from '../../../store/accounts.ts';
import { successBody } from '../../responses.ts';
import { type Route, route } from '../../route.ts';
import { idempotencyKey, KEY_HEADER, REPLAYED_HEADER } from './send.ts';
import { TRANSACTIONAL_RESULT, transactionalResult } from './send-schemas.ts';

export interface ResendRouteDeps {
  resend: Resend;
  account(accountId: string): AccountRow | null;
}

/** `POST /transactional/resend`: sends a message again. */
export function resendRoute({ resend, account }: ResendRouteDeps): Route {
  return route({
    method: 'POST',
    path: '/transactional/resend',
    operationId: 'resendTransactional',
    // The send path refuses it, except for a request that was repeated.
    stores: () => false,
    tag: 'Sending',
    summary: 'Send a transactional email again',
    description:
      'Sends a new message, with its own id, that has the sender, the recipient and the content of one that is delivered or failed. Domain, suppression and limits are checked as for a new email. A deferred message is retried instead.',
    scope: 'transactional',
    limit: 'send',
    body: z.object({ messageId: z.string().max(100) }).meta({ id: 'ResendInput' }),
    example: { messageId: 'msg_1769860500000_4r6t8y1u3i5o' },
    headers: KEY_HEADER,
    responses: {
      200: {
        description: 'The new message was accepted.',
        data: transactionalResult,
        example: TRANSACTIONAL_RESULT,
      },
    },
    refusals: [
      'IDEMPOTENCY_IN_PROGRESS',
      'IDEMPOTENCY_KEY_REUSED',
      'MESSAGE_NOT_FOUND',
      'INVALID_STATE',
      'DOMAIN_NOT_REGISTERED',
      'DOMAIN_NOT_VERIFIED',
      'USE_CASE_MISMATCH',
      'KEY_NOT_ALLOWED',
      'RECIPIENT_UNSUBSCRIBED',
      'RECIPIENT_SUPPRESSED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, body: { messageId }, headers, warnings }) => {
      const owner = account(caller.accountId);
      if (owner === null) return refuse('UNAUTHENTICATED', 'The account does not exist');
      const key = idempotencyKey(headers['idempotency-key']);
      if (isRefusal(key)) return key;
      const { allowFrom, allowEssential } = caller;
      const resent = await resend({
        sender: { account: owner, useCase: 'tx', allowFrom, allowEssential },
        messageId,
        key,
        envelope: (data) => successBody(data, warnings),
      });
      if (isRefusal(resent)) return resent;
      const { body, isReplay } = resent;
      return { status: 200, raw: body, ...(isReplay ? { headers: REPLAYED_HEADER } : {}) };
    },
  });
}
