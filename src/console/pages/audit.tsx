import type { ListedRecord } from '../../http/console/audit-routes.ts';
import type { PresentedPerson } from '../../http/console/session-routes.ts';
import { saveExport } from '../api.ts';
import { useConsoleData, useRefresh } from '../data.ts';
import { addressOf } from '../operations.ts';
import { Icon } from '../parts/icon/icon.tsx';
import { ListFilters } from '../parts/list-filters.tsx';
import { LiveRows } from '../parts/live-rows.tsx';
import { ScopeChoice, useScope } from '../parts/scope.tsx';
import { Denied, Empty, Loaded, Outcome, Page, Status, Table, useAction } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

interface AuditList {
  records: ListedRecord[];
  next: number | null;
}

/** The audit log: the operations of people, with those that were denied. */
export function AuditPage() {
  const { t } = useTexts();
  const { has } = useMember();
  return (
    <Page title={t('page.audit')} question={t('audit.question')}>
      <ScopeChoice path="audit" />
      {has('people') ? <AuditLog /> : <Denied permission="people" />}
    </Page>
  );
}

function AuditLog() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { account, isInstallation } = useScope();
  const { scope, personId, before } = location.query;
  const path = addressOf('/console/audit', { limit: '50', personId, before });
  const list = useConsoleData<AuditList>(path, account);
  useRefresh(list.reload);
  const { outcome, run } = useAction();
  const save = (format: 'csv' | 'ndjson') =>
    run(async () => {
      const file = `audit-log.${format}`;
      await saveExport(addressOf('/console/audit/export', { format, account }), file);
      return t('messages.content.saved', { file });
    });
  const exported = (format: 'csv' | 'ndjson') => (
    <button
      class="button"
      type="button"
      data-export
      aria-label={t('audit.export', { format: format.toUpperCase() })}
      title={t('audit.export', { format: format.toUpperCase() })}
      disabled={outcome?.running === true}
      onClick={() => void save(format)}
    >
      <Icon name="download" />
      {format.toUpperCase()}
    </button>
  );
  return (
    <>
      <Outcome of={outcome} />
      <div class="card">
        <ListFilters
          path="audit"
          query={{ scope, personId }}
          {...(isInstallation ? { isInstallation } : {})}
          filters={[]}
          onChange={(query) => go(href('audit', { scope, ...query }))}
          end={
            <div class="actions">
              {exported('csv')}
              {exported('ndjson')}
            </div>
          }
        >
          <PersonFilter key={account ?? ''} account={account} scope={scope} personId={personId} />
        </ListFilters>
        <Loaded data={list} isList>
          {({ records, next }, isStale) => (
            <>
              {records.length === 0 ? (
                <Empty title={t(next === null ? 'audit.empty' : 'messages.partial')} icon="scroll-text">
                  <p>{t('audit.empty.hint')}</p>
                </Empty>
              ) : (
                <LiveRows of={`${account} ${path}`} isStale={isStale} rows={records} keyOf={({ seq }) => seq}>
                  {(rows) => <Records records={rows} />}
                </LiveRows>
              )}
              {(before !== undefined || next !== null) && (
                <p class="actions pager">
                  {before !== undefined && (
                    <a class="button" href={href('audit', { scope, personId })}>
                      {t('app.first')}
                    </a>
                  )}
                  {next !== null && (
                    <a class="button" href={href('audit', { scope, personId, before: String(next) })}>
                      {t('app.older')}
                    </a>
                  )}
                </p>
              )}
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}

function Records({ records }: { records: readonly ListedRecord[] }) {
  const { t, time, named } = useTexts();
  return (
    <Table
      label={t('page.audit')}
      isList
      heads={[
        t('audit.operation'),
        t('people.person'),
        t('audit.target'),
        t('audit.outcome'),
        t('audit.address'),
        { text: t('audit.time'), end: true },
      ]}
    >
      {records.map(({ seq, at, email, operation, summary, target, outcome, detail, address }) => (
        <tr key={seq}>
          <th scope="row">
            <span>{named('operation', operation, summary)}</span>
            <p class="small value">{operation}</p>
          </th>
          <td class="second">{email || t('audit.nobody')}</td>
          <td class="value small">
            {Object.entries(target)
              .map(([name, value]) => `${name}: ${value}`)
              .join('\n')}
          </td>
          <td class="aside">
            <Status name={outcome} prefix="audit.outcome" />
            {detail !== '' && <p class="small">{detail}</p>}
          </td>
          <td>{address}</td>
          <td class="when">
            <time dateTime={at}>{time(at)}</time>
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface PersonFilterProps {
  account: string | undefined;
  scope: string | undefined;
  personId: string | undefined;
}

function PersonFilter({ account, scope, personId }: PersonFilterProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const data = useConsoleData<{ people: PresentedPerson[] }>('/console/people', account);
  const people = data.value?.people ?? [];
  // Operators and former members are in the log of an account, too.
  const isListed = personId === undefined || people.some(({ id }) => id === personId);
  return (
    <select
      class="select"
      aria-label={t('people.person')}
      onChange={({ currentTarget: { value } }) =>
        go(href('audit', { scope, personId: value === '' ? undefined : value }))
      }
    >
      <option value="">{t('audit.everyone')}</option>
      {!isListed && (
        <option value={personId} selected>
          {personId}
        </option>
      )}
      {people.map(({ id, email }) => (
        <option value={id} key={id} selected={id === personId}>
          {email}
        </option>
      ))}
    </select>
  );
}
