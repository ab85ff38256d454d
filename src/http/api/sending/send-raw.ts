import * as z from 'zod';
import { invalid, isRefusal, type Refusal, shortened } from '../../../core/refusal.ts';
import { parseMailboxList } from '../../../mail/address.ts';
import type { AcceptRequest } from '../../../sending/accept.ts';
import { bytesOfBase64, collectFaults } from '../../../sending/request.ts';
import { successBody } from '../../responses.ts';
import type { Route } from '../../route.ts';
import {
  idempotencyKey,
  KEY_HEADER,
  type SendContext,
  type SendServices,
  STREAMS,
  send,
  senderOfCaller,
  WAIT_HEADER,
} from './send.ts';

/* `POST /transactional/send-raw`: a whole mail, which is read and sent as if it had been submitted over SMTP. */

/** Reads whole mails. */
export interface RawMail {
  /** `recipients`: the envelope; null: those of To, Cc and Bcc. */
  read(accountId: string, raw: Buffer, recipients: readonly string[] | null): Promise<RawRequest | Refusal>;
}

interface RawRequest extends Pick<AcceptRequest, 'body' | 'literalBraces' | 'maxRecipients'> {
  /** Of the mail's own field. */
  idempotencyKey: string | null;
}

const MAIL_TYPE = 'message/rfc822';

const rawBody = z
  .object({
    raw: z
      .string()
      .describe('The mail as base64 without line breaks, in either alphabet, with or without padding.'),
    to: z
      .union(
        [z.string(), z.array(z.string())],
        'must be an address, a comma-separated list, or an array of addresses',
      )
      .optional()
      .describe(
        'The recipients, at most 100. Those that To and Cc do not name get blind copies. Default: the addresses of To, Cc and Bcc.',
      ),
  })
  .meta({ id: 'RawSendInput' });

const EXAMPLE_MAIL = [
  'From: Example Shop <orders@example.com>',
  'To: Ada Lovelace <ada@example.net>',
  'Subject: Your order 10042',
  '',
  'Thank you!',
  '',
].join('\r\n');

export function rawSendRoute(context: SendContext, services: SendServices & { rawMail: RawMail }): Route {
  const { tx } = STREAMS;
  return tx.route('POST /transactional/send-raw', {
    operationId: 'sendRawTransactional',
    // As the send path decides: a repeated request gets its first response.
    stores: () => false,
    summary: 'Send a whole MIME message',
    description:
      'Accepts what mail libraries build (RFC 5322), and treats it like a message that is submitted over SMTP: it is composed again and signed, `X-Postrider-…` fields set tags, metadata and tracking, a message without the compliance variables gets the footer of the account, other braces are text. The body is the message (`curl --data-binary @message.eml -H "Content-Type: message/rfc822"`), sent to the addresses of To, Cc and Bcc, or JSON, which can name other recipients. Bcc is removed. Without `Idempotency-Key` the field `X-Postrider-Idempotency-Key` of the message counts.',
    limit: 'send',
    body: rawBody,
    file: [MAIL_TYPE],
    example: { raw: Buffer.from(EXAMPLE_MAIL).toString('base64') },
    headers: { ...KEY_HEADER, ...WAIT_HEADER },
    response: { description: 'The message was accepted.', ...tx.success },
    refusals: tx.refusals.filter((code) => code !== 'TEMPLATE_NOT_FOUND'),
    handle: async (call) => {
      const { caller, headers, warnings: ofRequest } = call;
      const sender = senderOfCaller(context, caller, 'tx');
      if (isRefusal(sender)) return sender;
      const headerKey = idempotencyKey(headers['idempotency-key']);
      if (isRefusal(headerKey)) return headerKey;
      const sent = sentMail(call);
      if (isRefusal(sent)) return sent;
      const read = await services.rawMail.read(caller.accountId, sent.raw, sent.to);
      if (isRefusal(read)) return read;
      const { idempotencyKey: ownKey, ...requested } = read;
      const key = headerKey ?? ownKey;
      const request: AcceptRequest = {
        sender,
        ...requested,
        appendFooter: !caller.strictCompliance,
        idempotency: key === null ? null : { endpoint: 'transactional/send-raw', key },
        envelope: (data, warnings) => successBody(data, [...ofRequest, ...warnings]),
      };
      return send(context, services, request, call);
    },
  });
}

interface SentMail {
  raw: Buffer;
  /** Null: the mail names its recipients. */
  to: string[] | null;
}

/** `body`: undefined: the request is the mail. */
function sentMail({
  body,
  file,
}: {
  body: z.output<typeof rawBody> | undefined;
  file: Buffer;
}): SentMail | Refusal {
  if (body === undefined) return { raw: file, to: null };
  const to = body.to === undefined ? null : addressesOf(body.to);
  if (isRefusal(to)) return to;
  const raw = bytesOfBase64(body.raw);
  return raw === null ? invalid('raw', 'must be base64 without line breaks') : { raw, to };
}

/** Faults of `to` after which the rest is not read. */
const MAX_FAULTS = 50;

/** The addresses of lists of mailboxes. */
export function addressesOf(to: string | readonly string[]): string[] | Refusal {
  return collectFaults((fault) => {
    const lists = typeof to === 'string' ? [to] : to;
    if (lists.length === 0) fault('to', 'must name at least one recipient');
    let faults = 0;
    return lists.flatMap((list, index) => {
      if (faults === MAX_FAULTS) return [];
      const mailboxes = parseMailboxList(list, (text, error) => {
        const field = typeof to === 'string' ? 'to' : `to[${index}]`;
        fault(field, text === '' || text === list ? error : `${shortened(text)}: ${error}`);
        return ++faults < MAX_FAULTS;
      });
      return mailboxes.map(({ address }) => address);
    });
  });
}
