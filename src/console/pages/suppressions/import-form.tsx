import { useEffect, useRef, useState } from 'preact/hooks';
import { uploadFile } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { FileField } from '../../parts/field.tsx';
import { Outcome, useAction } from '../../parts.tsx';
import { useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { RejectedRows } from '../contacts/import-counts.tsx';

type Imported = DataOf<'/web-setup/suppressions/import', 'post'>;

const SERVICES = { sendgrid: 'SendGrid', mailgun: 'Mailgun', postmark: 'Postmark', ses: 'Amazon SES' };

interface SuppressionImportProps {
  onImported: () => void;
}

/** Imports the blocked addresses of another service, or a list; rows that cannot be imported are shown with the reason. */
export function SuppressionImport({ onImported }: SuppressionImportProps) {
  const { t, number } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [share, setShare] = useState(0);
  const [imports, setImports] = useState(0);
  const [result, setResult] = useState<Imported | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const isRunning = outcome?.running === true;
  useUnsavedWarning(isRunning, t('contacts.import.leave'));

  const upload = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const [format, chosen] = [fields.get('format'), fields.get('file')];
      if (typeof format !== 'string' || !(chosen instanceof File)) return '';
      setResult(null);
      setShare(0);
      abort.current = new AbortController();
      const done = await uploadFile('/web-setup/suppressions/import', {
        parameters: { format },
        type: 'text/csv',
        file: chosen,
        account: accountId,
        signal: abort.current.signal,
        onProgress: setShare,
      });
      setResult(done);
      form.reset();
      setImports((last) => last + 1);
      onImported();
      return t('suppressions.import.done', { count: done.rows - done.rejected, total: done.rows });
    });
  return (
    <>
      <p>{t('suppressions.import.about')}</p>
      <form
        aria-label={t('suppressions.import')}
        onSubmit={(event) => {
          event.preventDefault();
          void upload(event.currentTarget);
        }}
      >
        <FileField
          // Without the file that was imported.
          key={imports}
          label={t('contacts.import.file')}
          name="file"
          accept=".csv,.tsv,.txt,text/csv,text/plain"
          isRequired
          isDisabled={isRunning}
        />
        <label class="field">
          {t('suppressions.import.format')}
          <select class="select" name="format">
            <option value="auto">{t('suppressions.import.auto')}</option>
            {Object.entries(SERVICES).map(([name, service]) => (
              <option value={name} key={name}>
                {service}
              </option>
            ))}
            <option value="plain">{t('suppressions.import.plain')}</option>
          </select>
        </label>
        <div class="actions">
          <button class="button primary" type="submit" disabled={isRunning}>
            {t('contacts.import.now')}
          </button>
        </div>
      </form>
      {isRunning && <progress aria-label={t('suppressions.import.progress')} max={1} value={share} />}
      <Outcome of={outcome} />
      {result !== null && (
        <>
          <FactList
            facts={[
              [t('suppressions.import.created'), number(result.created)],
              [t('suppressions.import.unchanged'), number(result.unchanged)],
              [t('contacts.import.rejected'), number(result.rejected)],
            ]}
          />
          <RejectedRows of={result} />
        </>
      )}
    </>
  );
}
