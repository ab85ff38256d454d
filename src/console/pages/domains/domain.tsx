import { useEffect } from 'preact/hooks';
import type * as z from 'zod';
import type { lastCheck, verified } from '../../../http/api/domains/domain-schemas.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Loaded, Outcome, Page, Status, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { DkimKeys } from './dkim-keys.tsx';
import { DmarcPath } from './dmarc-path.tsx';
import { FirstMessage } from './first-message.tsx';
import { CheckedRecords, RecordsToPublish } from './records.tsx';
import { DomainSettings } from './settings.tsx';
import { STEPS, Steps, TABS, type View } from './steps.tsx';
import './domain.css';

export type CheckedDomain = z.output<typeof lastCheck>;

const RECHECK_MS = 30_000;

/** A domain: the steps until its first message, and what can be changed later. The view is in the address (`step`). */
export function DomainPage({ domainId }: { domainId: string }) {
  const { t, time } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, may } = useMember();
  const path = `/web-setup/domains/${encodeURIComponent(domainId)}`;
  const data = useData<CheckedDomain>(`${path}/last-check`);
  const { outcome, run } = useAction();
  const domain = data.value;
  const mayVerify = may('verifyDomain');
  const isPending = domain !== null && domain.status !== 'SUCCESS';
  const verify = async () => {
    const { status } = await callApi<z.output<typeof verified>>(`${path}/verify`, {
      method: 'POST',
      account: accountId,
    });
    data.reload();
    return status === 'SUCCESS'
      ? t('domains.verified', { domain: domain?.domain ?? '' })
      : t('domains.notVerified');
  };
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = window.setInterval(() => {
      if (document.hidden) return;
      // The daemon checks, too: without permission, its results are shown. A failed check is repeated.
      if (mayVerify) void verify().catch(() => {});
      else data.reload();
    }, RECHECK_MS);
    return () => window.clearInterval(timer);
  }, [mayVerify, isPending, path, data.reload]);

  const view = viewOf(location.query['step'], domain);
  const address = (step: View) => href(`domains/${encodeURIComponent(domainId)}`, { step });
  return (
    <Page
      title={domain?.domain ?? t('page.domains')}
      question={t('domains.question')}
      curl={view === 'dmarc' ? `${path}/dmarc-path` : `${path}/last-check`}
    >
      <p>
        <a href={href('domains')}>{t('app.back')}</a>
      </p>
      <Loaded data={data}>
        {(loaded) => (
          <>
            <p>
              <Status name={loaded.status} /> {t(`domains.useCase.${loaded.useCase}`)}
            </p>
            <Steps domainId={domainId} current={view} status={loaded.status} />
            {view !== 'message' && view !== 'settings' && (
              <>
                <div class="actions">
                  {mayVerify && (
                    <button
                      type="button"
                      class="button primary"
                      disabled={outcome?.running}
                      onClick={() => void run(verify).then(() => view === 'records' && go(address('check')))}
                    >
                      {t(outcome?.running ? 'domains.verifying' : 'domains.verify')}
                    </button>
                  )}
                  <span class="small">
                    {t('domains.checked')}:{' '}
                    {loaded.checkedAt === null ? t('domains.never') : time(loaded.checkedAt)}
                  </span>
                </div>
                <Outcome of={outcome} />
                {isPending && <p class="small">{t('domains.recheck')}</p>}
              </>
            )}
            {view === 'records' && (
              <>
                <RecordsToPublish domain={loaded} />
                <Next step="check" href={address('check')} />
              </>
            )}
            {view === 'check' && (
              <>
                <CheckedRecords domain={loaded} />
                {loaded.status === 'SUCCESS' ? (
                  <Next step="message" href={address('message')} />
                ) : (
                  <a class="button" href={address('records')}>
                    {t('domains.step.records')}
                  </a>
                )}
              </>
            )}
            {view === 'message' && <FirstMessage domain={loaded} check={address('check')} />}
            {view === 'dmarc' && <DmarcPath key={loaded.checkedAt} path={path} domainId={domainId} />}
            {view === 'dkim' && <DkimKeys domain={loaded} path={path} reload={data.reload} />}
            {view === 'settings' && (
              <DomainSettings
                key={loaded.trackingDomain ?? ''}
                domain={loaded}
                path={path}
                reload={data.reload}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The view in the address; otherwise the step that is next. */
function viewOf(step: string | undefined, domain: CheckedDomain | null): View {
  const chosen = [...STEPS, ...TABS].find((name) => name === step && name !== 'add');
  return chosen ?? (domain === null || domain.checkedAt === null ? 'records' : 'check');
}

function Next({ step, href }: { step: 'check' | 'message'; href: string }) {
  const { t } = useTexts();
  return (
    <p>
      <a class="button" href={href}>
        {t('domains.next', { step: t(`domains.step.${step}`) })}
      </a>
    </p>
  );
}
