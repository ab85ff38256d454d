import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { Badge } from '../../parts/badge.tsx';
import { useTexts } from '../../texts.ts';

export type CampaignStatusName = z.output<typeof campaignSchema>['status'];

const KINDS = {
  draft: 'open',
  scheduled: 'open',
  sending: 'open',
  paused: 'bad',
  sent: 'good',
  cancelled: 'bad',
} as const satisfies Record<CampaignStatusName, 'good' | 'bad' | 'open'>;

/** The status of a campaign in a word. */
export function CampaignStatus({ name }: { name: CampaignStatusName }) {
  const { t } = useTexts();
  return <Badge kind={KINDS[name]}>{t(`campaigns.status.${name}`)}</Badge>;
}
