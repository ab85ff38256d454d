import { z } from 'zod';
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { UseCase } from '../../store/domains.ts';
import { refusalBody, successBody } from '../answers.ts';
import { unknownFields } from '../known-fields.ts';
import { type Call, type Route, route } from '../route.ts';
import { parseForm } from '../validation.ts';
import {
  idempotencyKey,
  KEY_HEADER,
  MARKETING_REFUSALS,
  type SendRouteSettings,
  TRANSACTIONAL_REFUSALS,
} from './send.ts';
import {
  MARKETING_EXAMPLE,
  MARKETING_RESULT,
  marketingBody,
  TRANSACTIONAL_EXAMPLE,
  TRANSACTIONAL_RESULT,
  transactionalBody,
} from './send-forms.ts';

/**
 * `POST /…/send-batch`: up to 500 sends in one request, each accepted or refused for itself, answered in order.
 * A batch's Idempotency-Key holds for each item under its number: a batch that was cut off half-way and is
 * sent again goes on where it stopped, and nothing is sent twice.
 */
const MAX_ITEMS = 500;
const MAX_BYTES = 32 * 1024 * 1024;
/** Items in progress at the same time: enough to share commits. Each waits for a turn of its own. */
const AT_ONCE = 32;

const batchBody = z.object({
  messages: z.array(z.unknown()).min(1).max(MAX_ITEMS).describe('Each as for a single send, at most 500.'),
});

const batchResult = z.object({
  message: z.string(),
  accepted: z.int(),
  refused: z.int(),
  results: z
    .array(z.looseObject({ success: z.boolean() }))
    .describe('In order: each what a single send would answer.'),
});

interface Stream {
  useCase: UseCase;
  endpoint: string;
  path: '/transactional/send-batch' | '/marketing/send-batch';
  operationId: string;
  scope: 'transactional' | 'marketing';
  form: typeof transactionalBody | typeof marketingBody;
  status: number;
  example: object;
  result: object;
  refusals: RefusalCode[];
}

const STREAMS: Stream[] = [
  {
    useCase: 'tx',
    endpoint: 'transactional/send-batch',
    path: '/transactional/send-batch',
    operationId: 'sendTransactionalBatch',
    scope: 'transactional',
    form: transactionalBody,
    status: 200,
    example: TRANSACTIONAL_EXAMPLE,
    result: TRANSACTIONAL_RESULT,
    refusals: TRANSACTIONAL_REFUSALS,
  },
  {
    useCase: 'mk',
    endpoint: 'marketing/send-batch',
    path: '/marketing/send-batch',
    operationId: 'sendMarketingBatch',
    scope: 'marketing',
    form: marketingBody,
    status: 202,
    example: MARKETING_EXAMPLE,
    result: MARKETING_RESULT,
    refusals: MARKETING_REFUSALS,
  },
];

export function sendBatchRoutes(settings: SendRouteSettings): Route[] {
  return STREAMS.map((stream) => batchRoute(settings, stream));
}

function batchRoute(settings: SendRouteSettings, stream: Stream): Route {
  const warningsOf = unknownFields(stream.form, 'field');

  async function sendOne(
    call: Call<unknown, unknown, unknown>,
    item: unknown,
    index: number,
    key: string | null,
  ): Promise<string> {
    const refused = (refusal: Refusal) => refusalBody(refusal, call.requestId);
    const body = parseForm(stream.form, item, 'message');
    if (isRefusal(body)) return refused(body);
    const account = settings.account(call.caller.accountId);
    if (account === null) return refused(refuse('UNAUTHENTICATED', 'The account is gone'));
    const accepted = await settings.acceptance.accept({
      sender: { account, useCase: stream.useCase, allowFrom: call.caller.allowFrom },
      body,
      idempotency: key === null ? null : { endpoint: stream.endpoint, key: `${key}#${index}` },
      envelope: (data) => successBody(data, warningsOf(item)),
    });
    return isRefusal(accepted) ? refused(accepted) : accepted.body;
  }

  return route({
    method: 'POST',
    path: stream.path,
    operationId: stream.operationId,
    tag: 'Sending',
    summary: `Send up to ${MAX_ITEMS} ${stream.scope} emails`,
    description: 'Each is accepted or refused for itself; one bad one does not stop the rest.',
    scope: stream.scope,
    limit: MAX_BYTES,
    body: batchBody,
    example: { messages: [stream.example] },
    headers: KEY_HEADER,
    answers: {
      [stream.status]: {
        description: 'What became of each',
        data: batchResult,
        example: {
          message: '1 of 1 accepted',
          accepted: 1,
          refused: 0,
          results: [{ success: true, data: stream.result }],
        },
      },
    },
    refusals: stream.refusals,
    handle: async (call) => {
      const key = idempotencyKey(call.headers['idempotency-key']);
      if (isRefusal(key)) return key;
      const { messages } = call.body;
      const bodies: string[] = [];
      let next = 0;
      const work = async () => {
        for (let index = next++; index < messages.length; index = next++) {
          // Other accounts' requests go in between.
          await call.turn();
          bodies[index] = await sendOne(call, messages[index], index, key);
        }
      };
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, messages.length) }, work));
      const results: { success: boolean }[] = bodies.map((body) => JSON.parse(body));
      const accepted = results.filter(({ success }) => success).length;
      return {
        status: stream.status,
        data: {
          message: `${accepted} of ${results.length} accepted`,
          accepted,
          refused: results.length - accepted,
          results,
        },
      };
    },
  });
}
