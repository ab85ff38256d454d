import { operate } from '../../api.ts';
import type { BodyOf } from '../../operations.ts';
import type { CampaignResource } from './draft-saver.ts';
import { contentOf, variantNames } from './variants.ts';

type SegmentFilter = BodyOf<'/web-setup/segments', 'post'>['filter'];

/** The maximum of the API. */
const MAX_NAME = 200;

/**
 * Creates a draft for the people who received a campaign and did not open it, with the same content, of an A/B test that of its
 * winner; returns its id. The segment of these people is created if there is none with the name.
 */
export async function createResend(
  { campaignId, progress, prepared }: CampaignResource,
  account: string,
  names: { campaign: string; segment: string },
): Promise<string> {
  const segmentId = await segmentOf(campaignId, account, names.segment);
  const {
    subscriptionGroupId,
    subscriptionGroupIds,
    excludeSegmentIds = [],
    excludeCampaignIds = [],
  } = progress ?? {};
  const winner = variantNames(prepared ?? {}).indexOf(progress?.test?.decision?.variant ?? '');
  const { templateId, subject } = contentOf(prepared ?? {}, Math.max(winner, 0));
  const { campaign } = await operate('post', '/web-setup/campaigns', {
    account,
    body: {
      name: names.campaign.slice(0, MAX_NAME),
      prepared: {
        ...(subscriptionGroupIds === undefined ? { subscriptionGroupId } : { subscriptionGroupIds }),
        segmentId,
        ...(excludeSegmentIds.length === 0 ? {} : { excludeSegmentIds }),
        ...(excludeCampaignIds.length === 0 ? {} : { excludeCampaignIds }),
        templateId,
        from: prepared?.from,
        subject,
      },
    },
  });
  return campaign.campaignId;
}

async function segmentOf(campaignId: string, account: string, wanted: string): Promise<string> {
  const filter: SegmentFilter = {
    all: [{ received: { campaignId } }, { not: { opened: { campaignId } } }],
  };
  // The end of the id distinguishes campaigns with one name.
  const name = `${wanted.slice(0, MAX_NAME - 20)} (${campaignId.slice(-12)})`;
  const { segments } = await operate('get', '/web-setup/segments', {
    account,
    parameters: { search: name, counts: 'false' },
  });
  const known = segments.find((each) => each.name === name);
  if (known !== undefined) return known.segmentId;
  const { segment } = await operate('post', '/web-setup/segments', { account, body: { name, filter } });
  return segment.segmentId;
}
