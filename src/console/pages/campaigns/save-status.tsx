import { useEffect, useState } from 'preact/hooks';
import { Notice } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import type { CampaignResource } from './draft-saver.ts';
import type { CampaignDraft } from './use-draft.ts';

/** How often the age of the last save is shown again. */
const TICK_MS = 5000;
const MINUTE_MS = 60_000;

/** Whether the draft is saved, and since when. Only a change of the state is announced, not the age. */
export function SaveStatus({ draft: { state } }: { draft: CampaignDraft }) {
  const { t } = useTexts();
  const isBad = state.kind === 'failed' || state.kind === 'conflict';
  return (
    <span class={isBad ? 'save-status bad' : 'save-status'}>
      <span role="status">{t(`campaigns.save.${state.kind}`)}</span>{' '}
      {state.kind === 'saved' && <Age at={state.at} />}
    </span>
  );
}

function Age({ at }: { at: string }) {
  const { locale, time } = useTexts();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = window.setInterval(() => setNow(Date.now()), TICK_MS);
    return () => window.clearInterval(timer);
  }, [at]);
  return (
    <time dateTime={at} title={time(at)}>
      {ageText(now - Date.parse(at), locale)}
    </time>
  );
}

/** An age as "12 sec. ago". */
function ageText(ms: number, locale: string): string {
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
  const age = Math.max(ms, 0);
  if (age < MINUTE_MS) return format.format(-Math.floor(age / 1000), 'second');
  if (age < 60 * MINUTE_MS) return format.format(-Math.floor(age / MINUTE_MS), 'minute');
  if (age < 24 * 60 * MINUTE_MS) return format.format(-Math.floor(age / (60 * MINUTE_MS)), 'hour');
  return format.format(-Math.floor(age / (24 * 60 * MINUTE_MS)), 'day');
}

interface SaveProblemProps {
  draft: CampaignDraft;
  /** Shows the campaign as it is now. */
  reload: () => void;
}

/** Why the draft is not saved, and what to do about it. */
export function SaveProblem({ draft, reload }: SaveProblemProps) {
  const { t, errorText } = useTexts();
  const { state } = draft;
  if (state.kind === 'failed')
    return (
      <Notice kind="bad" title={t('campaigns.save.failed')}>
        <p>{errorText(state.error)}</p>
        <p>{t(state.isRepeated ? 'campaigns.save.repeated' : 'campaigns.save.refused')}</p>
        {state.isRepeated && (
          <button class="button" type="button" onClick={() => void draft.flush()}>
            {t('app.retry')}
          </button>
        )}
      </Notice>
    );
  if (state.kind !== 'conflict') return null;
  const { theirs } = state;
  if (theirs === null)
    return (
      <Notice kind="bad" title={t('campaigns.conflict.deleted')}>
        <p>{t('campaigns.conflict.deleted.hint')}</p>
      </Notice>
    );
  return <Conflict draft={draft} theirs={theirs} reload={reload} />;
}

/** Another person changed or sent the campaign: this person decides, and nothing is replaced until then. */
function Conflict({ draft, theirs, reload }: SaveProblemProps & { theirs: CampaignResource }) {
  const { t, time } = useTexts();
  const isDraft = theirs.status === 'draft';
  return (
    <Notice
      kind="bad"
      title={t(isDraft ? 'campaigns.conflict' : 'campaigns.conflict.sent', { time: time(theirs.updatedAt) })}
    >
      <p>{t(isDraft ? 'campaigns.conflict.hint' : 'campaigns.conflict.sent.hint')}</p>
      <div class="actions">
        <button
          class="button primary"
          type="button"
          onClick={() => {
            draft.adopt(theirs);
            reload();
          }}
        >
          {t(isDraft ? 'campaigns.conflict.theirs' : 'campaigns.conflict.show')}
        </button>
        {isDraft && (
          <button class="button" type="button" onClick={() => void draft.overwrite(theirs)}>
            {t('campaigns.conflict.mine')}
          </button>
        )}
      </div>
    </Notice>
  );
}
