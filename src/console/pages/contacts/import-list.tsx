import { useOperation } from '../../data.ts';
import { Time } from '../../parts/time.tsx';
import { Card, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ImportStatus } from './import-status.tsx';

/** Earlier imports, newest first; nothing if there are none. */
export function ImportList() {
  const { t, number } = useTexts();
  const { href } = useNavigation();
  const { value } = useOperation('/web-setup/contacts/imports');
  if (value === null || value.imports.length === 0) return null;
  return (
    <Card title={t('contacts.imports')}>
      <Table
        label={t('contacts.imports')}
        isList
        heads={[
          t('contacts.import.file'),
          t('messages.status'),
          { text: t('contacts.import.rows'), end: true },
          { text: t('contacts.import.rejected'), end: true },
          { text: t('contacts.import.startedAt'), end: true },
        ]}
      >
        {value.imports.map((each) => (
          <tr key={each.importId}>
            <th scope="row">
              <a href={href(`contacts/import/${each.importId}`)}>{each.fileName ?? each.importId}</a>
            </th>
            <td class="aside">
              <ImportStatus name={each.status} />
            </td>
            <td class="second labelled">{number(each.rows)}</td>
            <td>{number(each.rejected)}</td>
            <td class="when">
              <Time at={each.createdAt} />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
