import * as z from 'zod';
import { inSlices } from '../../../core/concurrency/slices.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import type { DescribeCopy } from '../../../delivery/prepare.ts';
import { composeInSteps, messageBytes, readableParts } from '../../../mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../../mail/content.ts';
import { deriveTextInSteps } from '../../../mail/html/text-part.ts';
import { sentContent } from '../../../sending/sent-content.ts';
import type { Context } from '../../../store/context.ts';
import { type Route, routesOf } from '../../route.ts';

// Contents of messages have links to sign in and to reset passwords.
const route = routesOf({ tag: 'Messages and events', scope: 'setup', permissions: ['messages', 'messages'] });

/* `/web-setup/messages/{id}/content` and `/source`: a message as its recipient gets it. */

const AS_SENT =
  'As the recipient gets it, with personal links and tracking: opening a link counts as a click of the recipient, or unsubscribes them. Contents are kept for the time that the operator has set (`retention.bodies`).';

export const messageContentSchema = z
  .object({
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .describe('In order, unfolded; without DKIM-Signature, which each attempt adds.'),
    html: z.string().nullable(),
    text: z.string().nullable().describe('Given, or derived from the HTML.'),
    attachments: z.array(
      z.object({
        name: z.string(),
        contentType: z.string(),
        size: z.int().describe('Bytes, decoded.'),
        isInline: z.boolean(),
      }),
    ),
    size: z.int().describe('Bytes of the message, without DKIM-Signature.'),
  })
  .meta({ id: 'MessageContent' });

/**
 * The content is read in a reader thread and composed in turns of the account. Refused with MESSAGE_NOT_FOUND once the
 * content or the domain was deleted.
 */
export function messageContentRoutes(
  { reader }: Pick<Context, 'reader'>,
  { describeCopy }: { describeCopy: DescribeCopy },
): Route[] {
  /** The content of a message of the account, with the details of its copy. */
  async function find(
    accountId: string,
    id: string,
  ): Promise<{ content: MessageContent; copy: CopyDetails } | Refusal> {
    const found = await reader.query(accountId, sentContent, { accountId, messageId: id });
    if (found === null) return refuse('MESSAGE_NOT_FOUND', `There is no message ${id}`);
    const { message, domain, content } = found;
    if (content === null)
      return refuse(
        'MESSAGE_NOT_FOUND',
        `The content of the message ${id} was deleted, because its time of retention is over or its recipient was erased`,
      );
    if (domain === null)
      return refuse(
        'MESSAGE_NOT_FOUND',
        `The domain of the message ${id} was deleted, and its content with it`,
      );
    return { content, copy: describeCopy(message, domain) };
  }

  return [
    route('GET /web-setup/messages/{id}/content', {
      operationId: 'getMessageContent',
      summary: 'Get the content of a message',
      description: AS_SENT,
      hasLargeResponse: true,
      response: {
        description: 'The content.',
        data: messageContentSchema,
        example: {
          headers: [{ name: 'Subject', value: 'Your order 7' }],
          html: '<p>Thank you</p>',
          text: 'Thank you',
          attachments: [
            { name: 'invoice.pdf', contentType: 'application/pdf', size: 18211, isInline: false },
          ],
          size: 26113,
        },
      },
      refusals: ['MESSAGE_NOT_FOUND'],
      handle: async ({ caller, params: { id } }) => {
        const found = await find(caller.accountId, id);
        if (isRefusal(found)) return found;
        const { content, copy } = found;
        const { composed, parts } = await inSlices(asSent(content, copy), caller.accountId);
        return {
          headers: composed.header.map(unfold),
          ...parts,
          attachments: content.attachments.map(({ name, contentType, content: base64, contentId }) => ({
            name,
            contentType,
            size: Buffer.byteLength(base64, 'base64'),
            isInline: contentId !== undefined,
          })),
          size: messageBytes(composed).length,
        };
      },
    }),
    route('GET /web-setup/messages/{id}/source', {
      operationId: 'getMessageSource',
      summary: 'Get the source of a message',
      description: AS_SENT,
      hasLargeResponse: true,
      response: {
        description: 'The source.',
        data: z.object({
          source: z
            .string()
            .describe('The whole message (RFC 5322), without DKIM-Signature, which each attempt adds.'),
        }),
        example: { source: 'From: Shop <shop@example.com>\r\nSubject: Your order 7\r\n\r\nThank you\r\n' },
      },
      refusals: ['MESSAGE_NOT_FOUND'],
      handle: async ({ caller, params: { id } }) => {
        const found = await find(caller.accountId, id);
        if (isRefusal(found)) return found;
        const composed = await inSlices(composeInSteps(found.content, found.copy), caller.accountId);
        return { source: messageBytes(composed).toString() };
      },
    }),
  ];
}

/** The message and what a reader sees of it. The text is derived once for both. */
function* asSent(content: MessageContent, copy: CopyDetails) {
  const text = content.text ?? (yield* deriveTextInSteps(content.html));
  const composed = yield* composeInSteps(content, copy, { text, html: null });
  return { composed, parts: yield* readableParts({ ...content, text }, copy) };
}

/** RFC 5322 §2.2.3. */
function unfold(field: string): { name: string; value: string } {
  const colon = field.indexOf(':');
  const value = field.slice(colon + 1).replace(/\r\n(?=[ \t])/g, '');
  return { name: field.slice(0, colon), value: value.trim() };
}
