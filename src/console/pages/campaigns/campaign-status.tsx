import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { Status } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

export type CampaignStatusName = z.output<typeof campaignSchema>['status'];

/** The status of a campaign in a word. */
export function CampaignStatus({ name }: { name: CampaignStatusName }) {
  const { t } = useTexts();
  return <Status name={name} prefix="campaigns.status" />;
}
