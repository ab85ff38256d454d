import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import { callApi } from '../../api.ts';
import { useData, useRefresh } from '../../data.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { Confirmed, Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CampaignStatus } from './campaign-status.tsx';
import { Composition } from './composition.tsx';
import { Results } from './results.tsx';

type Campaign = z.output<typeof campaignSchema>;

const REFRESH_MS = 5000;

/** A campaign: until it is sent, its composition; afterwards progress and results. */
export function CampaignPage({ campaignId }: { campaignId: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const path = `/web-setup/campaigns/${encodeURIComponent(campaignId)}`;
  const data = useData<{ campaign: Campaign }>(path);
  const status = data.value?.campaign.status;
  const isMoving = status === 'sending' || status === 'scheduled';
  // The start of a scheduled campaign and members without a message cause no event.
  useRefresh(data.reload, isMoving ? REFRESH_MS : null);
  return (
    <Page
      title={data.value?.campaign.name ?? t('page.campaigns')}
      question={t('campaigns.question')}
      curl={path}
    >
      <p>
        <a href={href('campaigns')}>{t('app.back')}</a>
      </p>
      <Loaded data={data}>
        {({ campaign }) => (
          <>
            <p>
              <CampaignStatus name={campaign.status} />
            </p>
            {campaign.progress !== undefined && <Progress campaign={campaign} progress={campaign.progress} />}
            <Actions campaign={campaign} path={path} reload={data.reload} />
            {campaign.status === 'draft' ? (
              <Composition campaign={campaign} path={path} reload={data.reload} />
            ) : (
              <Results campaignId={campaign.campaignId} path={path} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface ProgressProps {
  campaign: Campaign;
  progress: NonNullable<Campaign['progress']>;
}

function Progress({ campaign, progress }: ProgressProps) {
  const { t, time, number } = useTexts();
  const { href } = useNavigation();
  const { members, queued, skipped, perHour, pausedReason } = progress;
  const without = skipped.withoutEmail + skipped.notEligible + skipped.notRenderable;
  const facts: [string, string][] = [
    [t('campaigns.members'), members === null ? '' : number(members)],
    [t('campaigns.withoutEmail'), skipped.withoutEmail === 0 ? '' : number(skipped.withoutEmail)],
    [t('campaigns.notEligible'), skipped.notEligible === 0 ? '' : number(skipped.notEligible)],
    [t('campaigns.notRenderable'), skipped.notRenderable === 0 ? '' : number(skipped.notRenderable)],
    [t('campaigns.perHour'), perHour === null ? '' : number(perHour)],
    [t('campaigns.scheduledAt'), time(progress.scheduledAt)],
    [t('campaigns.startedAt'), time(progress.startedAt)],
    [t('campaigns.finishedAt'), time(progress.finishedAt)],
  ];
  return (
    <>
      {pausedReason !== null && (
        <div class="notice bad">
          <strong>{t('campaigns.pausedReason')}</strong>
          <p>{pausedReason}</p>
        </div>
      )}
      {members !== null && (
        <p>
          <label class="field">
            {t('campaigns.progress', { count: queued + without, members })}{' '}
            <progress value={queued + without} max={Math.max(members, 1)} />
          </label>
        </p>
      )}
      <FactList facts={facts} />
      <p>
        <a href={href('messages', { campaignId: campaign.campaignId })}>{t('campaigns.messages')}</a>
      </p>
    </>
  );
}

interface ActionsProps {
  campaign: Campaign;
  path: string;
  reload: () => void;
}

function Actions({ campaign: { name, status, progress }, path, reload }: ActionsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const post = (verb: 'pause' | 'resume' | 'cancel') =>
    run(async () => {
      await callApi(`${path}/${verb}`, { method: 'POST', account: accountId });
      reload();
      return '';
    });
  return (
    <>
      <div class="actions">
        {(status === 'sending' || status === 'scheduled') && may('pauseCampaign') && (
          <button class="button" type="button" onClick={() => void post('pause')}>
            {t('campaigns.pause')}
          </button>
        )}
        {status === 'paused' && may('resumeCampaign') && (
          <button type="button" class="button primary" onClick={() => void post('resume')}>
            {t('campaigns.resume')}
          </button>
        )}
        {progress?.cancellable === true && may('cancelCampaign') && (
          <Confirmed
            isDanger
            label={t('campaigns.cancel')}
            question={t('campaigns.cancel.confirm', { name })}
            action={() => post('cancel')}
          />
        )}
        {(status === 'draft' || status === 'cancelled' || status === 'sent') && may('deleteCampaign') && (
          <Confirmed
            isDanger
            label={t('campaigns.delete')}
            question={t('campaigns.delete.confirm', { name })}
            action={() =>
              run(async () => {
                await callApi(path, { method: 'DELETE', account: accountId });
                go(href('campaigns'), { discard: true });
                return '';
              })
            }
          />
        )}
      </div>
      {outcome?.failed === true && <Outcome of={outcome} />}
    </>
  );
}
