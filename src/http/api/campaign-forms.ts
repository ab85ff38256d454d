import { z } from 'zod';
import { presentCampaign } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { CAMPAIGN_STATUSES, type CampaignRow } from '../../store/campaigns/campaigns.ts';

/** Schemas and examples of campaigns. */
const progress = z.object({
  jobId: z.string().describe('Of its messages: `GET /web-setup/messages?jobId=`.'),
  subscriptionGroupId: z.string(),
  members: z
    .int()
    .nullable()
    .describe('Active members of the group when sending began; null: it has not begun.'),
  queued: z.int().describe('Members with a message.'),
  skipped: z
    .object({
      withoutEmail: z.int(),
      notEligible: z.int().describe('Unsubscribed, suppressed, or without a consent on record.'),
      notRenderable: z
        .int()
        .describe('A field has a value that cannot be rendered: a list, or a line break in the subject.'),
    })
    .describe('Members without a message.'),
  perHour: z
    .int()
    .nullable()
    .describe('Maximum number of messages an hour; null: as fast as delivery permits.'),
  pausedReason: z
    .string()
    .nullable()
    .describe('Why the service paused it, beginning with an error code; null: the service did not pause it.'),
  scheduledAt: z.iso.datetime().nullable(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime().nullable().describe('When it was sent or cancelled.'),
});

export const campaignForm = z.object({
  campaignId: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z
    .enum(CAMPAIGN_STATUSES)
    .describe(
      '`draft`: it was not sent to a group. `sent`: all members were processed, and no message waits for its first attempt.',
    ),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  progress: progress.optional().describe('Only for a campaign that is or was sent to a group.'),
});
export const oneCampaignForm = z.object({ campaign: campaignForm });

export function withProgress(
  sending: Pick<CampaignSending, 'progress'>,
  row: CampaignRow,
): z.output<typeof campaignForm> {
  const campaign = presentCampaign(row);
  const progress = sending.progress(row);
  return progress === null ? campaign : { ...campaign, progress };
}

export const EXAMPLE: z.output<typeof campaignForm> = {
  campaignId: 'campaign_1769860800000_9z1x3c5v7b2n',
  name: 'Spring sale',
  description: 'To all customers of last year',
  status: 'draft',
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
};

export const SENDING_EXAMPLE = {
  ...EXAMPLE,
  status: 'sending' as const,
  updatedAt: '2026-01-31T12:30:00.000Z',
  progress: PROGRESS_EXAMPLE,
};
