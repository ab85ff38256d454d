import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { AUTOMATIC, INBOUND_AUTHENTICATION, PARSE_ERRORS } from '../../events/event-types.ts';
import { readContent } from '../../inbound/content.ts';
import type { Inbound, InboundFile } from '../../inbound/inbound.ts';
import type { ReceivedMail } from '../../inbound/mails.ts';
import { addressKey } from '../../mail/identifier.ts';
import type { ListedInbound } from '../../store/inbound/inbound-mails.ts';
import { fileHeaders } from '../public/inbound-file.ts';
import { mapResult, Reply, type Route, routesOf } from '../route.ts';
import { messageResult } from './fields.ts';
import { pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

/* `/web-setup/inbound`: mail that the account received. */

const route = routesOf({ tag: 'Inbound mail', scope: 'setup', permissions: ['messages', 'messages'] });

const listed = z
  .object({
    inboundId: z.string(),
    routeId: z.string().describe('The route that the mail came to; it may be deleted.'),
    status: z
      .enum(['received', 'parsed'])
      .describe('`received`: it is being parsed, and what the mail contains is not known yet.'),
    from: z.string().describe('Address of the field From; empty for none.'),
    to: z.array(z.string()).describe('The recipient that the mail came for.'),
    sender: z.string().describe('Of the envelope; empty for none.'),
    subject: z.string(),
    receivedAt: z.iso.datetime(),
    size: z.int().describe('Bytes of the whole mail.'),
    attachmentCount: z.int(),
    authentication: INBOUND_AUTHENTICATION.nullable().describe('Null: it was not checked yet.'),
    inReplyToMessageId: z.string().nullable().describe('The message of the account that it answers.'),
    automatic: AUTOMATIC,
    loop: z.boolean().describe('The mail passed this server before: do not answer it.'),
    parseError: z
      .enum(PARSE_ERRORS)
      .nullable()
      .describe('Why there is neither text nor attachments; the source is stored.'),
  })
  .meta({ id: 'InboundMailEntry' });

const attachment = z.object({
  name: z.string().describe('Empty for none.'),
  type: z.string().describe('As the sender declares it.'),
  size: z.int().describe('Bytes, decoded.'),
  contentId: z.string().nullable().describe('By which the HTML refers to it.'),
  isInline: z.boolean(),
  url: z.string().describe('Needs no key; valid for 7 days.'),
});

const mail = listed
  .extend({
    remoteAddress: z.string().describe('Of the server that sent it.'),
    headers: z.array(z.object({ name: z.string(), value: z.string() })).describe('Decoded; at most 64 KB.'),
    text: z.string().describe('At most 256 K characters; the text of the HTML if there is no text part.'),
    textCut: z.boolean().describe('Whether the mail has more text.'),
    html: z
      .string()
      .nullable()
      .describe('As the sender wrote it, at most 512 K characters: show it only where scripts do not run.'),
    htmlCut: z.boolean(),
    replyText: z.string().describe('`text` without what the mail program quoted.'),
    attachments: z.array(attachment).describe('At most 200.'),
    rawUrl: z.string().describe('The source. Needs no key; valid for 7 days.'),
  })
  .meta({ id: 'InboundMail' });

const EXAMPLE: z.output<typeof listed> = {
  inboundId: 'inb_1769860800000_4k6j8h2g5f1d',
  routeId: 'route_1769860800000_7q9w2e4r6t8y',
  status: 'parsed',
  from: 'grace@example.net',
  to: ['support@in.example.com'],
  sender: 'grace@example.net',
  subject: 'Re: Your order',
  receivedAt: '2026-01-31T12:00:00.000Z',
  size: 2140,
  attachmentCount: 1,
  authentication: {
    spf: 'pass',
    dkim: 'pass',
    dmarc: 'pass',
    arc: 'none',
    spfDomain: 'example.net',
    dkimDomains: ['example.net'],
    dmarcPolicy: 'reject',
  },
  inReplyToMessageId: 'msg_1769860800000_2w4e6r8t1y3u',
  automatic: null,
  loop: false,
  parseError: null,
};

const MAIL_EXAMPLE: z.output<typeof mail> = {
  ...EXAMPLE,
  remoteAddress: '192.0.2.7',
  headers: [{ name: 'subject', value: EXAMPLE.subject }],
  text: 'Thank you.\n\nOn Friday we wrote:\n> Your order is on its way.',
  textCut: false,
  html: null,
  htmlCut: false,
  replyText: 'Thank you.',
  attachments: [
    {
      name: 'photo.jpg',
      type: 'image/jpeg',
      size: 1200,
      contentId: null,
      isInline: false,
      url: 'https://link.example.com/f/ohJ2c2R',
    },
  ],
  rawUrl: 'https://link.example.com/f/ohJ2c2S',
};

/** A mail as a list has it. */
export function presentInbound(row: ListedInbound): z.output<typeof listed> {
  return {
    inboundId: row.inbound_id,
    routeId: row.route_id,
    status: row.status,
    from: row.from_address,
    to: [row.recipient],
    sender: row.sender,
    subject: row.subject,
    receivedAt: iso(row.received_at),
    size: row.size,
    attachmentCount: row.attachments,
    // Sound: only inbound/ writes the column.
    authentication: row.authentication === null ? null : JSON.parse(row.authentication),
    inReplyToMessageId: row.answers,
    automatic: row.automatic,
    loop: row.is_loop === 1,
    parseError: row.parse_error,
  };
}

function presentMail(inbound: Pick<Inbound, 'partUrl'>, row: ReceivedMail): z.output<typeof mail> {
  const content = readContent(row.content);
  return {
    ...presentInbound(row),
    remoteAddress: row.remote_address,
    headers: content?.headers ?? [],
    text: content?.text ?? '',
    textCut: content?.isTextCut ?? false,
    html: content?.html ?? null,
    htmlCut: content?.isHtmlCut ?? false,
    replyText: content?.replyText ?? '',
    attachments: (content?.attachments ?? []).map((each, position) => ({
      ...each,
      url: inbound.partUrl(row, position),
    })),
    rawUrl: inbound.partUrl(row, 'raw'),
  };
}

function asFile(file: InboundFile | Refusal): Reply | Refusal {
  if (isRefusal(file)) return file;
  const { bytes, type: contentType, close: onClosed } = file;
  return new Reply({ raw: bytes }, { contentType, headers: fileHeaders(file), onClosed });
}

const SAVED = 'The response is a file that browsers save and do not show.';
const PATH = '/web-setup/inbound';

export function inboundRoutes({ inbound }: { inbound: Inbound }): Route[] {
  return [
    route(`GET ${PATH}`, {
      operationId: 'listInboundMail',
      summary: 'List received mail, newest first',
      query: z.object({
        routeId: z.string().max(100).optional(),
        from: z.string().max(320).optional().describe('Address of the author.'),
        inReplyToMessageId: z.string().max(100).optional().describe('Answers to this message.'),
        ...paging,
      }),
      page: pagesBySeq('inbound'),
      response: pageOf('mails', listed, EXAMPLE),
      narrowBy: ['routeId', 'from', 'inReplyToMessageId', 'limit'],
      handle: async ({ caller: { accountId }, query, after }) => {
        const { routeId = null, from, inReplyToMessageId: answers = null, limit } = query;
        const page = await inbound.list({
          accountId,
          routeId,
          from: from === undefined ? null : addressKey(from),
          answers,
          beforeSeq: after,
          limit,
        });
        return { mails: page.rows.map(presentInbound), ...seqEnd(page) };
      },
    }),
    route(`GET ${PATH}/{inboundId}`, {
      operationId: 'getInboundMail',
      summary: 'Get a received mail',
      hasLargeResponse: true,
      response: { description: 'The mail.', data: mail, example: MAIL_EXAMPLE },
      refusals: ['INBOUND_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const found = await inbound.get(caller.accountId, params.inboundId);
        return isRefusal(found) ? found : presentMail(inbound, found);
      },
    }),
    route(`GET ${PATH}/{inboundId}/raw`, {
      operationId: 'getInboundSource',
      summary: 'Get the source of a received mail',
      description: SAVED,
      hasLargeResponse: true,
      response: {
        description: 'The bytes as they were received (RFC 5322).',
        data: z.object({}),
        file: { type: 'message/rfc822', example: '', isOnly: true },
      },
      refusals: ['INBOUND_NOT_FOUND'],
      handle: async ({ caller, params }) =>
        asFile(await inbound.file(caller.accountId, params.inboundId, 'raw')),
    }),
    route(`GET ${PATH}/{inboundId}/attachments/{n}`, {
      operationId: 'getInboundAttachment',
      summary: 'Get an attachment of a received mail',
      description: `\`n\` is the position in \`attachments\`, from 0. ${SAVED}`,
      params: { n: z.coerce.number().int().min(0).max(1000) },
      hasLargeResponse: true,
      response: {
        description: 'The decoded bytes.',
        data: z.object({}),
        file: { type: 'application/octet-stream', example: '', isOnly: true },
      },
      refusals: ['INBOUND_NOT_FOUND'],
      handle: async ({ caller, params }) =>
        asFile(await inbound.file(caller.accountId, params.inboundId, params.n)),
    }),
    route(`DELETE ${PATH}/{inboundId}`, {
      operationId: 'deleteInboundMail',
      summary: 'Delete a received mail',
      response: {
        description: 'The mail was deleted. Its event stays.',
        data: messageResult,
        example: { message: 'The received mail has been deleted.' },
      },
      refusals: ['INBOUND_NOT_FOUND'],
      handle: async ({ caller, params }) =>
        mapResult(await inbound.remove(caller.accountId, params.inboundId), () => ({
          message: 'The received mail has been deleted.',
        })),
    }),
  ];
}
