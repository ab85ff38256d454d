import type * as z from 'zod';
import type { template as templateSchema } from '../../../http/api/templates.ts';
import { withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

interface TemplateList {
  templates: z.output<typeof templateSchema>[];
  nextKey?: string;
}

/** The templates of the account. */
export function TemplateListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const { lastKey } = location.query;
  const path = withQuery('/web-setup/templates', { limit: '50', lastKey });
  const list = useData<TemplateList>(path);
  return (
    <Page
      title={t('page.templates')}
      question={t('templates.question')}
      curl={path}
      actions={
        may('createTemplate') && (
          <a class="button primary" href={href('templates/new')}>
            <Icon name="plus" /> {t('templates.new')}
          </a>
        )
      }
    >
      <Loaded data={list}>
        {({ templates, nextKey }) => (
          <>
            {templates.length === 0 ? (
              <Empty title={t('templates.empty')} icon="file-text">
                <p>{t('templates.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.templates')}
                isList
                heads={[
                  t('people.name'),
                  t('templates.stream'),
                  t('messages.subject'),
                  { text: t('templates.updated'), end: true },
                ]}
              >
                {templates.map(({ templateId, name, type, subject, updatedAt }) => (
                  <tr key={templateId}>
                    <th scope="row">
                      <a href={href(`templates/${encodeURIComponent(templateId)}`)}>{name || templateId}</a>
                    </th>
                    <td>{t(type === undefined ? 'templates.stream.both' : `templates.stream.${type}`)}</td>
                    <td class="second">{subject ?? ''}</td>
                    <td class="when">
                      <Time at={updatedAt} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="templates" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
