import type { DataOf } from '../../operations.ts';
import { Status } from '../../parts.tsx';

export type CampaignStatusName = DataOf<'/web-setup/campaigns'>['campaigns'][number]['status'];

/** The status of a campaign in a word. */
export function CampaignStatus({ name }: { name: CampaignStatusName }) {
  return <Status name={name} prefix="campaigns.status" />;
}
