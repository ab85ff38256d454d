import { useOperation } from '../../data.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { Card, Loaded, Status } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

/** The newest campaigns with their progress. */
export function RecentCampaigns() {
  const { t, percent } = useTexts();
  const { href } = useNavigation();
  const data = useOperation('/web-setup/campaigns', { limit: 5 });
  return (
    <Card title={t('overview.campaigns')} action={<a href={href('campaigns')}>{t('overview.all')}</a>}>
      <Loaded data={data}>
        {({ campaigns }) =>
          campaigns.length === 0 ? (
            <p class="all-well">{t('campaigns.empty')}</p>
          ) : (
            <ul class="campaign-rows">
              {campaigns.map(({ campaignId, name, status, progress }) => (
                <li key={campaignId}>
                  <a href={href(`campaigns/${encodeURIComponent(campaignId)}`)}>{name || campaignId}</a>
                  <Status name={status} prefix="campaigns.status" />
                  <span class="small">
                    {progress === undefined ? '–' : percent(progress.queued, progress.members ?? 0, 'down')}
                  </span>
                  {progress !== undefined && (
                    <ShareBar
                      total={progress.members ?? 0}
                      parts={[{ color: '--accent', value: progress.queued }]}
                    />
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}
