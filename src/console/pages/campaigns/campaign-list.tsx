import type { CampaignFiguresResponse } from '../../../http/console/figure-routes.ts';
import { useConsoleData, useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { Sparkline } from '../../parts/chart/sparkline.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CampaignStatus } from './campaign-status.tsx';
import type { CampaignResource } from './draft-saver.ts';
import './campaign-list.css';

type Figures = CampaignFiguresResponse['campaigns'][number];

/** The campaigns of the account, with what became of each. */
export function CampaignListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may, accountId } = useMember();
  const { lastKey } = location.query;
  const parameters = { limit: 50, lastKey };
  const list = useOperation('/web-setup/campaigns', parameters);
  const ids = list.value?.campaigns.map(({ campaignId }) => campaignId) ?? [];
  const figures = useConsoleData<CampaignFiguresResponse>(
    ids.length === 0 ? null : addressOf('/console/figures/campaigns', { campaignIds: ids.join(',') }),
    accountId,
    turnOf(list.value?.campaigns ?? []),
  );
  const byId = new Map(figures.value?.campaigns.map((each) => [each.campaignId, each]));
  return (
    <Page
      title={t('page.campaigns')}
      question={t('campaigns.question')}
      curl={addressOf('/web-setup/campaigns', parameters)}
      actions={
        may('createCampaign') && (
          <a class="button primary" href={href('campaigns/new')}>
            <Icon name="plus" />
            {t('campaigns.new')}
          </a>
        )
      }
    >
      <Loaded data={list}>
        {({ campaigns, nextKey }) => (
          <>
            {campaigns.length === 0 ? (
              <Empty title={t('campaigns.empty')} icon="megaphone">
                <p>{t('campaigns.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.campaigns')}
                isList
                heads={[
                  t('people.name'),
                  t('messages.status'),
                  t('campaigns.audience'),
                  { text: t('campaigns.count.sent'), end: true },
                  { text: t('campaigns.count.uniqueOpened'), end: true },
                  { text: t('campaigns.count.uniqueClicked'), end: true },
                  t('campaigns.firstDay'),
                  { text: t('campaigns.date'), end: true },
                ]}
              >
                {campaigns.map((campaign) => (
                  <Row
                    key={campaign.campaignId}
                    campaign={campaign}
                    figures={byId.get(campaign.campaignId)}
                  />
                ))}
              </Table>
            )}
            <Pager path="campaigns" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Changes when a campaign changed, so that the figures are read again. */
function turnOf(campaigns: readonly CampaignResource[]): number {
  return campaigns.reduce(
    (sum, { updatedAt, progress }) => sum + Date.parse(updatedAt) + (progress?.queued ?? 0),
    0,
  );
}

function Row({ campaign, figures }: { campaign: CampaignResource; figures: Figures | undefined }) {
  const { t, number, percent } = useTexts();
  const { href } = useNavigation();
  const { campaignId, name, status, progress, createdAt } = campaign;
  const isStarted = progress !== undefined && progress.startedAt !== null;
  const hasCounts = figures !== undefined && figures.sent > 0;
  const share = (count: number) => percent(count, figures?.delivered ?? 0);
  const openedBy = hasCounts ? share(figures.opened) : '–';
  return (
    <tr>
      <th scope="row">
        <a href={href(`campaigns/${encodeURIComponent(campaignId)}`)}>{name || campaignId}</a>
        {figures?.subject !== undefined && figures.subject !== null && (
          <span class="small">{figures.subject}</span>
        )}
      </th>
      <td class="aside">
        <CampaignStatus name={status} />
        {isStarted && (status === 'sending' || status === 'paused') && (
          <span class="campaign-bar">
            <ShareBar total={progress.members ?? 0} parts={[{ color: '--accent', value: progress.queued }]} />
            <span class="small">{percent(progress.queued, progress.members ?? 0, 'down')}</span>
          </span>
        )}
      </td>
      <td class="second">
        {figures?.group ?? '–'}
        {hasCounts && (
          <span class="campaign-short"> · {t('campaigns.openedShort', { share: openedBy })}</span>
        )}
      </td>
      <td>{hasCounts ? number(figures.sent) : '–'}</td>
      <td>{openedBy}</td>
      <td>{hasCounts ? share(figures.clicked) : '–'}</td>
      <td class="spark">
        {hasCounts && figures.openedByHour.some((count) => count > 0) && (
          <Sparkline columns={figures.openedByHour.map((count) => [count])} colors={['--c-opened']} />
        )}
      </td>
      <td class="when">
        <Time at={progress?.startedAt ?? progress?.scheduledAt ?? createdAt} />
      </td>
    </tr>
  );
}
