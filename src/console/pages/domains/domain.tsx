import { useEffect, useState } from 'preact/hooks';
import type * as z from 'zod';
import type { dnsRecord, recordsOfDomain, verified } from '../../../http/api/domains/domain-schemas.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Confirmed, Copy, Loaded, Outcome, Page, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { DmarcPath } from './dmarc-path.tsx';

type DnsRecord = z.output<typeof dnsRecord>;
type Verification = z.output<typeof verified>;

const RECHECK_MS = 30_000;

/** A domain: what to publish, what was found, and what to change. */
export function DomainPage({ domainId }: { domainId: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { accountId, may } = useMember();
  const path = `/web-setup/domains/${encodeURIComponent(domainId)}`;
  const data = useData<z.output<typeof recordsOfDomain>>(`${path}/dns-records`);
  const [checks, setChecks] = useState<Verification['checks'] | null>(null);
  const { outcome, run } = useAction();
  const post = <T,>(verb: string) => callApi<T>(`${path}/${verb}`, { method: 'POST', account: accountId });
  const verify = async () => {
    const result = await post<Verification>('verify');
    setChecks(result.checks);
    data.reload();
    return result.message;
  };
  const mayVerify = may('verifyDomain');
  const isPending = data.value !== null && data.value.status !== 'SUCCESS';
  useEffect(() => {
    if (!mayVerify || !isPending) return undefined;
    // The result of an automatic check is in the table; a failed one is repeated.
    const timer = window.setInterval(() => void verify().catch(() => {}), RECHECK_MS);
    return () => window.clearInterval(timer);
  }, [mayVerify, isPending, path]);

  return (
    <Page title={data.value?.domain ?? t('page.domains')} curl={`${path}/dns-records`}>
      <p>
        <a href={href('domains')}>{t('app.back')}</a>
      </p>
      <Loaded data={data}>
        {(domain) => (
          <>
            <p>
              <Status name={domain.status} />
            </p>
            <div class="actions">
              {mayVerify && (
                <button
                  type="button"
                  class="primary"
                  disabled={outcome?.running}
                  onClick={() => void run(verify)}
                >
                  {t(outcome?.running ? 'domains.verifying' : 'domains.verify')}
                </button>
              )}
              <a
                class="button"
                download={`${domain.domain}.zone`}
                href={`data:text/plain;charset=utf-8,${encodeURIComponent(zoneFile(domain))}`}
              >
                {t('domains.zone')}
              </a>
              {may('rotateDomainDkim') && (
                <Confirmed
                  label={t('domains.rotate')}
                  question={t('domains.rotate.confirm', { domain: domain.domain })}
                  action={() =>
                    run(async () => {
                      const { message } = await post<{ message: string }>('rotate-dkim');
                      data.reload();
                      return message;
                    })
                  }
                />
              )}
            </div>
            <Outcome of={outcome} />
            {mayVerify && isPending && <p class="small">{t('domains.recheck')}</p>}
            {checks !== null && <Checks checks={checks} />}
            <Records title={t('domains.records')} records={domain.dnsRecords} />
            {domain.recommendedDnsRecords.length > 0 && (
              <Records title={t('domains.recommended')} records={domain.recommendedDnsRecords} />
            )}
            {!isPending && <DmarcPath domainId={domainId} records={domain.dnsRecords} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Checks({ checks }: { checks: Verification['checks'] }) {
  const { t } = useTexts();
  return (
    <>
      <h2>{t('domains.checks')}</h2>
      <Table
        label={t('domains.checks')}
        heads={[
          t('domains.check'),
          t('domains.result'),
          t('domains.expected'),
          t('domains.found'),
          t('domains.hint'),
        ]}
      >
        {checks.map(({ check, result, expected, found, hint }) => (
          <tr key={check}>
            <th scope="row">{check}</th>
            <td>
              <Status name={result} prefix="domains.result" />
            </td>
            <td class="value">
              {expected}{' '}
              {result !== 'ok' && (
                <Copy
                  text={recordValue(expected)}
                  label={t('domains.copyOf', { what: t('domains.expected'), name: check })}
                />
              )}
            </td>
            <td class="value">{found ?? t('domains.nothing')}</td>
            <td>{hint}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** What a DNS host asks for: a check writes the type before values other than TXT, and the priority of an MX record. */
const recordValue = (expected: string) => expected.replace(/^(?:CNAME|MX \d+) /, '');

function Records({ title, records }: { title: string; records: DnsRecord[] }) {
  const { t } = useTexts();
  const copyOf = (what: string, name: string) => t('domains.copyOf', { what, name });
  return (
    <>
      <h2>{title}</h2>
      <Table
        label={title}
        heads={[t('domains.type'), t('domains.recordName'), t('domains.value'), t('domains.purpose')]}
      >
        {records.map(({ type, name, value, priority, purpose, description }) => (
          <tr key={`${type} ${name} ${value}`}>
            <th scope="row">{type}</th>
            <td class="value">
              {name} <Copy text={name} label={copyOf(t('domains.recordName'), `${type} ${name}`)} />
            </td>
            <td class="value">
              {priority === undefined ? '' : `${priority} `}
              {value} <Copy text={value} label={copyOf(t('domains.value'), `${type} ${name}`)} />
            </td>
            <td>
              {purpose}
              <p class="small">{description}</p>
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** The records in the format of zone files (RFC 1035, section 5). */
function zoneFile(domain: { dnsRecords: DnsRecord[]; recommendedDnsRecords: DnsRecord[] }): string {
  return [...domain.dnsRecords, ...domain.recommendedDnsRecords]
    .map(({ type, name, value, priority, ttl = 3600, chunks }) => {
      const strings = (chunks ?? [value]).map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(' ');
      const target = value.endsWith('.') ? value : `${value}.`;
      const data = type === 'TXT' ? strings : type === 'MX' ? `${priority ?? 10} ${target}` : target;
      return `${name}. ${ttl} IN ${type} ${data}\n`;
    })
    .join('');
}
