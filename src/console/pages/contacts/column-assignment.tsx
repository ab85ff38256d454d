import { Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import type { CsvHead } from './csv-head.ts';

const FIELDS = [
  'email',
  'phone',
  'firstName',
  'lastName',
  'language',
  'consentMethod',
  'consentDetails',
  'consentIpAddress',
  'consentUserAgent',
  'consentTimestamp',
  'globalStatus',
  'isActive',
] as const;

const CUSTOM = 'customFields.';

interface ColumnAssignmentProps {
  head: CsvHead;
  /** The field of each column; '' for a column that is not read. */
  fields: readonly string[];
  onChange: (fields: string[]) => void;
}

/** Which column of a file is which field of a contact. */
export function ColumnAssignment({ head, fields, onChange }: ColumnAssignmentProps) {
  const { t } = useTexts();
  return (
    <Table
      label={t('contacts.import.columns')}
      isList
      heads={[t('contacts.import.column'), t('contacts.import.values'), t('contacts.import.field')]}
    >
      {head.columns.map((column, index) => {
        const field = fields[index] ?? '';
        const custom = field.startsWith(CUSTOM) ? field : `${CUSTOM}${column}`;
        return (
          <tr key={`${index} ${column}`}>
            <th scope="row">{column}</th>
            <td class="second">
              {head.rows
                .map((row) => row[index] ?? '')
                .filter((value) => value !== '')
                .join(' · ')}
            </td>
            <td class="aside">
              <select
                class="select"
                aria-label={t('contacts.import.fieldOf', { column })}
                value={field}
                onChange={({ currentTarget: { value } }) =>
                  onChange(head.columns.map((_, at) => (at === index ? value : (fields[at] ?? ''))))
                }
              >
                <option value="">{t('contacts.import.ignore')}</option>
                {FIELDS.map((name) => (
                  <option value={name} key={name}>
                    {t(`contacts.field.${name}`)}
                  </option>
                ))}
                {column !== '' && (
                  <option value={custom}>{t('contacts.field.custom', { name: column })}</option>
                )}
              </select>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
