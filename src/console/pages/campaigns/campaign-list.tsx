import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { callApi, withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CampaignStatus } from './campaign-status.tsx';
import '../../parts/chart/share-bar.css';

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
    <Page
      title={t('page.campaigns')}
      question={t('campaigns.question')}
      curl={path}
      actions={may('createCampaign') && <NewCampaign />}
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
                  t('campaigns.queued'),
                  { text: t('messages.created'), end: true },
                ]}
              >
                {campaigns.map(({ campaignId, name, status, prepared, progress, createdAt }) => (
                  <tr key={campaignId}>
                    <th scope="row">
                      <a href={href(`campaigns/${encodeURIComponent(campaignId)}`)}>{name || campaignId}</a>
                      {prepared?.subject !== undefined && <span class="small">{prepared.subject}</span>}
                    </th>
                    <td class="aside">
                      <CampaignStatus name={status} />
                    </td>
                    <td class="second">{progress === undefined ? '–' : <Progress of={progress} />}</td>
                    <td class="when">
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
    </Page>
  );
}

/** How many members of the group have a message, also as a bar. */
function Progress({ of: { queued, members } }: { of: NonNullable<Campaign['progress']> }) {
  const { t, number } = useTexts();
  return (
    <span class="progress-of">
      {t('campaigns.of', { count: number(queued), members: members === null ? '?' : number(members) })}
      <ShareBar total={members ?? 0} parts={[{ color: '--c-delivered', value: queued }]} />
    </span>
  );
}

/** The button for a new campaign, with the form in a drawer. */
function NewCampaign() {
  const { t } = useTexts();
  return <CreationDrawer title={t('campaigns.new')}>{() => <Creation />}</CreationDrawer>;
}

function Creation() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  return (
    <form
      aria-label={t('campaigns.new')}
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
      <Outcome of={outcome} />
    </form>
  );
}
