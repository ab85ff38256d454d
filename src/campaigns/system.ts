import { type CampaignsDeps, createCampaigns } from './campaigns.ts';
import { type CampaignRunnerDeps, createCampaignRunner } from './run.ts';
import { type CampaignSendingDeps, createCampaignSending } from './send.ts';

export type CampaignSystemDeps = CampaignsDeps & CampaignRunnerDeps & Omit<CampaignSendingDeps, 'onChange'>;

/** Campaign resources, their acceptance and the runner that sends them, as the daemon runs them. */
export function createCampaignSystem(deps: CampaignSystemDeps) {
  const runner = createCampaignRunner(deps);
  return {
    campaigns: createCampaigns(deps),
    sending: createCampaignSending({ ...deps, onChange: runner.wake }),
    runner,
  };
}

export type CampaignSystem = ReturnType<typeof createCampaignSystem>;
