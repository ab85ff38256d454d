import * as z from 'zod';
import { MAX_EXCLUDED, MAX_GROUPS } from '../../campaigns/audience.ts';
import { presentCampaign } from '../../campaigns/campaigns.ts';
import { MAX_WAIT_HOURS } from '../../campaigns/mail.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { TEST_STATES } from '../../campaigns/variant-figures.ts';
import { RATE_FIGURES } from '../../events/event-types.ts';
import { DECISION_REASONS, MAX_VARIANTS, WINNER_MEASURES } from '../../store/campaigns/campaign-variants.ts';
import { CAMPAIGN_STATUSES, type CampaignRow } from '../../store/campaigns/campaigns.ts';
import { atMost, line, requestTime } from './fields.ts';

/** Maximum rate of a campaign, messages per hour. */
export const MAX_PER_HOUR = 10_000_000;

/** How variants are tested, in a send and in what is prepared for it. */
export const testInput = z
  .object({
    share: z
      .int()
      .min(1)
      .max(100)
      .describe(
        'Percent of the audience that receives the variants, approximately. 100: all of it; there is no winner.',
      ),
    winner: z
      .enum(WINNER_MEASURES)
      .describe(
        'What the winner has more of: `opens` by people or `clicks` by people, per delivered message. `none` exactly if `share` is 100.',
      ),
    waitHours: z
      .int()
      .min(1)
      .max(MAX_WAIT_HOURS)
      .optional()
      .describe('Hours between the last message of the test and the decision. Required with a winner.'),
  })
  .meta({ id: 'AbTestInput' });

/** Names of variants. */
export const variantName = line(50);

/** The largest number of variants. */
export const variantLimit = <Schema extends z.ZodArray>(schema: Schema): Schema =>
  atMost(schema, MAX_VARIANTS);

const difference = z
  .object({ value: z.number(), low: z.number(), high: z.number() })
  .nullable()
  .describe(
    'To the variant with the highest rate, as a share, with its interval; null for that variant, and without delivered messages.',
  );
const measured = z
  .object({
    people: z.int(),
    rate: z.number().nullable().describe('Among the delivered messages; null: none is delivered.'),
    difference,
  })
  .meta({ id: 'VariantRate' });

const variantCounts = { queued: z.int(), delivered: z.int() };

const test = z
  .object({
    share: z.int(),
    winner: z.enum(WINNER_MEASURES),
    waitHours: z.int().nullable(),
    state: z
      .enum(TEST_STATES)
      .describe(
        '`sending`: messages of the test are created; `waiting`: for the decision; `decided`: the rest of the audience receives the winner; `split`: the share is 100, nothing is decided.',
      ),
    decidesAt: z.iso
      .datetime()
      .nullable()
      .describe(
        'When the winner is decided; null: the messages of the test are not all sent, or it is decided.',
      ),
    confidence: z.number().describe('Of all intervals together.'),
    variants: z
      .array(
        z
          .object({
            name: z.string(),
            subject: z.string(),
            ...variantCounts,
            opens: measured,
            clicks: measured,
          })
          .meta({ id: 'CampaignVariant' }),
      )
      .describe('Messages of the test only: those to the rest of the audience are not counted here.'),
    decision: z
      .object({
        variant: z.string().describe('Name of the variant that the rest of the audience receives.'),
        reason: z
          .enum(DECISION_REASONS)
          .describe(
            '`better`: its rate is higher than that of each other variant, and the intervals exclude 0. `notSignificant`: no variant is, `tooFew`: a variant has fewer than 30 delivered messages; the rest receives the first variant. `chosen`: by a person.',
          ),
        decidedAt: z.iso.datetime(),
        by: z.string().optional().describe('Who chose it: the id of an API key, or the address of a person.'),
        counts: z
          .array(z.object({ variant: z.string(), ...variantCounts, opened: z.int(), clicked: z.int() }))
          .describe('What was known at that time.'),
      })
      .meta({ id: 'AbDecision' })
      .nullable(),
  })
  .meta({ id: 'AbTest' });

/** Campaigns in responses: schemas, examples, and a campaign with its progress. */
const progress = z
  .object({
    jobId: z.string().describe('Id of its messages: `GET /web-setup/messages?jobId=`.'),
    subscriptionGroupId: z
      .string()
      .describe('The group; with several, the one whose members are being processed.'),
    subscriptionGroupIds: z.array(z.string()).optional(),
    segmentId: z.string().optional(),
    excludeSegmentIds: z.array(z.string()).optional(),
    excludeCampaignIds: z.array(z.string()).optional(),
    members: z
      .int()
      .nullable()
      .describe(
        'Active members of the group when sending started, or people that the segment and the exclusions select; null before that. When all are processed, the sum of `queued` and `skipped`.',
      ),
    queued: z.int().describe('Members with a message.'),
    skipped: z
      .object({
        withoutEmail: z.int(),
        notEligible: z
          .int()
          .describe(
            'Unsubscribed, suppressed, without recorded consent, or removed from the group before it was their turn.',
          ),
        notRenderable: z
          .int()
          .describe(
            'A field has a value that the template cannot insert: a list, or a line break in the subject.',
          ),
      })
      .describe('Members without a message, by reason.'),
    perHour: z.int().nullable().describe('Maximum number of messages per hour; null: no limit.'),
    livemode: z.boolean().describe('`false`: it was sent with a test key, and reaches nobody.'),
    pausedReason: z
      .string()
      .nullable()
      .describe(
        'Why the service paused it: `hard_bounces`, `complaints` or `blocks` if it was stopped automatically, else a text that starts with an error code; null: the service did not.',
      ),
    pausedFigures: RATE_FIGURES.optional().describe(
      'The rate because of which it was stopped automatically.',
    ),
    scheduledAt: z.iso.datetime().nullable(),
    startedAt: z.iso.datetime().nullable(),
    finishedAt: z.iso.datetime().nullable().describe('When it was sent or cancelled.'),
    cancellable: z.boolean().describe('Whether a cancellation would have an effect.'),
    test: test.optional().describe('Of a campaign with `variants`.'),
  })
  .meta({ id: 'CampaignProgress' });

/** Fields of the body of `POST /web-setup/campaigns/{campaignId}/send`, which validates them. */
export const preparedSchema = z
  .object({
    subscriptionGroupId: line(100).optional(),
    subscriptionGroupIds: atMost(z.array(line(100)), MAX_GROUPS).optional(),
    segmentId: line(100).optional(),
    excludeSegmentIds: atMost(z.array(line(100)), MAX_EXCLUDED).optional(),
    excludeCampaignIds: atMost(z.array(line(100)), MAX_EXCLUDED).optional(),
    templateId: line(100).optional(),
    from: line(500).optional(),
    subject: line(998).optional(),
    perHour: z.int().min(1).max(MAX_PER_HOUR).optional(),
    scheduledAt: requestTime.optional(),
    variants: variantLimit(
      z.array(
        z.object({
          name: variantName.optional(),
          subject: line(998).optional(),
          templateId: line(100).optional(),
        }),
      ),
    ).optional(),
    test: testInput.optional(),
  })
  .meta({
    id: 'PreparedSend',
    description:
      'What is prepared for the send of a draft. For information only: the send uses the values of its request.',
  });

export const campaignSchema = z
  .object({
    campaignId: z.string(),
    name: z.string(),
    description: z.string().optional(),
    status: z
      .enum(CAMPAIGN_STATUSES)
      .describe(
        '`draft`: not sent to a group yet. `sent`: every member has been processed, and no message waits for its first attempt.',
      ),
    prepared: preparedSchema.nullable(),
    pausedReason: z
      .string()
      .optional()
      .describe('While it is stopped automatically: `hard_bounces`, `complaints` or `blocks`.'),
    pausedFigures: RATE_FIGURES.optional().describe(
      'While it is stopped automatically: the rate that is too high.',
    ),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    progress: progress.optional().describe('Present once the campaign has been sent to a group.'),
  })
  .meta({ id: 'Campaign' });
export const campaignResult = z.object({ campaign: campaignSchema }).meta({ id: 'CampaignResult' });

/**
 * The campaign as the API returns it; `progress` is absent until it was sent to a group. Reads the database through
 * `sending`.
 */
export function presentWithProgress(
  sending: Pick<CampaignSending, 'progress'>,
  row: CampaignRow,
): z.output<typeof campaignSchema> {
  const campaign = presentCampaign(row);
  const progress = sending.progress(row);
  if (progress === null) return campaign;
  const { pausedReason, pausedFigures } = progress;
  const stop = pausedReason === null || pausedFigures === undefined ? {} : { pausedReason, pausedFigures };
  return { ...campaign, ...stop, progress };
}

export const CAMPAIGN_EXAMPLE: z.output<typeof campaignSchema> = {
  campaignId: 'campaign_1769860800000_9z1x3c5v7b2n',
  name: 'Spring sale',
  description: 'For all customers',
  status: 'draft',
  prepared: null,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};

const PROGRESS_EXAMPLE: z.output<typeof progress> = {
  jobId: 'job_1769862600000_7u3i9o2p5a8s',
  subscriptionGroupId: 'sgroup_1769860800000_5t7y9u1i3o5p',
  members: 48210,
  queued: 12000,
  skipped: { withoutEmail: 3, notEligible: 41, notRenderable: 0 },
  perHour: 20000,
  livemode: true,
  pausedReason: null,
  scheduledAt: null,
  startedAt: '2026-01-31T12:30:00.000Z',
  finishedAt: null,
  cancellable: true,
};

export const SENDING_CAMPAIGN_EXAMPLE = {
  ...CAMPAIGN_EXAMPLE,
  status: 'sending' as const,
  updatedAt: '2026-01-31T12:30:00.000Z',
  progress: PROGRESS_EXAMPLE,
};

/** A campaign whose A/B test was decided by a person. */
export const TESTED_CAMPAIGN_EXAMPLE: z.output<typeof campaignSchema> = {
  ...SENDING_CAMPAIGN_EXAMPLE,
  progress: {
    ...PROGRESS_EXAMPLE,
    test: {
      share: 20,
      winner: 'opens',
      waitHours: 4,
      state: 'decided',
      decidesAt: null,
      confidence: 0.95,
      variants: [
        {
          name: 'A',
          subject: 'Spring is here',
          queued: 4800,
          delivered: 4750,
          opens: { people: 950, rate: 0.2, difference: { value: -0.04, low: -0.0567, high: -0.0233 } },
          clicks: { people: 95, rate: 0.02, difference: null },
        },
        {
          name: 'B',
          subject: '20 % on everything',
          queued: 4800,
          delivered: 4750,
          opens: { people: 1140, rate: 0.24, difference: null },
          clicks: { people: 95, rate: 0.02, difference: { value: 0, low: -0.0057, high: 0.0057 } },
        },
      ],
      decision: {
        variant: 'B',
        reason: 'chosen',
        decidedAt: '2026-01-31T14:30:00.000Z',
        by: 'key_1769860800000_5t7y9u1i3o5p',
        counts: [
          { variant: 'A', queued: 4800, delivered: 4750, opened: 950, clicked: 95 },
          { variant: 'B', queued: 4800, delivered: 4750, opened: 1140, clicked: 95 },
        ],
      },
    },
  },
};
