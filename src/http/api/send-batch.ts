import { z } from 'zod';
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { UseCase } from '../../store/domains/domains.ts';
import { refusalBody, successBody } from '../answers.ts';
import { JsonElement } from '../body/json-parse.ts';
import { unknownFields } from '../known-fields.ts';
import { type Call, type Route, route } from '../route.ts';
import { parseForm } from '../validation.ts';
import {
  idempotencyKey,
  KEY_HEADER,
  MARKETING_REFUSALS,
  type SendRouteDeps,
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
 * `POST /…/send-batch`: up to 500 sends in one request, accepted or refused one by one, with results in order. The
 * Idempotency-Key of a batch applies to each item with its index: an interrupted batch that is repeated continues where
 * it stopped, and nothing is sent twice.
 */
const MAX_ITEMS = 500;
const MAX_BYTES = 32 * 1024 * 1024;
/** Items in progress at the same time: enough to share commits. */
const MAX_CONCURRENT_ITEMS = 32;
/** Bytes of concurrent items, which one commit has to write; a larger item is processed alone. */
const MAX_CONCURRENT_BYTES = 512 * 1024;
/** Errors that the result of an item lists: a batch can have 500 invalid items. */
const MAX_ITEM_DETAILS = 5;

const batchBody = z.object({
  messages: z.array(z.unknown()).min(1).max(MAX_ITEMS).describe('Each as for a single send, at most 500.'),
});

const batchResult = z.object({
  message: z.string(),
  accepted: z.int(),
  refused: z.int(),
  results: z
    .array(z.looseObject({ success: z.boolean() }))
    .describe('In order; each is the response of a single send.'),
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

export function sendBatchRoutes(deps: SendRouteDeps): Route[] {
  return STREAMS.map((stream) => batchRoute(deps, stream));
}

function batchRoute(deps: SendRouteDeps, stream: Stream): Route {
  const warningsOf = unknownFields(stream.form, 'field');

  async function sendOne(
    call: Call<unknown, unknown, unknown>,
    item: JsonElement,
    index: number,
    key: string | null,
  ): Promise<ItemAnswer> {
    const refused = (refusal: Refusal): ItemAnswer => ({
      accepted: false,
      body: refusalBody(refusal, call.requestId, MAX_ITEM_DETAILS),
    });
    // Requests of other accounts run between items.
    await call.turn();
    const read = item.read();
    if (isRefusal(read)) return refused(read);
    const body = parseForm(stream.form, read.value, 'message');
    if (isRefusal(body)) return refused(body);
    const warnings = warningsOf(read.value);
    const account = deps.account(call.caller.accountId);
    if (account === null) return refused(refuse('UNAUTHENTICATED', 'The account was deleted'));
    const { allowFrom, allowEssential } = call.caller;
    const accepted = await deps.acceptance.accept({
      sender: { account, useCase: stream.useCase, allowFrom, allowEssential },
      body,
      idempotency: key === null ? null : { endpoint: stream.endpoint, key: `${key}#${index}` },
      envelope: (data, more) => successBody(data, [...warnings, ...more]),
    });
    return isRefusal(accepted) ? refused(accepted) : { accepted: true, body: accepted.body };
  }

  return route({
    method: 'POST',
    path: stream.path,
    operationId: stream.operationId,
    tag: 'Sending',
    summary: `Send up to ${MAX_ITEMS} ${stream.scope} emails`,
    description: 'Each message is accepted or refused independently of the others.',
    scope: stream.scope,
    limit: MAX_BYTES,
    body: batchBody,
    list: { name: 'messages', max: MAX_ITEMS },
    example: { messages: [stream.example] },
    headers: KEY_HEADER,
    answers: {
      [stream.status]: {
        description: 'The result of each message',
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
      const answers: ItemAnswer[] = [];
      for (const group of groupsOf(call.body.messages)) {
        const from = answers.length;
        const work = group.map((item, n) => sendOne(call, item, from + n, key));
        answers.push(...(await Promise.all(work)));
      }
      return { status: stream.status, raw: answerBody(answers, call.warnings) };
    },
  });
}

interface ItemAnswer {
  accepted: boolean;
  /** The response of a single send. */
  body: string;
}

/** Groups of items that are processed concurrently, in order. */
function* groupsOf(items: readonly unknown[]): Generator<JsonElement[]> {
  let group: JsonElement[] = [];
  let bytes = 0;
  for (const item of items) {
    if (!(item instanceof JsonElement)) throw new Error('the route reads its list as elements');
    if (
      group.length === MAX_CONCURRENT_ITEMS ||
      (group.length > 0 && bytes + item.byteLength > MAX_CONCURRENT_BYTES)
    ) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(item);
    bytes += item.byteLength;
  }
  if (group.length > 0) yield group;
}

/** Inserts the responses of the items as text: together they can be megabytes. */
function answerBody(answers: readonly ItemAnswer[], warnings: readonly string[]): string {
  const accepted = answers.filter((answer) => answer.accepted).length;
  const head = successBody(
    {
      message: `${accepted} of ${answers.length} accepted`,
      accepted,
      refused: answers.length - accepted,
      results: [],
    },
    warnings,
  );
  // The first list of the envelope: no text before it contains a bracket.
  const at = head.indexOf('[]') + 1;
  return `${head.slice(0, at)}${answers.map(({ body }) => body).join(',')}${head.slice(at)}`;
}
