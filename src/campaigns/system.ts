import { type Campaigns, type CampaignsDeps, createCampaigns } from './campaigns.ts';
import { type CampaignRunner, type CampaignRunnerDeps, createCampaignRunner } from './run.ts';
import { type CampaignSending, type CampaignSendingDeps, createCampaignSending } from './send.ts';

export interface CampaignSystem {
  campaigns: Campaigns;
  sending: CampaignSending;
  runner: CampaignRunner;
}

export type CampaignSystemDeps = CampaignsDeps & CampaignRunnerDeps & Omit<CampaignSendingDeps, 'onChange'>;

/** Campaign resources, their acceptance and the runner that sends them, as the daemon runs them. */
export function createCampaignSystem(deps: CampaignSystemDeps): CampaignSystem {
  const runner = createCampaignRunner(deps);
  return {
    campaigns: createCampaigns(deps),
    sending: createCampaignSending({ ...deps, onChange: runner.wake }),
    runner,
  };
}
