import { useEffect } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { useHeldActions } from '../../parts/held-action.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { TemplateGallery } from './template-gallery.tsx';

const PATH = '/web-setup/templates';

type Template = DataOf<typeof PATH>['templates'][number];

const VIEWS = ['grid', 'list'] as const;
type View = (typeof VIEWS)[number];
/** Each template comes with its content. */
const PAGE_SIZE = 50;
const KEY = 'postrider-templates-view';

/** The templates of the account. */
export function TemplateListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const { lastKey } = location.query;
  const view = useView();
  const parameters = { limit: PAGE_SIZE, lastKey };
  const list = useOperation(PATH, parameters);
  const { isHeld } = useHeldActions(list.value, list.reload);
  return (
    <Page
      title={t('page.templates')}
      question={t('templates.question')}
      curl={addressOf(PATH, parameters)}
      actions={
        <>
          <ViewChoice view={view} />
          <a class="button" href={href('templates/partials')}>
            {t('partials.title')}
          </a>
          {may('createTemplate') && (
            <a class="button primary" href={href('templates/new')}>
              <Icon name="plus" /> {t('templates.new')}
            </a>
          )}
        </>
      }
    >
      <Loaded data={list}>
        {({ templates: read, nextKey }) => {
          const templates = read.filter(({ templateId }) => !isHeld(deletionKey(templateId)));
          return (
            <>
              {templates.length === 0 ? (
                <Empty title={t('templates.empty')} icon="file-text">
                  <p>{t('templates.empty.hint')}</p>
                </Empty>
              ) : view === 'list' ? (
                <TemplateTable templates={templates} />
              ) : (
                <TemplateGallery templates={templates} />
              )}
              <Pager path="templates" filters={{}} nextKey={nextKey} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

/** How templates are shown, in the address; the last choice of this browser is the default. */
function useView(): View {
  const { location } = useNavigation();
  const asked = VIEWS.find((name) => name === location.query['view']);
  useEffect(() => {
    if (asked !== undefined) localStorage.setItem(KEY, asked);
  }, [asked]);
  return asked ?? (localStorage.getItem(KEY) === 'list' ? 'list' : 'grid');
}

function ViewChoice({ view }: { view: View }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { lastKey } = location.query;
  return (
    <nav class="segments" aria-label={t('templates.view')}>
      {VIEWS.map((name) => (
        <a
          class="segment"
          key={name}
          href={href('templates', { view: name, lastKey })}
          aria-current={name === view ? 'true' : undefined}
        >
          {t(`templates.view.${name}`)}
        </a>
      ))}
    </nav>
  );
}

function TemplateTable({ templates }: { templates: readonly Template[] }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
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
  );
}

/** The key of the deletion of a template. */
export const deletionKey = (templateId: string): string => `template ${templateId}`;
