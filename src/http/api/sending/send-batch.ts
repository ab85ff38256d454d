import * as z from 'zod';
import { createErrorLog } from '../../../core/log.ts';
import { isRefusal, type Refusal } from '../../../core/refusal.ts';
import type { Acceptance } from '../../../sending/accept.ts';
import type { Context } from '../../../store/context.ts';
import { storageFailure } from '../../../store/database/failure.ts';
import type { Stream } from '../../../store/domains/domains.ts';
import type { JsonElement } from '../../body/json-parse.ts';
import { faultRefusal, refusedItemBody, successBody } from '../../responses.ts';
import { type Call, Reply, type Route } from '../../route.ts';
import { readInput } from '../../validation/parse.ts';
import { unknownWarnings } from '../../validation/unknown-fields.ts';
import { sendItems } from './batch-items.ts';
import { idempotencyKey, REPLAYED_HEADER, STREAMS, senderOfCaller } from './send.ts';

/*
 * `POST /…/send-batch`: up to 500 sends in one request, each accepted or refused individually, with results in order.
 * The Idempotency-Key of a batch applies to each item together with its index: a batch that is repeated after an
 * interruption continues where it stopped, and no item is sent twice.
 */

const MAX_ITEMS = 500;
const MAX_BYTES = 32 * 1024 * 1024;
/** Errors named for each item: all 500 items of a batch may be invalid. */
const MAX_ITEM_DETAILS = 5;

const BATCH_KEY_HEADER = {
  'Idempotency-Key':
    'A unique value such as a UUID. It applies to each message with its position: a batch that is repeated within 24 hours with the same messages gets the first results of those that were accepted, and sends those that were refused if they can be sent now. A batch with other messages, such as only the refused ones, needs another key.',
};

const batchBody = z
  .object({
    messages: z.array(z.unknown()).min(1).max(MAX_ITEMS).describe('Bodies of single sends, at most 500.'),
  })
  .meta({ id: 'SendBatchInput' });

const batchResult = z
  .object({
    message: z.string(),
    accepted: z.int(),
    refused: z.int(),
    results: z
      .array(z.looseObject({ success: z.boolean() }))
      .describe(
        'In order; each is the response of a single send. `error.retryAfter` of a message that was refused for now, such as with `RATE_LIMITED`, has the seconds of the header `Retry-After`.',
      ),
  })
  .meta({ id: 'SendBatchResult' });

/**
 * One route for each stream, with its scope; bodies of up to 32 MiB. The status is that of a success whenever the batch
 * itself is valid, however many items were refused.
 */
export function sendBatchRoutes(
  context: Pick<Context, 'log' | 'tables'>,
  { acceptance }: { acceptance: Acceptance },
): Route[] {
  return [
    batchRoute(context, acceptance, 'tx', 'sendTransactionalBatch'),
    batchRoute(context, acceptance, 'mk', 'sendMarketingBatch'),
  ];
}

function batchRoute(
  context: Pick<Context, 'log' | 'tables'>,
  acceptance: Acceptance,
  stream: Stream,
  operationId: string,
): Route {
  const { route, name, body: schema, example, success, refusals } = STREAMS[stream];
  const logError = createErrorLog(context.log);

  /** Never rejects because of an error of the item: messages of the batch may have been accepted before. */
  async function sendOne(
    call: Call<unknown, unknown, unknown>,
    item: JsonElement,
    index: number,
    key: string | null,
  ): Promise<ItemResult> {
    const refused = (refusal: Refusal): ItemResult => ({
      kind: 'refused',
      body: refusedItemBody(refusal, call.requestId, MAX_ITEM_DETAILS),
    });
    // Requests of other accounts run between the items.
    await call.turn();
    const read = item.read();
    if (isRefusal(read)) return refused(read);
    const input = readInput(schema, read.value, 'message', true);
    if (isRefusal(input)) return refused(input);
    const warnings = unknownWarnings(input.unknown, 'field');
    const sender = senderOfCaller(context, call.caller, stream);
    if (isRefusal(sender)) return refused(sender);
    const accepting = acceptance.accept({
      sender,
      body: input.value,
      idempotency: key === null ? null : { endpoint: `${name}/send-batch`, key: `${key}#${index}` },
      envelope: (data, more) => successBody(data, [...warnings, ...more]),
    });
    const accepted = await accepting.catch((error: unknown) => {
      const { requestId } = call;
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, requestId, index },
        'item of a batch failed',
      );
      return faultRefusal(error);
    });
    return isRefusal(accepted) ? refused(accepted) : { kind: accepted.kind, body: accepted.body };
  }

  return route(`POST /${name}/send-batch`, {
    operationId,
    // The send path refuses each message for itself.
    stores: () => false,
    summary: `Send up to ${MAX_ITEMS} ${name} emails`,
    description:
      'Each message is accepted or refused individually; a refused one does not affect the others.',
    limit: MAX_BYTES,
    body: batchBody,
    list: { name: 'messages', max: MAX_ITEMS },
    example: { messages: [example] },
    headers: BATCH_KEY_HEADER,
    response: {
      status: success.status,
      description: 'The result of each message.',
      data: batchResult,
      example: {
        message: '1 of 1 messages accepted',
        accepted: 1,
        refused: 0,
        results: [{ success: true, data: success.example }],
      },
    },
    refusals,
    handle: async (call) => {
      const key = idempotencyKey(call.headers['idempotency-key']);
      if (isRefusal(key)) return key;
      const results = await sendItems(call.body.messages, (item, index) => sendOne(call, item, index, key));
      return new Reply(
        { raw: batchResponseBody(results, call.warnings) },
        isReplay(results) ? { headers: REPLAYED_HEADER } : {},
      );
    },
  });
}

interface ItemResult {
  kind: 'accepted' | 'replayed' | 'refused';
  /** The response body of a single send. */
  body: string;
}

/** Whether the request sent nothing because an earlier one with its key did. Refused items are checked again. */
function isReplay(results: readonly ItemResult[]): boolean {
  const isAny = (kind: ItemResult['kind']) => results.some((result) => result.kind === kind);
  return isAny('replayed') && !isAny('accepted');
}

/** Inserts the bodies of the results as text: together they may have megabytes. */
function batchResponseBody(results: readonly ItemResult[], warnings: readonly string[]): string {
  const accepted = results.filter(({ kind }) => kind !== 'refused').length;
  const head = successBody(
    {
      message: `${accepted} of ${results.length} messages accepted`,
      accepted,
      refused: results.length - accepted,
      results: [],
    },
    warnings,
  );
  // `results` is the first list of the envelope: no text before it contains a bracket.
  const index = head.indexOf('[]') + 1;
  return `${head.slice(0, index)}${results.map(({ body }) => body).join(',')}${head.slice(index)}`;
}
