import type { ApiError } from '../api.ts';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import './notice.css';

interface SourceFaultsProps {
  /** The last error of the preview, or of saving; null: there is none. */
  error: ApiError | null;
  /** What the html is made from. */
  format?: 'html' | 'mjml';
}

/** Whether the server names the lines of a source in Liquid or MJML that are not valid. */
export function isSourceFault(error: ApiError | null): boolean {
  return error?.code === 'TEMPLATE_SYNTAX';
}

/** What is wrong in a source, with the lines, in words of the server. */
export function SourceFaults({ error, format = 'html' }: SourceFaultsProps) {
  const { t } = useTexts();
  if (error === null || !isSourceFault(error)) return null;
  const labels: Readonly<Record<string, string>> = {
    subject: t('messages.subject'),
    html: t(format === 'mjml' ? 'templates.compiled' : 'templates.code'),
    text: t('templates.text'),
    mjml: t('templates.format.mjml'),
  };
  const faults = error.details.map(({ field, message }) => `${labels[field] ?? field}: ${message}`);
  return (
    <div class="notice bad" role="status">
      <strong>
        <Icon name="circle-x" />
        {t('templates.faults')}
      </strong>
      <ul>
        {(faults.length === 0 ? [error.message] : faults).map((fault) => (
          <li key={fault}>{fault}</li>
        ))}
      </ul>
    </div>
  );
}
