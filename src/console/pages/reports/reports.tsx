import { useOperation } from '../../data.ts';
import { addressOf, type DataOf, type ParametersOf } from '../../operations.ts';
import { Empty, Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { DmarcReports } from './dmarc.tsx';
import { TlsReports } from './tls.tsx';
import { Volume } from './volume.tsx';

const PATH = '/web-setup/domains/{domainId}/reports';

type Domain = DataOf<'/web-setup/domains'>['domains'][number];
type ReportParameters = ParametersOf<typeof PATH>;

const TABS = ['dmarc', 'tls', 'volume'] as const;
type Tab = (typeof TABS)[number];
const PERIODS = [7, 30, 90, 365] as const;
type Period = (typeof PERIODS)[number];
const DEFAULT_PERIOD = 30;
/** Which reports are shown: all, or by whether their organization has signed them. */
const SHOWN = ['all', 'true', 'false'] as const;
type Shown = (typeof SHOWN)[number];
const DAY_MS = 86_400_000;

/** Reports of receivers about the account's domains. Domain, period and tab are in the address. */
export function ReportsPage() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const list = useOperation('/web-setup/domains');
  const { domain: domainId } = location.query;
  const days = PERIODS.find((period) => String(period) === location.query['days']) ?? DEFAULT_PERIOD;
  const tab = TABS.find((name) => name === location.query['tab']) ?? 'dmarc';
  const shown = SHOWN.find((name) => name === location.query['verified']) ?? 'all';
  const chosen = list.value?.domains.find((each) => each.domainId === domainId) ?? list.value?.domains[0];
  const parameters = chosen === undefined ? undefined : parametersOf(chosen.domainId, days, shown);
  const address = (changed: { domain?: string; days?: string; tab?: Tab; verified?: string }) =>
    href('reports', {
      domain: domainId,
      days: days === DEFAULT_PERIOD ? undefined : String(days),
      tab: tab === 'dmarc' ? undefined : tab,
      verified: shown === 'all' ? undefined : shown,
      ...changed,
    });
  return (
    <Page
      title={t('page.reports')}
      question={t('reports.question')}
      {...(parameters === undefined ? {} : { curl: addressOf(PATH, parameters) })}
    >
      <Loaded data={list}>
        {({ domains }) =>
          chosen === undefined || parameters === undefined ? (
            <Empty title={t('domains.empty')}>
              <p>{t('reports.noDomain.hint')}</p>
              <a class="button primary" href={href('domains')}>
                {t('domains.add')}
              </a>
            </Empty>
          ) : (
            <>
              <Choice
                domains={domains}
                chosen={chosen}
                days={days}
                shown={shown}
                onDomain={(id) => go(address({ domain: id }))}
                onShown={(verified) => go(address({ verified }))}
                onDays={(count) => go(address({ days: count }))}
              />
              <nav class="actions" aria-label={t('page.reports')}>
                {TABS.map((name) => (
                  <a
                    class="button"
                    key={name}
                    href={address({ tab: name })}
                    aria-current={name === tab ? 'page' : undefined}
                  >
                    {t(`reports.tab.${name}`)}
                  </a>
                ))}
              </nav>
              {tab === 'volume' ? (
                <Volume domains={new Map(domains.map((each) => [each.domainId, each.domain]))} />
              ) : (
                <Reports of={parameters} tab={tab} />
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

/** Which reports of a domain are read. They are the same all day: the start is at midnight. */
function parametersOf(domainId: string, days: Period, shown: Shown): ReportParameters {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  return {
    domainId,
    from: new Date(today - days * DAY_MS).toISOString(),
    verified: shown === 'all' ? undefined : shown,
  };
}

interface ChoiceProps {
  domains: readonly Domain[];
  chosen: Domain;
  days: Period;
  shown: Shown;
  onDomain: (domainId: string) => void;
  onDays: (days: string) => void;
  onShown: (shown: string) => void;
}

function Choice({ domains, chosen, days, shown, onDomain, onDays, onShown }: ChoiceProps) {
  const { t } = useTexts();
  return (
    <div class="search">
      <label class="field">
        {t('messages.domain')}
        <select
          class="select"
          value={chosen.domainId}
          onChange={(event) => onDomain(event.currentTarget.value)}
        >
          {domains.map(({ domainId, domain, useCase }) => (
            <option value={domainId} key={domainId}>
              {domain} ({t(`domains.useCase.${useCase}`)})
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        {t('reports.period')}
        <select class="select" value={String(days)} onChange={(event) => onDays(event.currentTarget.value)}>
          {PERIODS.map((period) => (
            <option value={String(period)} key={period}>
              {t('reports.days', { count: period })}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        {t('reports.shown')}
        <select class="select" value={shown} onChange={(event) => onShown(event.currentTarget.value)}>
          {SHOWN.map((name) => (
            <option value={name} key={name}>
              {t(`reports.shown.${name}`)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Reports({ of, tab }: { of: ReportParameters; tab: 'dmarc' | 'tls' }) {
  const data = useOperation(PATH, of);
  return (
    <Loaded data={data}>
      {(reports) => (
        <>
          {reports.message !== undefined && <p class="notice bad">{reports.message}</p>}
          {tab === 'dmarc' ? (
            <DmarcReports dmarc={reports.dmarc} isProven={reports.message === undefined} />
          ) : (
            <TlsReports tls={reports.tls} isProven={reports.message === undefined} />
          )}
        </>
      )}
    </Loaded>
  );
}
