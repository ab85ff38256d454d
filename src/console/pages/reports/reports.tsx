import { useOperation } from '../../data.ts';
import { addressOf, type ParametersOf } from '../../operations.ts';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Empty, Loaded, Notice, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { DmarcReports } from './dmarc.tsx';
import { Providers, ReputationPeriod, reputationAddress } from './providers.tsx';
import { TlsReports } from './tls.tsx';
import { Volume } from './volume.tsx';

const PATH = '/web-setup/domains/{domainId}/reports';

type ReportParameters = ParametersOf<typeof PATH>;

const TABS = ['providers', 'dmarc', 'tls', 'volume'] as const;
type Tab = (typeof TABS)[number];
const PERIODS = [7, 30, 90, 365] as const;
type Period = (typeof PERIODS)[number];
const DEFAULT_PERIOD = 30;
/** Which reports are shown: all, or by whether their organization has signed them. */
const SHOWN = ['all', 'true', 'false'] as const;
type Shown = (typeof SHOWN)[number];
const DAY_MS = 86_400_000;

/** What providers do with the mail, and reports of receivers about domains. Domain, period and tab are in the address. */
export function ReportsPage() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const list = useOperation('/web-setup/domains');
  const { domain: domainId } = location.query;
  const days = PERIODS.find((period) => String(period) === location.query['days']) ?? DEFAULT_PERIOD;
  // The former address of the page, without the first tab.
  const first = location.segments[0] === 'reports' ? 'dmarc' : 'providers';
  const tab = TABS.find((name) => name === location.query['tab']) ?? first;
  const shown = SHOWN.find((name) => name === location.query['verified']) ?? 'all';
  const chosen = list.value?.domains.find((each) => each.domainId === domainId) ?? list.value?.domains[0];
  const parameters = chosen === undefined ? undefined : parametersOf(chosen.domainId, days, shown);
  const address = (changed: { domain?: string; days?: string; tab?: Tab; verified?: string }) =>
    href('reputation', {
      domain: domainId,
      days: days === DEFAULT_PERIOD ? undefined : String(days),
      tab: tab === 'providers' ? undefined : tab,
      verified: shown === 'all' ? undefined : shown,
      ...changed,
    });
  return (
    <Page
      title={t('page.reports')}
      question={t('reports.question')}
      {...(parameters === undefined || tab === 'volume'
        ? {}
        : { curl: tab === 'providers' ? reputationAddress(location.query) : addressOf(PATH, parameters) })}
      {...(tab === 'providers' && chosen !== undefined ? { actions: <ReputationPeriod /> } : {})}
    >
      <Loaded data={list}>
        {({ domains }) =>
          chosen === undefined || parameters === undefined ? (
            <Empty title={t('domains.empty')} icon="globe">
              <p>{t('reports.noDomain.hint')}</p>
              <a class="button primary" href={href('domains')}>
                {t('domains.add')}
              </a>
            </Empty>
          ) : (
            <>
              <Tabs
                label={t('page.reports')}
                tabs={TABS.map((name) => ({
                  name: t(`reports.tab.${name}`),
                  address: address({ tab: name }),
                  isCurrent: name === tab,
                }))}
              />
              {tab === 'providers' ? (
                <Providers domains={domains} />
              ) : tab === 'volume' ? (
                <Volume domains={new Map(domains.map((each) => [each.domainId, each.domain]))} />
              ) : (
                <>
                  <div class="card">
                    <FilterBar>
                      <Choice
                        label={t('messages.domain')}
                        chosen={chosen.domainId}
                        options={domains.map((each) => ({
                          value: each.domainId,
                          name: `${each.domain} (${t(`domains.useCase.${each.useCase}`)})`,
                        }))}
                        onChange={(id) => go(address({ domain: id }))}
                      />
                      <Choice
                        label={t('reports.period')}
                        chosen={String(days)}
                        options={PERIODS.map((count) => ({
                          value: String(count),
                          name: t('reports.days', { count }),
                        }))}
                        onChange={(count) => go(address({ days: count }))}
                      />
                      <Choice
                        label={t('reports.shown')}
                        chosen={shown}
                        options={SHOWN.map((name) => ({ value: name, name: t(`reports.shown.${name}`) }))}
                        onChange={(verified) => go(address({ verified }))}
                      />
                    </FilterBar>
                  </div>
                  <Reports of={parameters} tab={tab} />
                </>
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
  label: string;
  chosen: string;
  options: readonly { value: string; name: string }[];
  onChange: (chosen: string) => void;
}

/** What is shown: one of several values, always. */
function Choice({ label, chosen, options, onChange }: ChoiceProps) {
  return (
    <select
      class="select"
      aria-label={label}
      value={chosen}
      onChange={({ currentTarget: { value } }) => onChange(value)}
    >
      {options.map(({ value, name }) => (
        <option value={value} key={value}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Reports({ of, tab }: { of: ReportParameters; tab: 'dmarc' | 'tls' }) {
  const data = useOperation(PATH, of);
  return (
    <Loaded data={data} isList>
      {({ message, dmarc, tls }) =>
        // An account that did not prove control of the domain is shown no reports.
        message !== undefined ? (
          <Notice kind="bad" title={message} />
        ) : tab === 'dmarc' ? (
          <DmarcReports dmarc={dmarc} />
        ) : (
          <TlsReports tls={tls} />
        )
      }
    </Loaded>
  );
}
