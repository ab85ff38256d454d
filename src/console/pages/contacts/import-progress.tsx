import { operate } from '../../api.ts';
import { useOperation, useRefresh } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Confirmed, Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ImportCounts } from './import-counts.tsx';
import { type BackgroundImport, ImportStatus } from './import-status.tsx';

const PATH = '/web-setup/contacts/imports/{importId}';

const REFRESH_MS = 1000;

/** An import in the background: its progress, then its result. It continues without this page. */
export function ImportProgressPage({ importId }: { importId: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const data = useOperation(PATH, { importId });
  const isMoving = data.value !== null && data.value.import.finishedAt === null;
  useRefresh(data.reload, isMoving ? REFRESH_MS : null);
  return (
    <Page
      title={data.value?.import.fileName ?? t('contacts.import')}
      question={t('contacts.import.progressQuestion')}
      curl={addressOf(PATH, { importId })}
    >
      <p>
        <a href={href('contacts/import')}>{t('contacts.imports')}</a>
      </p>
      <Loaded data={data}>{({ import: of }) => <Progress of={of} reload={data.reload} />}</Loaded>
    </Page>
  );
}

function Progress({ of, reload }: { of: BackgroundImport; reload: () => void }) {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const cancel = () =>
    run(async () => {
      await operate('post', '/web-setup/contacts/imports/{importId}/cancel', {
        account: accountId,
        parameters: { importId: of.importId },
      });
      reload();
      return t('contacts.import.cancelled');
    });
  return (
    <>
      <p>
        <ImportStatus name={of.status} /> {of.reason}
      </p>
      {of.finishedAt === null ? (
        <>
          <progress
            aria-label={t('contacts.import.progress')}
            max={Math.max(of.bytes, 1)}
            value={of.bytesRead}
          />
          <p class="small">{t('contacts.import.background')}</p>
          {may('cancelContactImport') && (
            <Confirmed
              isDanger
              label={t('contacts.import.cancel')}
              question={t('contacts.import.cancelQuestion')}
              action={cancel}
            />
          )}
        </>
      ) : (
        <p>
          {t('contacts.import.finishedAt', { time: time(of.finishedAt) })}{' '}
          <a href={href('contacts')}>{t('page.contacts')}</a>
        </p>
      )}
      <Outcome of={outcome} />
      <ImportCounts
        of={of}
        ignored={of.ignoredColumns.map((column) => t('contacts.import.ignoredColumn', { column }))}
      />
    </>
  );
}
