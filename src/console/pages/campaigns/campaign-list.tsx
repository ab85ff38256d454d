import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { callApi, withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CampaignStatus } from './campaign-status.tsx';

type Campaign = z.output<typeof campaignSchema>;

/** The campaigns of the account. */
export function CampaignListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const { lastKey } = location.query;
  const path = withQuery('/web-setup/campaigns', { limit: '50', lastKey });
  const list = useData<{ campaigns: Campaign[]; nextKey?: string }>(path);
  return (
    <Page title={t('page.campaigns')} question={t('campaigns.question')} curl={path}>
      <Loaded data={list}>
        {({ campaigns, nextKey }) => (
          <>
            {campaigns.length === 0 ? (
              <Empty title={t('campaigns.empty')}>
                <p>{t('campaigns.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.campaigns')}
                heads={[
                  t('people.name'),
                  t('messages.status'),
                  { text: t('campaigns.queued'), end: true },
                  { text: t('messages.created'), end: true },
                ]}
              >
                {campaigns.map(({ campaignId, name, status, progress, createdAt }) => (
                  <tr key={campaignId}>
                    <td>
                      <a href={href(`campaigns/${encodeURIComponent(campaignId)}`)}>{name || campaignId}</a>
                    </td>
                    <td>
                      <CampaignStatus name={status} />
                    </td>
                    <td>
                      {progress === undefined
                        ? '–'
                        : t('campaigns.of', {
                            count: progress.queued,
                            members: progress.members ?? '?',
                          })}
                    </td>
                    <td>
                      <Time at={createdAt} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="campaigns" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
      {may('createCampaign') && <NewCampaign />}
    </Page>
  );
}

function NewCampaign() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  return (
    <>
      <h2>{t('campaigns.new')}</h2>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const name = new FormData(event.currentTarget).get('name');
          void run(async () => {
            const { campaign } = await callApi<{ campaign: Campaign }>('/web-setup/campaigns', {
              method: 'POST',
              account: accountId,
              body: { name },
            });
            go(href(`campaigns/${encodeURIComponent(campaign.campaignId)}`));
            return '';
          });
        }}
      >
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" required maxLength={200} autocomplete="off" />
        </label>
        <div class="actions">
          <button type="submit" class="button primary" disabled={outcome?.running}>
            {t('campaigns.create')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
