import type * as z from 'zod';
import type { dnsRecord } from '../../../http/api/domains/domain-schemas.ts';
import { useData } from '../../data.ts';
import { Copy, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { percent, type ShownReports } from '../reports/report-data.ts';

/** Days with reports, and messages in them, before a stricter policy is recommended. */
const MIN_DAYS = 14;
const MIN_MESSAGES = 100;
/** Share of the messages that must pass: the others would be refused. */
const MIN_PASSED = 0.99;
const SHOWN_SOURCES = 5;

interface DmarcPathProps {
  domainId: string;
  records: z.output<typeof dnsRecord>[];
}

/** Which DMARC policy receivers find, whether a stricter one is safe according to their reports, and its record. */
export function DmarcPath({ domainId, records }: DmarcPathProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const data = useData<ShownReports>(`/web-setup/domains/${encodeURIComponent(domainId)}/reports`);
  const record = records.find(({ type, value }) => type === 'TXT' && value.startsWith('v=DMARC1'));
  return (
    <>
      <h2>{t('domains.dmarc')}</h2>
      <Loaded data={data}>
        {({ dmarc: { messages, passed, days, sources, reports } }) => {
          const policy = reports[0]?.policy ?? null;
          const failing = sources.filter((each) => each.passed < each.messages);
          const isSafe =
            days.length >= MIN_DAYS && messages >= MIN_MESSAGES && passed / messages >= MIN_PASSED;
          const step =
            policy === null
              ? 'noReports'
              : policy === 'reject'
                ? 'complete'
                : policy === 'none'
                  ? 'none'
                  : isSafe
                    ? 'next'
                    : 'wait';
          return (
            <>
              {policy !== null && (
                <p>
                  {t('domains.dmarc.now', { policy, days: days.length, messages })}{' '}
                  {t('domains.dmarc.passed', { share: percent(passed, messages) })}
                </p>
              )}
              <p>
                {t(`domains.dmarc.${step}`, {
                  days: MIN_DAYS,
                  messages: MIN_MESSAGES,
                  share: `${100 * MIN_PASSED} %`,
                })}
              </p>
              {(step === 'next' || step === 'none') && record !== undefined && (
                <NextRecord
                  name={record.name}
                  value={record.value.replace(/\bp=\w+/, step === 'next' ? 'p=reject' : 'p=quarantine')}
                />
              )}
              {failing.length > 0 && (
                <>
                  <p>{t('domains.dmarc.failing')}</p>
                  <ul>
                    {failing.slice(0, SHOWN_SOURCES).map((each) => (
                      <li key={each.sourceIp}>
                        {t('domains.dmarc.source', {
                          address: each.sourceIp,
                          failed: each.messages - each.passed,
                          messages: each.messages,
                        })}
                      </li>
                    ))}
                  </ul>
                </>
              )}
              <p>
                <a href={href('reports', { domain: domainId })}>{t('domains.dmarc.reports')}</a>
              </p>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function NextRecord({ name, value }: { name: string; value: string }) {
  const { t } = useTexts();
  return (
    <dl>
      <div>
        <dt>{t('domains.recordName')}</dt>
        <dd class="value">
          {name}{' '}
          <Copy
            text={name}
            label={t('domains.copyOf', { what: t('domains.recordName'), name: 'p=reject' })}
          />
        </dd>
      </div>
      <div>
        <dt>{t('domains.value')}</dt>
        <dd class="value">
          {value}{' '}
          <Copy text={value} label={t('domains.copyOf', { what: t('domains.value'), name: 'p=reject' })} />
        </dd>
      </div>
    </dl>
  );
}
