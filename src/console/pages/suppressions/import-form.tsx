import { useEffect, useRef, useState } from 'preact/hooks';
import { uploadFile } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { RejectedRows } from '../contacts/import-counts.tsx';

type Imported = DataOf<'/web-setup/suppressions/import', 'post'>;

const SERVICES = { sendgrid: 'SendGrid', mailgun: 'Mailgun', postmark: 'Postmark', ses: 'Amazon SES' };

interface SuppressionImportProps {
  /** Whether the page was opened to import a file. */
  isAsked: boolean;
  onImported: () => void;
}

/** Imports the blocked addresses of another service, or a list; rows that cannot be imported are shown with the reason. */
export function SuppressionImport({ isAsked, onImported }: SuppressionImportProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [share, setShare] = useState(0);
  const [result, setResult] = useState<Imported | null>(null);
  const file = useRef<HTMLInputElement>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => {
    // After the heading of the page, which gets the focus in the same turn.
    if (isAsked) queueMicrotask(() => file.current?.focus());
    return () => abort.current?.abort();
  }, []);
  const isRunning = outcome?.running === true;
  useUnsavedWarning(isRunning, t('contacts.import.leave'));

  const upload = (form: HTMLFormElement) =>
    run(async () => {
      const format = new FormData(form).get('format');
      const chosen = file.current?.files?.[0];
      if (typeof format !== 'string' || chosen === undefined) return '';
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
      onImported();
      return t('suppressions.import.done', { count: done.rows - done.rejected, total: done.rows });
    });
  return (
    <>
      <h2>{t('suppressions.import')}</h2>
      <p>{t('suppressions.import.about')}</p>
      <form
        class="search"
        aria-label={t('suppressions.import')}
        onSubmit={(event) => {
          event.preventDefault();
          void upload(event.currentTarget);
        }}
      >
        <label class="field">
          {t('contacts.import.file')}
          <input
            class="input"
            type="file"
            ref={file}
            required
            accept=".csv,.tsv,.txt,text/csv,text/plain"
            disabled={isRunning}
          />
        </label>
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
          <button class="button" type="submit" disabled={isRunning}>
            {t('contacts.import.now')}
          </button>
        </div>
      </form>
      {isRunning && <progress aria-label={t('suppressions.import.progress')} max={1} value={share} />}
      <Outcome of={outcome} />
      {result !== null && (
        <>
          <dl class="facts">
            <div>
              <dt>{t('suppressions.import.created')}</dt>
              <dd>{result.created}</dd>
            </div>
            <div>
              <dt>{t('suppressions.import.unchanged')}</dt>
              <dd>{result.unchanged}</dd>
            </div>
            <div>
              <dt>{t('contacts.import.rejected')}</dt>
              <dd>{result.rejected}</dd>
            </div>
          </dl>
          <RejectedRows of={result} />
        </>
      )}
    </>
  );
}
