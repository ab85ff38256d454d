import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import type { ApiOperationId, DataOf } from '../../operations.ts';
import { useNavigation } from '../../routing.ts';
import type { CurrentMember } from '../../session.ts';
import { type TextKey, useTexts } from '../../texts.ts';
import { toast } from '../toast.tsx';
import type { PaletteTarget } from './palette-content.tsx';

/** Forms of lists (`create` in the address opens their drawer) and pages of their own, with the operation that each needs. */
const CREATIONS: readonly { title: TextKey; path: string; operation: ApiOperationId }[] = [
  { title: 'campaigns.new', path: 'campaigns/new', operation: 'createCampaign' },
  { title: 'domains.add', path: 'domains/new', operation: 'registerDomain' },
  { title: 'contacts.add', path: 'contacts', operation: 'createContact' },
  { title: 'groups.new', path: 'groups', operation: 'createSubscriptionGroup' },
  { title: 'suppressions.add', path: 'suppressions', operation: 'createSuppression' },
  { title: 'keys.create', path: 'keys', operation: 'createKey' },
  { title: 'webhooks.add', path: 'webhooks', operation: 'createWebhook' },
  { title: 'accounts.create', path: 'system/accounts', operation: 'createAccount' },
];

type ListedCampaign = DataOf<'/web-setup/campaigns'>['campaigns'][number];

/** Campaigns that are offered to be paused or resumed. */
const MAX_CAMPAIGNS = 5;
/** The newest campaigns, among which they are searched. */
const NEWEST = 50;

/** What the person may do from any page. */
export function useActions(member: CurrentMember): PaletteTarget[] {
  const { t, errorText } = useTexts();
  const { href } = useNavigation();
  const { accountId, may, has } = member;
  const [campaigns, setCampaigns] = useState<ListedCampaign[]>([]);
  const isSender = accountId !== '' && may('pauseCampaign');
  useEffect(() => {
    if (!isSender) return;
    operate('get', '/web-setup/campaigns', {
      account: accountId,
      parameters: { limit: NEWEST },
    }).then(
      (list) => setCampaigns(list.campaigns),
      (error: unknown) => {
        // Without the campaigns, everything else can be done.
        if (!(error instanceof ApiError)) throw error;
      },
    );
  }, [accountId, isSender]);
  const change = async (campaignId: string, verb: 'pause' | 'resume', text: string): Promise<void> => {
    try {
      await operate('post', `/web-setup/campaigns/{campaignId}/${verb}`, {
        account: accountId,
        parameters: { campaignId },
      });
      toast(text);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      toast(errorText(error), { isBad: true });
    }
  };
  return [
    ...campaigns
      .filter(({ status }) => status === 'sending' || status === 'paused')
      .slice(0, MAX_CAMPAIGNS)
      .map(({ campaignId, name, status }) => {
        const verb = status === 'paused' ? 'resume' : 'pause';
        return {
          title: t(`palette.${verb}`, { name: name || campaignId }),
          address: campaignId,
          run: () => void change(campaignId, verb, t(`palette.${verb}.done`, { name: name || campaignId })),
        };
      }),
    ...CREATIONS.filter(({ operation }) => may(operation) && (accountId !== '' || has('operator'))).map(
      ({ title, path }) => ({
        title: t(title),
        address: href(path, path.endsWith('/new') ? {} : { create: '1' }),
      }),
    ),
    ...(has('people') ? [{ title: t('people.invite'), address: href('people', { create: '1' }) }] : []),
  ];
}
