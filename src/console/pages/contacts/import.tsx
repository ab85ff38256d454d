import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, uploadFile } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf, type ParametersOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Field, FileField } from '../../parts/field.tsx';
import { Stepper } from '../../parts/stepper.tsx';
import { Card, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ColumnAssignment } from './column-assignment.tsx';
import { type CsvHead, HEAD_BYTES, probableField, readCsvHead } from './csv-head.ts';
import { ImportCounts, type ImportOutcome } from './import-counts.tsx';
import { ImportList } from './import-list.tsx';

const PATH = '/web-setup/contacts/import';

/** The API keeps names up to this length. */
const MAX_FILE_NAME = 255;

const STEPS = ['file', 'columns', 'check'] as const;

/** The file that was chosen. */
interface Chosen {
  file: File;
  /** Null: NDJSON, which has no header. */
  head: CsvHead | null;
}

/** Imports a file of contacts: assign its columns, check it, send it; the import continues without this page. */
export function ContactImportPage() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [fields, setFields] = useState<string[]>([]);
  const [groupId, setGroupId] = useState('');
  const [share, setShare] = useState(0);
  const [result, setResult] = useState<ImportOutcome | null>(null);
  const [isSuppressionFile, setIsSuppressionFile] = useState(false);
  const { outcome, run } = useAction();
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const isRunning = outcome?.running === true;
  useUnsavedWarning(isRunning, t('contacts.import.leave'));
  const groups = useOperation('/web-setup/contacts/subscription-groups');

  const step = chosen === null ? 'file' : result === null ? 'columns' : 'check';
  const choose = (file: File | undefined) =>
    run(async () => {
      setResult(null);
      setIsSuppressionFile(false);
      setChosen(null);
      if (file === undefined) return '';
      const isCsv = !/\.(?:ndjson|jsonl)$/i.test(file.name);
      const head = isCsv ? readCsvHead(await file.slice(0, HEAD_BYTES).arrayBuffer()) : null;
      if (isCsv && head === null) throw new Error(t('contacts.import.noHeader'));
      setFields(head?.columns.map(probableField) ?? []);
      setChosen({ file, head });
      return '';
    });
  const upload = (
    { file, head }: Chosen,
    more: ParametersOf<typeof PATH, 'post'>,
  ): Promise<DataOf<typeof PATH, 'post'> | null> => {
    setResult(null);
    setIsSuppressionFile(false);
    setShare(0);
    const { signal } = (abort.current = new AbortController());
    const parameters = {
      subscriptionGroupId: groupId,
      columns: head === null ? undefined : columnsOf(head, fields),
      ...more,
    };
    return uploadFile(PATH, {
      parameters,
      type: head === null ? 'application/x-ndjson' : 'text/csv',
      file,
      account: accountId,
      signal,
      onProgress: setShare,
    }).catch((error: unknown) => {
      if (signal.aborted) return null;
      setIsSuppressionFile(error instanceof ApiError && error.code === 'SUPPRESSION_FILE');
      throw error;
    });
  };
  const check = (of: Chosen) =>
    run(async () => {
      const checked = await upload(of, { dryRun: 'true' });
      if (checked === null || 'import' in checked) return t('contacts.import.notStored');
      setResult(checked);
      const { rows, rejected } = checked;
      return t('contacts.import.checked', { count: rows - rejected, total: rows });
    });
  const start = (of: Chosen) =>
    run(async () => {
      const fileName = of.file.name.slice(0, MAX_FILE_NAME);
      const started = await upload(of, { background: 'true', fileName });
      if (started === null || !('import' in started)) return t('contacts.import.notStored');
      go(href(`contacts/import/${started.import.importId}`), { discard: true });
      return '';
    });
  return (
    <Page
      title={t('contacts.import')}
      curl={addressOf(PATH, { background: 'true', subscriptionGroupId: groupId })}
      curlBody={{ type: 'text/csv', file: 'contacts.csv' }}
    >
      <Stepper
        label={t('contacts.import')}
        current={STEPS.indexOf(step)}
        steps={STEPS.map((name, index) => ({
          name: t(`contacts.import.step.${name}`),
          isDone: index < STEPS.indexOf(step),
          address: undefined,
        }))}
      />
      <div class="card">
        <div class="card-body">
          <p class="small">{t('contacts.import.about')}</p>
          <FileField
            label={t('contacts.import.file')}
            accept=".csv,.tsv,.txt,.ndjson,.jsonl,text/csv"
            isDisabled={isRunning}
            onChoose={(file) => void choose(file)}
          />
          {chosen === null && <Outcome of={outcome} />}
        </div>
      </div>
      {chosen !== null && chosen.head !== null && (
        <Card title={t('contacts.import.columns')}>
          <ColumnAssignment
            head={chosen.head}
            fields={fields}
            onChange={(next) => {
              setFields(next);
              setResult(null);
            }}
          />
        </Card>
      )}
      {chosen !== null && (
        <Card title={t('contacts.import.step.check')}>
          <div class="card-body">
            <Field label={t('contacts.import.group')} isOptional>
              {(control) => (
                <select
                  {...control}
                  class="select"
                  value={groupId}
                  disabled={isRunning}
                  onChange={({ currentTarget: { value } }) => {
                    setGroupId(value);
                    setResult(null);
                  }}
                >
                  <option value="">{t('contacts.import.noGroup')}</option>
                  {groups.value?.groups.map(({ subscriptionGroupId, name }) => (
                    <option value={subscriptionGroupId} key={subscriptionGroupId}>
                      {name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <div class="actions">
              <Button
                kind={result === null ? 'primary' : 'secondary'}
                label={t('contacts.import.check')}
                isBusy={isRunning && result === null}
                isDisabled={isRunning}
                onClick={() => void check(chosen)}
              />
              <Button
                kind={result === null ? 'secondary' : 'primary'}
                label={t('contacts.import.now')}
                isDisabled={isRunning || result === null}
                onClick={() => void start(chosen)}
              />
              {isRunning && (
                <button class="button" type="button" onClick={() => abort.current?.abort()}>
                  {t('app.cancel')}
                </button>
              )}
            </div>
            {isRunning && <progress aria-label={t('contacts.import.progress')} max={1} value={share} />}
            <Outcome of={outcome} />
            {isSuppressionFile && (
              <p>
                <a href={href('suppressions', { import: 'file' })}>{t('suppressions.import.instead')}</a>
              </p>
            )}
          </div>
        </Card>
      )}
      {result !== null && <ImportCounts of={result} ignored={result.warnings ?? []} />}
      <ImportList />
    </Page>
  );
}

/** The parameter `columns` of the import: every column of the file, so that the result does not depend on their names. */
function columnsOf({ columns }: CsvHead, fields: readonly string[]): string {
  const named = columns.map((column, index) => [column, fields[index] || null]);
  return JSON.stringify(Object.fromEntries(named.filter(([column]) => column !== '')));
}
