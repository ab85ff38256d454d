import { z } from 'zod';
import { shownCampaign } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import { CAMPAIGN_STATUSES, type CampaignRow } from '../../store/campaigns/campaigns.ts';

/** How a campaign is shown: the schema, an example, and the campaign with how far it has come. */
const progress = z.object({
  jobId: z.string().describe('Its messages: `GET /web-setup/messages?jobId=`.'),
  subscriptionGroupId: z.string(),
  members: z
    .int()
    .nullable()
    .describe('Active members of the group when sending began; null: it has not begun.'),
  queued: z.int().describe('Members for whom there is a message.'),
  skipped: z
    .object({
      withoutEmail: z.int(),
      notEligible: z.int().describe('Unsubscribed, suppressed, or without a consent on record.'),
      notRenderable: z
        .int()
        .describe('A field holds what the template cannot show: a list, or a line break for the subject.'),
    })
    .describe('Members for whom there is none.'),
  perHour: z.int().nullable().describe('Messages an hour at most; null: as fast as mail leaves.'),
  pausedReason: z
    .string()
    .nullable()
    .describe('Why the service paused it, beginning with an error code; null when it did not.'),
  scheduledAt: z.iso.datetime().nullable(),
  startedAt: z.iso.datetime().nullable(),
  finishedAt: z.iso.datetime().nullable().describe('When it was sent, or cancelled.'),
});

export const campaignForm = z.object({
  campaignId: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z
    .enum(CAMPAIGN_STATUSES)
    .describe(
      '`draft`: it has not been sent to a group. `sent`: every member has been dealt with, and no message waits for its first try.',
    ),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  progress: progress.optional().describe('Of a campaign that is or was sent to a group.'),
});
export const oneCampaignForm = z.object({ campaign: campaignForm });

export function withProgress(
  sending: Pick<CampaignSending, 'progress'>,
  row: CampaignRow,
): z.output<typeof campaignForm> {
  const shown = shownCampaign(row);
  const progress = sending.progress(row);
  return progress === null ? shown : { ...shown, progress };
}

export const EXAMPLE: z.output<typeof campaignForm> = {
  campaignId: 'campaign_1769860800000_9z1x3c5v7b2n',
  name: 'Spring sale',
  description: 'To everybody who bought last year',
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
