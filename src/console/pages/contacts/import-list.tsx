import { useOperation } from '../../data.ts';
import { Time } from '../../parts/time.tsx';
import { Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ImportStatus } from './import-status.tsx';

/** Earlier imports, newest first; nothing if there are none. */
export function ImportList() {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { value } = useOperation('/web-setup/contacts/imports');
  if (value === null || value.imports.length === 0) return null;
  return (
    <>
      <h2>{t('contacts.imports')}</h2>
      <Table
        label={t('contacts.imports')}
        heads={[
          t('contacts.import.file'),
          t('contacts.import.startedAt'),
          { text: t('contacts.import.rows'), end: true },
          { text: t('contacts.import.rejected'), end: true },
          t('messages.status'),
        ]}
      >
        {value.imports.map((each) => (
          <tr key={each.importId}>
            <th scope="row">
              <a href={href(`contacts/import/${each.importId}`)}>{each.fileName ?? each.importId}</a>
            </th>
            <td>
              <Time at={each.createdAt} />
            </td>
            <td>{each.rows}</td>
            <td>{each.rejected}</td>
            <td>
              <ImportStatus name={each.status} />
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}
