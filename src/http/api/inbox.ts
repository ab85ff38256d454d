import * as z from 'zod';
import { iso, isoOrNull } from '../../core/clock.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import { type InboxEntry, inboxMail, inboxPage, inboxSource } from '../../inbox/inbox.ts';
import type { Context } from '../../store/context.ts';
import { BOXES } from '../../store/kept-mail.ts';
import { NO_ACCOUNT } from '../../store/readers/reads.ts';
import { type Route, routesOf } from '../route.ts';
import { endOf, pageOf, pagesBySeq, paging } from './paging.ts';

/* `/web-setup/installation/inbox`: received mail for the operator. */

const route = routesOf({ tag: 'Installation', scope: 'operator' });
const PATH = '/web-setup/installation/inbox';
const params = { number: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER) };

export const inboxEntrySchema = z
  .object({
    number: z.int(),
    box: z
      .enum(BOXES)
      .describe('`postmaster` and `abuse`: mail to people. Others: mail that was not processed.'),
    kind: z.string().describe('How the mail was classified; `unread: …` if it could not be parsed.'),
    from: z.string().describe('The field From, decoded; empty if there is none.'),
    subject: z.string().describe('Decoded; empty if there is none.'),
    sender: z.string().describe('Of the envelope; empty if there is none.'),
    recipient: z.string(),
    remoteAddress: z.string(),
    messageId: z.string().nullable().describe('The sent message that it refers to.'),
    size: z.int().describe('Bytes.'),
    receivedAt: z.iso.datetime(),
    readAt: z.iso.datetime().nullable().describe('When it was marked as read; `null`: it is unread.'),
  })
  .meta({ id: 'InboxEntry' });

export const inboxMailSchema = inboxEntrySchema
  .extend({
    headers: z.array(z.object({ name: z.string(), value: z.string() })),
    text: z.string().describe('Without markup; the text of the HTML if there is no text part.'),
    attachments: z.array(z.object({ name: z.string(), contentType: z.string() })),
    isCut: z.boolean().describe('Whether only the beginning of the mail is stored (256 KiB).'),
  })
  .meta({ id: 'InboxMail' });

const EXAMPLE: z.output<typeof inboxEntrySchema> = {
  number: 17,
  box: 'abuse',
  kind: 'unknown',
  from: 'Grace <grace@example.net>',
  subject: 'Unwanted mail',
  sender: 'grace@example.net',
  recipient: 'abuse@mail.example.com',
  remoteAddress: '192.0.2.7',
  messageId: null,
  size: 1830,
  receivedAt: '2026-01-31T12:00:00.000Z',
  readAt: null,
};

/** List, read, source, and mark as read. Mail is read and parsed in reader threads. */
export function inboxRoutes({
  clock,
  reader,
  tables,
  writer,
}: Pick<Context, 'clock' | 'reader' | 'tables' | 'writer'>): Route[] {
  return [
    route(`GET ${PATH}`, {
      operationId: 'listInbox',
      summary: 'List received mail, newest first',
      description:
        'Mail to `postmaster@` and `abuse@`, automatic replies, and mail that could not be processed. A box has the newest 1000 mails.',
      query: z.object({
        box: z.enum(BOXES).optional(),
        unread: z
          .enum(['true', 'false'])
          .optional()
          .describe('`true`: only mail that is not marked as read.'),
        ...paging,
      }),
      page: pagesBySeq('inbox'),
      response: pageOf('mails', inboxEntrySchema, EXAMPLE),
      narrowBy: ['box', 'limit'],
      handle: async ({ query: { box = null, unread, limit }, after }) => {
        const filter = { box, unread: unread === 'true', before: after, limit: limit + 1 };
        const found = await reader.query(NO_ACCOUNT, inboxPage, filter);
        const rows = found.slice(0, limit);
        return {
          mails: rows.map(present),
          ...endOf(rows, found.length > limit ? rows.at(-1)?.number : null),
        };
      },
    }),
    route(`GET ${PATH}/{number}`, {
      operationId: 'getInboxMail',
      summary: 'Read a received mail',
      params,
      response: {
        description: 'The mail.',
        data: inboxMailSchema,
        example: {
          ...EXAMPLE,
          headers: [{ name: 'subject', value: EXAMPLE.subject }],
          text: 'I did not subscribe to this.',
          attachments: [],
          isCut: false,
        },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ params: { number } }) => {
        const found = await reader.query(NO_ACCOUNT, inboxMail, number);
        if (found === null) return unknownMail(number);
        const { headers, text, attachments, isCut } = found;
        return { ...present(found), headers, text, attachments, isCut };
      },
    }),
    route(`GET ${PATH}/{number}/source`, {
      operationId: 'getInboxSource',
      summary: 'Get the source of a received mail',
      params,
      response: {
        description: 'The source.',
        data: z.object({
          source: z
            .string()
            .describe('The stored bytes (RFC 5322), base64: received mail may have any charset.'),
        }),
        example: { source: 'U3ViamVjdDogVW53YW50ZWQgbWFpbA0KDQpJIGRpZCBub3Qgc3Vic2NyaWJlLg0K' },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ params: { number } }) => {
        const source = await reader.query(NO_ACCOUNT, inboxSource, number);
        return source === null ? unknownMail(number) : { source };
      },
    }),
    route(`PATCH ${PATH}/{number}`, {
      operationId: 'updateInboxMail',
      summary: 'Mark a received mail as read or unread',
      params,
      body: z.object({ isRead: z.boolean() }).meta({ id: 'InboxMailInput' }),
      readOnly: ['headers', 'text', 'attachments', 'isCut'],
      example: { isRead: true },
      response: {
        description: 'The mail.',
        data: inboxEntrySchema,
        example: { ...EXAMPLE, readAt: EXAMPLE.receivedAt },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ params: { number }, body: { isRead } }) => {
        if (tables.keptMail.head(number) === null) return unknownMail(number);
        const refusal = await writer.run((tx): Refusal | null => {
          if (tx.keptMail.head(number) === null) return unknownMail(number);
          if (isRead) tx.keptMail.markRead(number, clock.now());
          else tx.keptMail.markUnread(number);
          return null;
        });
        if (refusal !== null) return refusal;
        const found = await reader.query(NO_ACCOUNT, inboxMail, number);
        return found === null ? unknownMail(number) : present(found);
      },
    }),
  ];
}

function unknownMail(number: number): Refusal {
  return refuse('NOT_FOUND', `There is no received mail ${number}`);
}

function present(found: InboxEntry): z.output<typeof inboxEntrySchema> {
  const { number, box, kind, from, subject, sender, recipient, messageId, size } = found;
  return {
    number,
    box,
    kind,
    from,
    subject,
    sender,
    recipient,
    remoteAddress: found.remote_address,
    messageId,
    size,
    receivedAt: iso(found.received_at),
    readAt: isoOrNull(found.read_at),
  };
}
