import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, callApi, withQuery } from '../../api.ts';
import { saveFile } from '../../parts/save-file.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { ListedContact } from './contact-list.tsx';

/** Columns of the file; an import reads those that it can write by the same names. */
const COLUMNS = [
  'contactIdentifier',
  'email',
  'phone',
  'firstName',
  'lastName',
  'globalStatus',
  'consentMethod',
  'consentDetails',
  'consentIpAddress',
  'consentUserAgent',
  'consentTimestamp',
  'source',
  'addedBy',
  'createdAt',
  'updatedAt',
  'customFields',
] as const satisfies (keyof ListedContact)[];

/** The longest page of the list, rows. */
const PAGE = '200';
/** Pause when the limit on requests is reached. */
const PAUSE_MS = 1000;

/** Saves the contacts that match the search as a CSV, which is read page by page. */
export function Export({ filters }: { filters: Readonly<Record<string, string | undefined>> }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [count, setCount] = useState(0);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const save = () =>
    run(async () => {
      setCount(0);
      const { signal } = (abort.current = new AbortController());
      const parts: string[] = [`${COLUMNS.join(',')}\r\n`];
      let saved = 0;
      let lastKey: string | undefined;
      do {
        const path = withQuery('/web-setup/contacts', { ...filters, limit: PAGE, lastKey });
        const page = await readPage(path, accountId, signal);
        if (page === null) return t('contacts.export.cancelled');
        parts.push(page.contacts.map(csvRow).join(''));
        saved += page.contacts.length;
        setCount(saved);
        lastKey = page.nextKey;
      } while (lastKey !== undefined);
      saveFile('contacts.csv', new Blob(parts, { type: 'text/csv;charset=utf-8' }));
      return t('contacts.export.saved', { count: saved, file: 'contacts.csv' });
    });
  return (
    <section aria-label={t('contacts.export')}>
      <div class="actions">
        <button type="button" disabled={outcome?.running} onClick={() => void save()}>
          {t('contacts.export')}
        </button>
        {outcome?.running && (
          <>
            <span>{t('contacts.export.progress', { count })}</span>
            <button type="button" onClick={() => abort.current?.abort()}>
              {t('app.cancel')}
            </button>
          </>
        )}
      </div>
      <Outcome of={outcome} />
    </section>
  );
}

interface ContactPage {
  contacts: ListedContact[];
  nextKey?: string;
}

/** A page, after pauses while there are too many requests; null when the person cancelled the export. */
async function readPage(path: string, accountId: string, signal: AbortSignal): Promise<ContactPage | null> {
  while (!signal.aborted) {
    try {
      return await callApi<ContactPage>(path, { account: accountId, signal });
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ApiError) || error.code !== 'RATE_LIMITED') throw error;
      await new Promise((resolve) => window.setTimeout(resolve, PAUSE_MS));
    }
  }
  return null;
}

function csvRow(contact: ListedContact): string {
  return `${COLUMNS.map((column) => csvField(contact[column])).join(',')}\r\n`;
}

/**
 * A quoted field. An apostrophe keeps spreadsheets from evaluating the value as a formula, except before a phone number,
 * which must remain one.
 */
function csvField(value: ListedContact[keyof ListedContact]): string {
  const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : value;
  const safe = /^[=@\t\r]|^[+-](?!\d+$)/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
