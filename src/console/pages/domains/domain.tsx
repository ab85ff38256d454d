import { useEffect } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Time } from '../../parts/time.tsx';
import { Loaded, Outcome, Page, Status, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { DkimKeys } from './dkim-keys.tsx';
import { DMARC_PATH, DmarcPath } from './dmarc-path.tsx';
import { FirstMessage } from './first-message.tsx';
import { RecordList } from './records.tsx';
import { DomainSettings } from './settings.tsx';
import { STEPS, Steps, TABS, type View } from './steps.tsx';
import { zoneFile } from './zone-file.ts';
import './domain.css';

const LAST_CHECK = '/web-setup/domains/{domainId}/last-check';

export type CheckedDomain = DataOf<typeof LAST_CHECK>;

const RECHECK_MS = 30_000;

/** A domain: the steps until its first message, and what can be changed later. The view is in the address (`step`). */
export function DomainPage({ domainId }: { domainId: string }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, may } = useMember();
  const data = useOperation(LAST_CHECK, { domainId });
  const { outcome, run } = useAction();
  const domain = data.value;
  const mayVerify = may('verifyDomain');
  const isPending = domain !== null && domain.status !== 'SUCCESS';
  const verify = async () => {
    const { status } = await operate('post', '/web-setup/domains/{domainId}/verify', {
      account: accountId,
      parameters: { domainId },
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
  }, [mayVerify, isPending, domainId, data.reload]);

  const view = viewOf(location.query['step'], domain);
  const address = (step: View) => href(`domains/${encodeURIComponent(domainId)}`, { step });
  const isAboutRecords = view === 'records' || view === 'check' || view === 'dmarc' || view === 'dkim';
  const check = () => run(verify).then(() => view === 'records' && go(address('check')));
  return (
    <Page
      title={domain?.domain ?? t('page.domains')}
      chip={domain !== null && <Status name={domain.status} />}
      question={domain === null ? undefined : t(`domains.useCase.${domain.useCase}`)}
      curl={addressOf(view === 'dmarc' ? DMARC_PATH : LAST_CHECK, { domainId })}
      actions={
        domain !== null &&
        isAboutRecords && (
          <>
            <a
              class="button"
              download={`${domain.domain}.zone`}
              href={`data:text/plain;charset=utf-8,${encodeURIComponent(zoneFile(domain.records))}`}
            >
              <Icon name="download" /> {t('domains.zone')}
            </a>
            {mayVerify && (
              <button
                type="button"
                class="button primary"
                disabled={outcome?.running}
                onClick={() => void check()}
              >
                {t(outcome?.running ? 'domains.verifying' : 'domains.verify')}
              </button>
            )}
          </>
        )
      }
    >
      <Loaded data={data}>
        {(loaded) => (
          <>
            <Steps domainId={domainId} current={view} status={loaded.status} />
            {isAboutRecords && (
              <>
                <Outcome of={outcome} />
                <p class="small">
                  {t('domains.checked')}:{' '}
                  {loaded.checkedAt === null ? t('domains.never') : <Time at={loaded.checkedAt} />}
                  {isPending && <> · {t('domains.recheck')}</>}
                </p>
              </>
            )}
            {view === 'records' && (
              <>
                <RecordList domain={loaded} />
                <Next step="check" href={address('check')} />
              </>
            )}
            {view === 'check' && (
              <>
                <RecordList domain={loaded} isChecked />
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
            {view === 'dmarc' && <DmarcPath key={loaded.checkedAt} domainId={domainId} />}
            {view === 'dkim' && <DkimKeys domain={loaded} reload={data.reload} />}
            {view === 'settings' && (
              <DomainSettings
                key={[loaded.trackingDomain, loaded.enableOpenTracking, loaded.enableClickTracking].join(' ')}
                domain={loaded}
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
