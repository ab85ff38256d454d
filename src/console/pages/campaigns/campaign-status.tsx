import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { Status } from '../../parts.tsx';

export type CampaignStatusName = z.output<typeof campaignSchema>['status'];

/** The status of a campaign in a word. */
export function CampaignStatus({ name }: { name: CampaignStatusName }) {
  return <Status name={name} prefix="campaigns.status" />;
}
