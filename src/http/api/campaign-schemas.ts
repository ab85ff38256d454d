import * as z from 'zod';
import { MAX_EXCLUDED, MAX_GROUPS } from '../../campaigns/audience.ts';
import { presentCampaign } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { RATE_FIGURES } from '../../events/event-types.ts';
import { CAMPAIGN_STATUSES, type CampaignRow } from '../../store/campaigns/campaigns.ts';
import { atMost, line, requestTime } from './fields.ts';

/** Maximum rate of a campaign, messages per hour. */
export const MAX_PER_HOUR = 10_000_000;

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
