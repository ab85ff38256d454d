import * as z from 'zod';
import { RECIPIENT_REFUSAL_REASONS, RECIPIENT_REFUSALS } from '../../../events/event-types.ts';
import { FETCH_SECONDS } from '../../../sending/attachment-files.ts';
import {
  CALENDAR_METHODS,
  MAX_ATTACHMENTS,
  MAX_HEADERS,
  MAX_METADATA_BYTES,
  MAX_RECIPIENTS,
  MAX_REPLY_TO,
  MAX_TAG_LENGTH,
  MAX_TAGS,
} from '../../../sending/request.ts';
import { MESSAGE_STATUSES, SHOWN_STATUSES } from '../../../store/messages/message-rows.ts';
import { atMost } from '../fields.ts';

/* Requests and responses of the send operations, with the documentation of each field. */

/** The statuses of messages that an attempt can have. */
export const attemptedStatus = z.enum(MESSAGE_STATUSES).meta({ id: 'AttemptedStatus' });
export const messageStatus = z.enum(SHOWN_STATUSES).meta({ id: 'MessageStatus' });

export const scheduledTime = z.string().meta({
  id: 'ScheduledTime',
  description:
    'When to send, an ISO 8601 time with its zone, at most 30 days ahead. A time that passed more than 15 minutes ago is refused.',
});

const oneOrMany = z
  .union(
    [z.string(), atMost(z.array(z.string()), MAX_RECIPIENTS)],
    'must be an address, a comma-separated list, or an array of addresses',
  )
  .meta({ id: 'Recipients' });

const attachment = z
  .object({
    name: z
      .string()
      .optional()
      .describe(
        'File name, 1 to 255 characters, no path. Required, except with `url`: then the last part of its path is the default.',
      ),
    contentType: z
      .string()
      .optional()
      .describe(
        'Media type such as `application/pdf`. Required, except with `url`: then that of the response is the default.',
      ),
    content: z
      .string()
      .optional()
      .describe(
        'The file as base64 without line breaks, in either alphabet, with or without padding. Required, except with `url`.',
      ),
    url: z
      .string()
      .optional()
      .describe(
        `In place of \`content\`: the https address of the file, at a public host, at most 2,048 characters. The files of a message are fetched before it is accepted, within ${FETCH_SECONDS} s.`,
      ),
    contentId: z
      .string()
      .optional()
      .describe('Makes the attachment inline: the html refers to it as `cid:<contentId>`.'),
  })
  .meta({ id: 'Attachment' });

const calendar = z
  .object({
    method: z.string().describe(`iTIP method (RFC 5546): ${CALENDAR_METHODS.join(', ')}.`),
    content: z
      .string()
      .describe('The iCalendar object (RFC 5545), from `BEGIN:VCALENDAR` to `END:VCALENDAR`.'),
  })
  .meta({ id: 'Calendar' });

/** A tag as a filter. */
export const tagFilter = z.string().min(1).max(MAX_TAG_LENGTH).meta({
  id: 'TagFilter',
  description: 'Only messages with this tag.',
});

/** Tags and metadata of messages, in requests and in responses. */
export const labelFields = {
  tags: atMost(z.array(z.string()), MAX_TAGS)
    .optional()
    .describe(
      `At most ${MAX_TAGS} strings of up to ${MAX_TAG_LENGTH} characters, by which messages, events and statistics can be filtered.`,
    ),
  metadata: atMost(z.record(z.string(), z.string()), MAX_METADATA_BYTES)
    .optional()
    .describe(
      `Names and values of your own, at most ${MAX_METADATA_BYTES} bytes together: in messages, events and webhooks.`,
    ),
};

/** Refused instead of ignored: a caller would assume that it had an effect on recipients, time or content. */
function only(useCase: string) {
  return z
    .unknown()
    .refine((value) => value === undefined || value === null, `is for ${useCase} only`)
    .transform((): undefined => undefined)
    .optional()
    .describe(`For ${useCase} only.`);
}

const transactionalOnly = only('transactional mail');
const marketingOnly = only('marketing mail');
const singleOnly = only('single messages, not for campaigns,');

/** The fields of single messages that campaigns do not have. */
export const singleSendFields = {
  to: singleOnly,
  cc: singleOnly,
  bcc: singleOnly,
  headers: singleOnly,
  attachments: singleOnly,
  calendar: singleOnly,
  essential: singleOnly,
};

const onRefused = z
  .enum(['refuse', 'skip'])
  .optional()
  .describe(
    'What a recipient does who is suppressed, unsubscribed or without consent: refuses the request, the default, or is skipped while others are sent to.',
  );

/** The fields of both streams. */
export const commonSendFields = {
  from: z.string().meta({
    id: 'Sender',
    description: 'Sender, plain or with display name. Its domain must be verified.',
  }),
  subject: z.string().min(1).optional().describe('Required unless the template has one.'),
  html: z
    .string()
    .min(1)
    .meta({
      id: 'MessageHtml',
      description:
        'Must contain `{{company_address_html}}` and `{{unsubscribe_email_html}}`. Required unless `text` or `templateId` is given.',
    })
    .optional(),
  text: z
    .string()
    .meta({
      id: 'MessageText',
      description:
        'Plain text version; derived from the html if absent. Without html the message is text only, and the text must contain both variables, which insert text here (or their aliases `{{company_address_text}}` and `{{unsubscribe_email_text}}`).',
    })
    .optional(),
  syntax: z
    .enum(['simple', 'liquid'])
    .meta({
      id: 'MessageSyntax',
      description:
        'Syntax of subject, html and text. `simple`, the default: `{{name}}` and `{{name|default}}`. `liquid`: conditions, loops and filters. A template has its own.',
    })
    .optional(),
  templateId: z
    .string()
    .max(100)
    .meta({
      id: 'MessageTemplateId',
      description:
        'A stored template in place of subject, html and text. `subject` overrides that of the template.',
    })
    .optional(),
  replyTo: z
    .union(
      [z.string(), atMost(z.array(z.string()), MAX_REPLY_TO)],
      'must be an address or an array of addresses',
    )
    .optional()
    .describe(`Plain or with display name: one address, or an array of at most ${MAX_REPLY_TO}.`),
  headers: atMost(z.record(z.string(), z.string()), MAX_HEADERS)
    .optional()
    .describe('Custom header fields, at most 50 and 8 KiB in total.'),
  templateVariables: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Values for `{{name}}` in subject, html and text. A name in braces consists of A-Z, a-z, 0-9, `_` and `.`, and begins with a letter or `_`. Other text in braces is sent unchanged, with a warning; it is refused if a value has that name. Integers above 9,007,199,254,740,991 must be strings.',
    ),
  enableClickTracking: z.boolean().optional().describe('Default: that of the domain.'),
  enableOpenTracking: z.boolean().optional().describe('Default: that of the domain.'),
  ...labelFields,
};

export const transactionalBody = z
  .object({
    to: oneOrMany
      .optional()
      .describe(
        'Recipients, plain or with display name: one address, a comma-separated list or an array. At most 50 with cc and bcc.',
      ),
    cc: oneOrMany.optional(),
    bcc: oneOrMany
      .optional()
      .describe('Each gets a copy that names none of them. Allowed only without `to` and `cc`.'),
    ...commonSendFields,
    attachments: atMost(z.array(attachment), MAX_ATTACHMENTS, 'TOO_MANY_ATTACHMENTS')
      .optional()
      .describe('At most 10, and 2 MB in total after decoding.'),
    calendar: calendar
      .optional()
      .describe(
        'An invitation or a reply: sent as a `text/calendar` alternative and as the file `invite.ics`. Counts toward the size of the attachments.',
      ),
    essential: z
      .boolean()
      .optional()
      .describe(
        'For sign-in codes, password resets and legal notices. Sent even to recipients who unsubscribed from transactional mail, but not after a hard bounce, a complaint or a manual suppression. Has no List-Unsubscribe field, and `{{unsubscribe_email_html}}` is optional.',
      ),
    // Null, of clients that always send it: now.
    scheduledAt: scheduledTime
      .nullable()
      .transform((time) => time ?? undefined)
      .optional(),
    subscriptionGroupId: marketingOnly,
    onRefused,
  })
  .superRefine(({ to, cc, bcc }, context) => {
    const others = [...(isGiven(to) ? ['"to"'] : []), ...(isGiven(cc) ? ['"cc"'] : [])];
    if (isGiven(bcc) && others.length > 0)
      context.addIssue({
        code: 'custom',
        path: ['bcc'],
        message: `is allowed only without ${others.join(' and ')}: send blind copies in a request of their own`,
      });
  })
  .meta({ id: 'TransactionalSendInput' });

function isGiven(recipients: string | readonly string[] | undefined): boolean {
  return typeof recipients === 'string' ? recipients.trim() !== '' : (recipients ?? []).length > 0;
}

export const marketingBody = z
  .object({
    to: oneOrMany.describe(
      'Recipients: one address, a comma-separated list or an array, at most 50. Each gets an individual copy.',
    ),
    cc: transactionalOnly,
    bcc: transactionalOnly,
    attachments: transactionalOnly,
    calendar: transactionalOnly,
    essential: transactionalOnly,
    ...commonSendFields,
    subscriptionGroupId: z
      .string()
      .max(100)
      .optional()
      .describe(
        'The recipients must be active members of this group. Without it, the consent of the contact is required.',
      ),
    campaignId: z
      .string()
      .max(100)
      .optional()
      .describe('The campaign in whose analytics the message counts.'),
    scheduledAt: scheduledTime.optional(),
    onRefused,
  })
  .meta({ id: 'MarketingSendInput' });

const recipients = <Status extends string>(...statuses: [Status, ...Status[]]) =>
  z.array(
    z.object({
      email: z.string(),
      status: z.enum([...statuses, 'refused']),
      role: z.enum(['to', 'cc', 'bcc']),
      messageId: z.string().optional().describe('Absent for a refused recipient, who was skipped.'),
      code: z.enum(RECIPIENT_REFUSALS).optional().describe('Why the recipient was refused.'),
      reason: z.enum(RECIPIENT_REFUSAL_REASONS).optional(),
    }),
  );

const delivery = z
  .object({
    status: attemptedStatus.describe('`queued` or `sending`: no outcome within the requested time.'),
    smtpReply: z.string().optional(),
  })
  .meta({ id: 'DeliveryOutcome' });

export const transactionalResult = z
  .object({
    message: z.string(),
    messageId: z.string(),
    from: z.string(),
    totalRecipients: z.int(),
    recipients: recipients('sent', 'scheduled'),
    status: z.enum(['sent', 'scheduled']).describe('`scheduled`: it is sent at `scheduledAt`.'),
    scheduledAt: z.string().optional().describe('Present for scheduled mail.'),
    delivery: delivery.optional(),
  })
  .meta({ id: 'TransactionalSendResult' });

export const marketingResult = z
  .object({
    message: z.string(),
    jobId: z.string(),
    status: z.literal('queued'),
    from: z.string(),
    totalRecipients: z.int(),
    recipients: recipients('queued'),
  })
  .meta({ id: 'MarketingSendResult' });

export const TRANSACTIONAL_EXAMPLE = {
  to: 'Ada Lovelace <ada@example.net>',
  from: 'Example Shop <orders@example.com>',
  subject: 'Your order {{orderNumber}}',
  html: '<p>Thank you, {{name}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  templateVariables: { name: 'Ada', orderNumber: '10042' },
};

export const TRANSACTIONAL_RESULT: z.output<typeof transactionalResult> = {
  message: 'Email accepted for delivery',
  messageId: 'msg_1769860800000_2q8w4e6r1t5y',
  from: TRANSACTIONAL_EXAMPLE.from,
  totalRecipients: 1,
  recipients: [
    { email: 'ada@example.net', status: 'sent', role: 'to', messageId: 'msg_1769860800000_2q8w4e6r1t5y' },
  ],
  status: 'sent',
};

export const MARKETING_EXAMPLE = {
  to: 'ada@example.net',
  from: 'Example Shop <news@example.com>',
  subject: 'What is new in {{month}}',
  html: '<p>Hello!</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  templateVariables: { month: 'May' },
};

export const MARKETING_RESULT: z.output<typeof marketingResult> = {
  message: 'Email queued',
  jobId: 'job_1769860800000_7u3i9o2p5a8s',
  status: 'queued',
  from: MARKETING_EXAMPLE.from,
  totalRecipients: 1,
  recipients: [
    { email: 'ada@example.net', status: 'queued', role: 'to', messageId: 'msg_1769860800000_4d6f8g1h3j5k' },
  ],
};
