import { operate } from '../../api.ts';
import { useOperation, useRefresh } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Confirmed, Loaded, Notice, Outcome, Page, Skeleton, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CampaignStatus } from './campaign-status.tsx';
import { Composer, NewCampaign } from './composer.tsx';
import { CAMPAIGN, type CampaignResource } from './draft-saver.ts';
import { createResend } from './resend.ts';
import { Results } from './results.tsx';

const REFRESH_MS = 5000;
/** A draft that another person may change. */
const DRAFT_REFRESH_MS = 15_000;

/** A campaign: until it is sent, the composer; afterwards progress and results. `campaignId` `new`: a new one. */
export function CampaignPage({ campaignId }: { campaignId: string }) {
  return campaignId === 'new' ? <NewCampaign /> : <ExistingCampaign campaignId={campaignId} />;
}

function ExistingCampaign({ campaignId }: { campaignId: string }) {
  const { t } = useTexts();
  const data = useOperation(CAMPAIGN, { campaignId });
  const campaign = data.value?.campaign;
  const isMoving = campaign?.status === 'sending' || campaign?.status === 'scheduled';
  // The start of a scheduled campaign, members without a message and changes of a draft cause no event.
  useRefresh(data.reload, isMoving ? REFRESH_MS : campaign?.status === 'draft' ? DRAFT_REFRESH_MS : null);
  if (campaign?.status === 'draft') return <Composer campaign={campaign} reload={data.reload} />;
  // Without a heading: that of the page gets the focus once it is known which one it is.
  if (campaign === undefined && data.error === null) return <Skeleton />;
  return (
    <Page
      title={campaign?.name ?? t('page.campaigns')}
      chip={campaign !== undefined && <CampaignStatus name={campaign.status} />}
      curl={addressOf(`${CAMPAIGN}/analytics`, { campaignId })}
      actions={campaign !== undefined && <Actions campaign={campaign} reload={data.reload} />}
    >
      <Loaded data={data}>
        {({ campaign: sent }) => (
          <>
            {sent.pausedFigures !== undefined ? (
              <Stopped campaign={sent} />
            ) : (
              sent.progress !== undefined &&
              sent.progress.pausedReason !== null && (
                <Notice kind="bad" title={t('campaigns.pausedReason')}>
                  <p>{sent.progress.pausedReason}</p>
                </Notice>
              )
            )}
            <Results campaign={sent} reload={data.reload} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Why a campaign was stopped automatically, and what to do. */
function Stopped({ campaign: { pausedReason, pausedFigures } }: { campaign: CampaignResource }) {
  const { t, percent, number } = useTexts();
  const reason = REASONS.find((name) => name === pausedReason);
  if (reason === undefined || pausedFigures === undefined) return null;
  const { messages, events, limit } = pausedFigures;
  return (
    <Notice kind="bad" title={t('campaigns.stopped')}>
      <p>
        {t(`campaigns.stopped.${reason}`, {
          events: number(events),
          messages: number(messages),
          rate: percent(events, messages),
          limit: percent(limit, 100),
        })}
      </p>
      <p>{t(`campaigns.stopped.${reason}.remedy`)}</p>
    </Notice>
  );
}

const REASONS = ['hard_bounces', 'complaints', 'blocks'] as const;

interface ActionsProps {
  campaign: CampaignResource;
  reload: () => void;
}

function Actions({ campaign, reload }: ActionsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { campaignId, name, status, progress, pausedFigures } = campaign;
  const { outcome, run } = useAction();
  const request = { account: accountId, parameters: { campaignId } };
  const post = (verb: 'pause' | 'resume' | 'cancel') =>
    run(async () => {
      await operate('post', `${CAMPAIGN}/${verb}`, request);
      reload();
      return '';
    });
  return (
    <>
      {outcome?.failed === true && <Outcome of={outcome} />}
      {(status === 'sending' || status === 'scheduled') && may('pauseCampaign') && (
        <button class="button" type="button" onClick={() => void post('pause')}>
          <Icon name="pause" />
          {t('campaigns.pause')}
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
      <a class="button" href={href('messages', { campaignId })}>
        <Icon name="send" />
        {t('campaigns.messages')}
      </a>
      {status === 'paused' && pausedFigures !== undefined && may('resumeCampaign') && (
        <Confirmed
          isPrimary
          label={t('campaigns.resume')}
          question={t('campaigns.resume.confirm')}
          reason={t('campaigns.resume.reason')}
          action={(reason) =>
            run(async () => {
              await operate('post', `${CAMPAIGN}/resume`, { ...request, body: { reason } });
              reload();
              return '';
            })
          }
        />
      )}
      {status === 'paused' && pausedFigures === undefined && may('resumeCampaign') && (
        <button type="button" class="button primary" onClick={() => void post('resume')}>
          <Icon name="play" />
          {t('campaigns.resume')}
        </button>
      )}
      {status === 'sent' && may('createCampaign') && may('createSegment') && (
        <Confirmed
          label={t('campaigns.resend')}
          question={t('campaigns.resend.confirm')}
          action={() =>
            run(async () => {
              const again = await createResend(campaign, accountId, {
                campaign: t('campaigns.resend.name', { name }),
                segment: t('campaigns.resend.segment', { name }),
              });
              go(href(`campaigns/${encodeURIComponent(again)}`, { step: 'audience' }));
              return '';
            })
          }
        />
      )}
      {(status === 'cancelled' || status === 'sent') && may('deleteCampaign') && (
        <DeletionMenu
          name={name}
          label={t('campaigns.delete')}
          question={t('campaigns.delete.confirm', { name })}
          remove={() =>
            run(async () => {
              await operate('delete', CAMPAIGN, request);
              go(href('campaigns'), { discard: true });
              return '';
            })
          }
        />
      )}
    </>
  );
}
