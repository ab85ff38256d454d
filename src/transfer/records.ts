import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { publicPagesSchema } from '../accounts/public-pages.ts';
import { segmentFilter } from '../audience/segments/filter.ts';
import {
  MAX_DEFINITION_LENGTH,
  MAX_OFFSET_DAYS,
  MAX_STEPS,
  MAX_VERSIONS,
  sequenceDefinition,
} from '../audience/sequences/definition.ts';
import { withoutPause } from '../core/concurrency/slices.ts';
import { EVENT_KINDS } from '../events/event-types.ts';
import { FILTERED_STREAMS } from '../events/webhook-filter.ts';
import { designSchema, MAX_DESIGN_JSON } from '../mail/blocks/design.ts';
import { PARTIAL_NAME } from '../mail/liquid.ts';
import { MEDIA_LINK } from '../media/files.ts';
import { checkImageInSteps, IMAGE_TYPES } from '../media/images.ts';
import { MAX_MEDIA_BYTES } from '../media/media.ts';
import {
  DECISION_REASONS,
  MAX_VARIANTS,
  MIN_VARIANTS,
  WINNER_MEASURES,
} from '../store/campaigns/campaign-variants.ts';
import { PERSON_STATES, SEQUENCE_STATUSES, TRIGGER_KINDS } from '../store/campaigns/sequences.ts';
import { CONSENT_ACTIONS, CONSENT_METHODS, OPT_OUT_METHODS } from '../store/contacts/consent.ts';
import { GLOBAL_STATUSES } from '../store/contacts/contacts.ts';
import { variantBits } from '../store/contacts/engagement.ts';
import { ROUTE_ACTIONS, SPAM_POLICIES } from '../store/inbound/inbound-routes.ts';
import { MEDIA_PART_BYTES } from '../store/media.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../store/suppressions.ts';
import type { TransferType } from '../store/transfer/kinds.ts';
import { WEBHOOK_FORMATS } from '../webhooks/formats.ts';
import {
  accountScope,
  bytes,
  companyAddress,
  count,
  domainName,
  flag,
  id,
  json,
  recipientHash,
  short,
  text,
  time,
  useCase,
} from './fields.ts';

/*
 * The schema of each record of an exported account: the columns of store/transfer/kinds with their values. A file is untrusted
 * input: the schema checks everything that other modules assume when they read a column.
 */

/** What an account can declare for one template, in any characters. */
const MAX_VARIABLES_JSON = 200_000;

const limit = z.int().min(-1).nullable();

const dkimKey = z.strictObject({
  lane: z.enum(['primary', 'secondary']),
  slot: z.enum(['a', 'b', 'e', 'f', 's', 't']).nullable(),
  selector: z.string().regex(/^[a-z0-9]{1,63}$/),
  state: z.enum(['active', 'pending', 'retiring', 'revoked']),
  private_key: z.base64().max(20_000),
  public_key: z.base64().max(10_000),
  created_at: time,
  changed_at: time,
});

const webhookSecret = z.strictObject({ secret: z.base64().max(200), expires_at: time.nullable() });

const campaignVariant = z.strictObject({
  variant: z.int().min(1).max(MAX_VARIANTS),
  queued: count,
  delivered: count,
  opened: count,
  clicked: count,
});

const campaignTest = z.strictObject({
  share: z.int().min(1).max(100),
  winner: z.enum(WINNER_MEASURES),
  waitHours: count.nullable(),
  variants: z
    .array(z.strictObject({ name: short, subject: text }))
    .min(MIN_VARIANTS)
    .max(MAX_VARIANTS),
});

const campaignDecision = z.strictObject({
  variant: z
    .int()
    .min(0)
    .max(MAX_VARIANTS - 1),
  reason: z.enum(DECISION_REASONS),
  at: time,
  by: short.nullable(),
  counts: z.array(campaignVariant.omit({ variant: true })).max(MAX_VARIANTS),
});

const campaignSend = z.strictObject({
  job_id: id,
  subscription_group_id: id,
  scheduled_at: time.nullable(),
  per_hour: count.nullable(),
  members: count.nullable(),
  queued: count,
  without_email: count,
  not_eligible: count,
  not_renderable: count,
  paused_reason: short.nullable(),
  started_at: time.nullable(),
  finished_at: time.nullable(),
  created_at: time,
  // Files of older versions do not have these.
  audience: json(z.record(z.string(), z.unknown())).nullable().default(null),
  test: json(campaignTest).nullable().default(null),
  decide_at: time.nullable().default(null),
  decision: json(campaignDecision).nullable().default(null),
  in_rest: flag.default(0),
  simulated: flag.default(0),
});

const webhookFilter = z.strictObject({
  domains: z.array(z.string()).optional(),
  streams: z.array(z.enum(FILTERED_STREAMS)).optional(),
  tags: z.array(z.string()).optional(),
});

const campaignProvider = z.strictObject({
  provider: text,
  delivered: count,
  bounced: count,
  complained: count,
  unsubscribed: count,
  unique_opened: count,
  unique_clicked: count,
  machine_opened: count,
  machine_clicked: count,
});

const campaignCount = z.strictObject({
  hour: time,
  queued: count,
  sent: count,
  delivered: count,
  deferred: count,
  bounced: count,
  complained: count,
  opened: count,
  unique_opened: count,
  clicked: count,
  unique_clicked: count,
  unsubscribed: count,
  failed: count,
  cancelled: count,
  // Absent in files of earlier versions.
  hard_bounced: count.default(0),
  blocked: count.default(0),
});

const consent = z.strictObject({
  n: z.int().min(1),
  action: z.enum(CONSENT_ACTIONS),
  subscription_group_id: id.nullable(),
  method: z.enum([...CONSENT_METHODS, ...OPT_OUT_METHODS]).nullable(),
  details: text.nullable(),
  ip_address: short.nullable(),
  user_agent: text.nullable(),
  said_at: time.nullable(),
  recorded_at: time,
  recorded_by: short,
  // Files of older versions do not have it.
  evidence: json(z.record(z.string(), z.unknown())).nullable().default(null),
});

const subscription = z.strictObject({
  /** The public id of the group. */
  group_seq: id,
  is_active: flag,
  source: short,
  consent_method: z.enum(CONSENT_METHODS),
  consent_details: text.nullable(),
  joined_at: time,
  updated_at: time,
});

const engagement = z.strictObject({
  received_at: time.nullable(),
  opened_at: time.nullable(),
  clicked_at: time.nullable(),
  // Files of older versions do not have the next three.
  unanswered: z.int().min(0).default(0),
  unanswered_since: time.nullable().default(null),
  sunset_at: time.nullable().default(null),
});

const campaignContact = z.strictObject({
  /** The public id of the campaign. */
  campaign_seq: id,
  // Those of what it did, and those of its variant.
  bits: z
    .int()
    .min(0)
    .max(variantBits(MAX_VARIANTS - 1) + 7),
});

const sequencePerson = z
  .strictObject({
    /** The public id of the sequence. */
    sequence_seq: id,
    occurrence: short,
    version: z.int().min(1),
    state: z.enum(PERSON_STATES),
    step: z.int().min(0).max(MAX_STEPS),
    due_at: time,
    reason: short.nullable(),
    properties: json(z.record(z.string(), z.unknown())).nullable(),
    entered_at: time,
    ended_at: time.nullable(),
    event_ended_at: time.nullable(),
  })
  .refine(({ state, reason }) => (state === 'ended') === (reason !== null), 'has a state without its reason');

export const RECORD_SCHEMAS = {
  account: z.strictObject({
    name: short,
    company_name: short.nullable(),
    company_address: json(companyAddress, 10_000).nullable(),
    abuse_email: short.nullable(),
    logo_url: short.nullable(),
    created_at: time,
    updated_at: time,
    limits: z
      .array(
        z.strictObject({
          domains: limit,
          webhooks: limit,
          templates: limit,
          contacts: limit,
          messages_per_hour: limit,
          messages_per_day: limit,
          concurrent_requests: limit,
          // Absent in files of earlier versions.
          stored_bytes: limit.default(null),
          campaigns: limit.default(null),
          subscription_groups: limit.default(null),
          suppressions: limit.default(null),
        }),
      )
      .max(1),
    // Files of version 0.2.0 do not have it.
    pages: z
      .array(z.strictObject({ settings: json(publicPagesSchema), updated_at: time }))
      .max(1)
      .default([]),
  }),
  api_key: z.strictObject({
    key_id: id,
    name: short,
    hash: bytes(32),
    scopes: json(z.array(accountScope).min(1), 1000),
    allow_ips: json(z.array(z.string())),
    allow_from: json(z.array(z.string())),
    allow_essential: flag,
    strict_compliance: flag,
    // Files of older versions do not have it.
    simulates: flag.default(0),
    signing_secret: z.base64().max(1000).nullable().default(null),
    created_at: time,
    revoked_at: time.nullable(),
  }),
  domain_group: z.strictObject({
    group_id: id,
    name: short,
    description: text.nullable(),
    color: short.nullable(),
    icon: short.nullable(),
    is_default: flag,
    created_at: time,
    updated_at: time,
  }),
  domain: z.strictObject({
    domain_id: id,
    group_id: id,
    name: domainName,
    use_case: useCase,
    region: short,
    status: z.enum(['PENDING', 'SUCCESS', 'TEMPORARY_FAILURE', 'FAILED']),
    dkim_enabled: flag,
    spf_configured: flag,
    dmarc_configured: flag,
    mx_configured: flag,
    return_path: z.enum(['customer', 'platform']),
    tracking_domain: domainName.nullable(),
    tracking_host: domainName.nullable(),
    // Files of older versions do not have them.
    track_opens: flag.default(0),
    track_clicks: flag.default(0),
    alt_domain_id: id,
    alt_provisioned: flag,
    last_checked_at: time.nullable(),
    failing_since: time.nullable(),
    created_at: time,
    updated_at: time,
    dkim_keys: z.array(dkimKey).min(1).max(100),
  }),
  partial: z.strictObject({
    partial_id: id,
    name: z.string().regex(PARTIAL_NAME),
    html: text,
    created_at: time,
    updated_at: time,
  }),
  template: z.strictObject({
    template_id: id,
    name: short,
    type: z.enum(['transactional', 'marketing']).nullable(),
    subject: short.nullable(),
    html: text,
    text: text.nullable(),
    // Files of older versions do not have it.
    variables: json(
      z.array(
        z.union([
          z.string(),
          z.strictObject({ name: z.string(), type: z.string().optional(), required: z.boolean().optional() }),
        ]),
      ),
      MAX_VARIABLES_JSON,
    )
      .nullable()
      .default(null),
    // Files of version 0.2.0 do not have it.
    design: json(designSchema, MAX_DESIGN_JSON).nullable().default(null),
    syntax: z.enum(['simple', 'liquid']).default('simple'),
    mjml: text.nullable().default(null),
    created_at: time,
    updated_at: time,
  }),
  compliance_template: z.strictObject({
    template_id: id,
    name: short,
    type: z.enum(['unsubscribe', 'report_abuse', 'company_address']),
    domain: domainName.nullable(),
    is_default: flag,
    html_content: text,
    created_at: time,
    updated_at: time,
  }),
  subscription_group: z.strictObject({
    subscription_group_id: id,
    name: short,
    description: text.nullable(),
    is_active: flag,
    tags: json(z.array(z.string())),
    unsubscribe_template_id: id.nullable(),
    report_abuse_template_id: id.nullable(),
    company_address_template_id: id.nullable(),
    // Files of older versions do not have it.
    sign_up: json(z.strictObject({ from: short, subject: short.nullable(), intro: text.nullable() }))
      .nullable()
      .default(null),
    // Files of version 0.2.0 do not have it.
    is_public: flag.nullable().default(null),
    archive_key: z.string().regex(MEDIA_LINK, 'is not a key').nullable().default(null),
    created_at: time,
    updated_at: time,
  }),
  webhook: z.strictObject({
    webhook_id: id,
    name: short,
    description: text.nullable(),
    url: short,
    events: json(z.array(z.enum(['*', ...EVENT_KINDS])).min(1)),
    // Files of older versions do not have it.
    format: z.enum(WEBHOOK_FORMATS).default('postrider'),
    filter: json(webhookFilter).nullable().default(null),
    headers: json(z.record(z.string(), z.base64().max(2000)))
      .nullable()
      .default(null),
    is_active: flag,
    off_reason: z.enum(['gone', 'failing']).nullable(),
    failing_since: time.nullable(),
    created_at: time,
    updated_at: time,
    secrets: z.array(webhookSecret).min(1).max(100),
  }),
  inbound_route: z.strictObject({
    route_id: id,
    domain_id: id,
    name: short,
    local: short,
    host: short,
    action: z.enum(ROUTE_ACTIONS),
    webhook_id: id.nullable(),
    spam_policy: z.enum(SPAM_POLICIES),
    is_active: flag,
    created_at: time,
    updated_at: time,
  }),
  campaign: z
    .strictObject({
      campaign_id: id,
      name: short,
      description: text.nullable(),
      status: z.enum(['draft', 'sent', 'cancelled']),
      // Files of older versions do not have it.
      prepared: json(
        z.strictObject({
          subscriptionGroupId: id.optional(),
          subscriptionGroupIds: z.array(id).max(50).optional(),
          segmentId: id.optional(),
          excludeSegmentIds: z.array(id).max(50).optional(),
          excludeCampaignIds: z.array(id).max(50).optional(),
          templateId: id.optional(),
          from: short.optional(),
          subject: short.optional(),
          perHour: count.optional(),
          scheduledAt: short.optional(),
          variants: z
            .array(
              z.strictObject({
                name: short.optional(),
                subject: text.optional(),
                templateId: id.optional(),
              }),
            )
            .max(MAX_VARIANTS)
            .optional(),
          test: campaignTest.omit({ variants: true }).extend({ waitHours: count.optional() }).optional(),
        }),
      )
        .nullable()
        .default(null),
      created_at: time,
      updated_at: time,
      sends: z.array(campaignSend).max(1),
      mails: z.array(z.strictObject({ mail: json(z.record(z.string(), z.unknown())) })).max(1),
      counts: z.array(campaignCount).max(1_000_000),
      links: z.array(z.strictObject({ url: text, clicks: count })).max(1000),
      // Files of older versions do not have them.
      variants: z.array(campaignVariant).max(MAX_VARIANTS).default([]),
      providers: z.array(campaignProvider).max(101).default([]),
    })
    .refine(({ sends, mails }) => sends.length === mails.length, 'has a send without its content'),
  segment: z.strictObject({
    segment_id: id,
    name: short,
    filter: json(segmentFilter),
    created_at: time,
    updated_at: time,
  }),
  sequence: z
    .strictObject({
      sequence_id: z.string().regex(/^seq_\d{1,15}_[0-9a-z]{12}$/, 'is not the id of a sequence'),
      name: short,
      status: z.enum(SEQUENCE_STATUSES),
      paused_reason: text.nullable(),
      version: z.int().min(1),
      trigger_kind: z.enum(TRIGGER_KINDS),
      trigger_key: short,
      offset_days: z.int().min(-MAX_OFFSET_DAYS).max(MAX_OFFSET_DAYS),
      activated_at: time.nullable(),
      missed: count,
      created_at: time,
      updated_at: time,
      versions: z
        .array(
          z.strictObject({
            version: z.int().min(1),
            definition: json(sequenceDefinition, MAX_DEFINITION_LENGTH),
            created_at: time,
          }),
        )
        .min(1)
        .max(MAX_VERSIONS),
    })
    .refine(
      ({ version, versions }) => versions.some((one) => one.version === version),
      'does not have its version',
    ),
  contact: z
    .strictObject({
      user_id: id,
      email: short.nullable(),
      email_hash: recipientHash.nullable(),
      phone: short.nullable(),
      phone_hash: recipientHash.nullable(),
      first_name: short.nullable(),
      last_name: short.nullable(),
      custom_fields: json(z.record(z.string(), z.unknown())),
      // Files of version 0.2.0 do not have these three.
      language: short.nullable().default(null),
      paused_until: time.nullable().default(null),
      erasure_requested_at: time.nullable().default(null),
      global_status: z.enum(GLOBAL_STATUSES),
      consent_n: z.int().min(1).nullable(),
      source: short,
      added_by: short,
      created_at: time,
      updated_at: time,
      consents: z.array(consent).max(1_000_000),
      subscriptions: z.array(subscription).max(100_000),
      // Files of older versions do not have the next three.
      engagement: z.array(engagement).max(1).default([]),
      campaigns: z.array(campaignContact).max(1_000_000).default([]),
      sequences: z.array(sequencePerson).max(1_000_000).default([]),
    })
    .refine(
      ({ consents, consent_n: n }) => n === null || consents.some((entry) => entry.n === n),
      'has a consent that is not in its history',
    )
    .refine(
      ({ consents }) => new Set(consents.map(({ n }) => n)).size === consents.length,
      'has two entries with the same number in its history',
    )
    .refine(
      ({ subscriptions }) =>
        new Set(subscriptions.map(({ group_seq: group }) => group)).size === subscriptions.length,
      'is in one group twice',
    )
    .refine(
      ({ campaigns }) => new Set(campaigns.map(({ campaign_seq: one }) => one)).size === campaigns.length,
      'has one campaign twice',
    ),
  media_content: z
    .strictObject({
      hash: bytes(32),
      type: z.enum(IMAGE_TYPES),
      width: count,
      height: count,
      frames: count,
      size: z.int().min(1).max(MAX_MEDIA_BYTES),
      parts: z
        .array(z.strictObject({ n: count, bytes: z.base64().max(2 * MEDIA_PART_BYTES) }))
        .max(2 * Math.ceil(MAX_MEDIA_BYTES / MEDIA_PART_BYTES)),
    })
    .refine(isSameImage, 'is not the image that it states to be'),
  media: z.strictObject({
    media_id: id,
    /** The hash of the content, in hexadecimal. */
    content_seq: z.string().regex(/^[0-9a-f]{64}$/),
    link: z.string().regex(MEDIA_LINK, 'is not a link'),
    name: short,
    alt: short,
    created_at: time,
    updated_at: time,
  }),
  group_opt_out: z.strictObject({
    group_seq: id,
    recipient_hash: recipientHash,
    method: z.enum(OPT_OUT_METHODS),
    created_at: time,
  }),
  suppression: z.strictObject({
    recipient_hash: recipientHash,
    stream: z.enum(SUPPRESSION_STREAMS),
    reason: z.enum(SUPPRESSION_REASONS),
    email: short.nullable(),
    created_at: time,
  }),
  strike: z.strictObject({
    recipient_hash: recipientHash,
    kind: z.enum(['soft', 'unproven']),
    at: time,
  }),
  idempotency: z.strictObject({
    endpoint: short,
    key: short,
    fingerprint: z.base64().max(200),
    status: z.int().min(100).max(599),
    body: json(z.record(z.string(), z.unknown())),
    expires_at: time,
  }),
  message_count: z.strictObject({ slot: time, messages: count }),
  spam_rate: z.strictObject({
    provider: short,
    about: short,
    day: time,
    rate: z.number().min(0).max(1),
    recorded_at: time,
  }),
  moved_message: z.strictObject({
    message_id: z.string().regex(/^msg_\d{1,15}_[0-9a-z]{12}$/, 'is not the id of a message'),
    recipient_hash: z.string().regex(/^email_[0-9a-f]{32}$/),
    use_case: useCase,
    campaign_id: id.nullable(),
    subscription_group_id: id.nullable(),
    created_at: time,
  }),
} as const satisfies Record<TransferType, z.ZodType>;

/** Whether the parts are an image as an upload would have stored it, with its hash and its size. */
function isSameImage(content: {
  hash: string;
  type: string;
  width: number;
  height: number;
  frames: number;
  size: number;
  parts: { n: number; bytes: string }[];
}): boolean {
  const { hash: stated, type, width, height, frames, size, parts } = content;
  if (parts.some(({ n }, index) => n !== index)) return false;
  const file = Buffer.concat(parts.map((part) => Buffer.from(part.bytes, 'base64')));
  const image = withoutPause(checkImageInSteps(file));
  return (
    typeof image !== 'string' &&
    image.bytes.equals(file) &&
    isDeepStrictEqual(
      [type, width, height, frames, size],
      [image.type, image.width, image.height, image.frames, file.length],
    ) &&
    hash('sha256', file, 'base64') === stated
  );
}

export type Records = { [Type in TransferType]: z.output<(typeof RECORD_SCHEMAS)[Type]> };
/** A record with its type. */
export type TypedRecord = { [Type in TransferType]: { type: Type; record: Records[Type] } }[TransferType];

/** Columns with bytes, which are base64 in the file. */
export const BYTE_COLUMNS: ReadonlySet<string> = new Set([
  'hash',
  'fingerprint',
  'private_key',
  'secret',
  'signing_secret',
  'bytes',
]);
