import { operate } from '../../api.ts';
import { useOperation, useRefresh } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Confirmed, Loaded, Notice, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ImportCounts } from './import-counts.tsx';
import { type BackgroundImport, ImportStatus } from './import-status.tsx';

const PATH = '/web-setup/contacts/imports/{importId}';

const REFRESH_MS = 1000;

/** An import in the background: its progress, then its result. It continues without this page. */
export function ImportProgressPage({ importId }: { importId: string }) {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const data = useOperation(PATH, { importId });
  const isMoving = data.value !== null && data.value.import.finishedAt === null;
  useRefresh(data.reload, isMoving ? REFRESH_MS : null);
  const of = data.value?.import;
  const cancel = () =>
    run(async () => {
      await operate('post', '/web-setup/contacts/imports/{importId}/cancel', {
        account: accountId,
        parameters: { importId },
      });
      data.reload();
      return t('contacts.import.cancelled');
    });
  return (
    <Page
      title={of?.fileName ?? t('contacts.import')}
      chip={of !== undefined && <ImportStatus name={of.status} />}
      question={
        of === undefined || of.finishedAt === null
          ? t('contacts.import.background')
          : t('contacts.import.finishedAt', { time: time(of.finishedAt) })
      }
      actions={
        <>
          <a class="button" href={href('contacts/import')}>
            {t('contacts.imports')}
          </a>
          {of !== undefined && of.finishedAt === null && may('cancelContactImport') && (
            <Confirmed
              isDanger
              label={t('contacts.import.cancel')}
              question={t('contacts.import.cancelQuestion')}
              action={cancel}
            />
          )}
        </>
      }
      curl={addressOf(PATH, { importId })}
    >
      <Outcome of={outcome} />
      <Loaded data={data}>{({ import: read }) => <Progress of={read} />}</Loaded>
    </Page>
  );
}

function Progress({ of }: { of: BackgroundImport }) {
  const { t } = useTexts();
  return (
    <>
      {of.reason !== null && of.reason !== '' && <Notice kind="bad" title={of.reason} />}
      {of.finishedAt === null && (
        <progress
          aria-label={t('contacts.import.progress')}
          max={Math.max(of.bytes, 1)}
          value={of.bytesRead}
        />
      )}
      <ImportCounts
        of={of}
        ignored={of.ignoredColumns.map((column) => t('contacts.import.ignoredColumn', { column }))}
      />
    </>
  );
}
