import { useEffect } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Card, Chip, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { HYGIENE_KINDS, type HygieneKind } from './import-counts.tsx';
import { SunsetCard } from './sunset.tsx';

const RUNS = '/web-setup/contacts/hygiene';
const FINDINGS = '/web-setup/contacts/hygiene/{hygieneId}/findings';
const REREAD_MS = 2000;

type Run = DataOf<typeof RUNS>['runs'][number];

/** The newest examination of the addresses of all contacts, and what it found. */
export function HygienePage() {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const { location } = useNavigation();
  const data = useOperation(RUNS);
  const { outcome, run } = useAction();
  const newest = data.value?.runs[0];
  const isUnfinished = newest !== undefined && newest.finishedAt === null;
  useEffect(() => {
    if (!isUnfinished) return undefined;
    const timer = window.setInterval(() => {
      if (!document.hidden) data.reload();
    }, REREAD_MS);
    return () => window.clearInterval(timer);
  }, [isUnfinished, data.reload]);
  const start = () =>
    run(async () => {
      await operate('post', RUNS, { account: accountId, body: {} });
      data.reload();
      return '';
    });
  const kind = HYGIENE_KINDS.find((each) => each === location.query['kind']);
  return (
    <Page
      title={t('contacts.hygiene.check')}
      chip={
        newest !== undefined && (
          <Chip kind={isUnfinished ? 'info' : newest.status === 'completed' ? 'ok' : 'idle'}>
            {t(`contacts.import.status.${newest.status}`)}
          </Chip>
        )
      }
      actions={
        may('examineContacts') && (
          <Button
            kind="primary"
            label={t('contacts.hygiene.check')}
            isBusy={outcome?.running === true}
            isDisabled={isUnfinished}
            onClick={() => void start()}
          />
        )
      }
      curl={addressOf(RUNS)}
    >
      {outcome?.failed === true && <Outcome of={outcome} />}
      <Loaded data={data}>
        {() =>
          newest === undefined ? (
            <Empty title={t('contacts.hygiene.none')} icon="circle-check" />
          ) : (
            <>
              <Counts of={newest} />
              {kind !== undefined && (
                <Findings key={`${newest.hygieneId} ${kind}`} run={newest} kind={kind} />
              )}
            </>
          )
        }
      </Loaded>
      <SunsetCard />
    </Page>
  );
}

function Counts({ of: { counts } }: { of: Run }) {
  const { t, number } = useTexts();
  const { href } = useNavigation();
  return (
    <Card title={t('contacts.hygiene')}>
      <Table
        label={t('contacts.hygiene')}
        isList
        heads={[t('suppressions.reason'), { text: t('page.contacts'), end: true }]}
      >
        {HYGIENE_KINDS.map((kind) => (
          <tr key={kind}>
            <th scope="row">
              {counts[kind] === 0 ? (
                t(`contacts.hygiene.${kind}`)
              ) : (
                <a href={href('contacts/hygiene', { kind })}>{t(`contacts.hygiene.${kind}`)}</a>
              )}
            </th>
            <td class="aside end">{number(counts[kind])}</td>
          </tr>
        ))}
      </Table>
      <div class="card-body">
        <p class="small">
          {t('contacts.hygiene.examined', { examined: counts.examined, unchecked: counts.unchecked })}
        </p>
      </div>
    </Card>
  );
}

function Findings({ run, kind }: { run: Run; kind: HygieneKind }) {
  const { t, named } = useTexts();
  const { location, href } = useNavigation();
  const list = useOperation(FINDINGS, {
    hygieneId: run.hygieneId,
    kind,
    limit: 50,
    lastKey: location.query['lastKey'],
  });
  return (
    <Card title={t(`contacts.hygiene.${kind}`)}>
      <Loaded data={list} isList>
        {({ findings, nextKey }) => (
          <>
            <Table
              label={t(`contacts.hygiene.${kind}`)}
              isList
              heads={[t('signIn.email'), t('contacts.evidence')]}
            >
              {findings.map((each) => (
                <tr key={each.contactIdentifier}>
                  <th scope="row">
                    <a href={href(`contacts/${encodeURIComponent(each.contactIdentifier)}`)}>{each.email}</a>
                  </th>
                  <td class="second">
                    {each.duplicateOf ??
                      (each.detail === undefined ? '' : named('contacts.hygiene.detail', each.detail))}
                  </td>
                </tr>
              ))}
            </Table>
            <Pager path="contacts/hygiene" filters={{ kind }} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Card>
  );
}
