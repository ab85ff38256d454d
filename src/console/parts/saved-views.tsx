import type { SavedViewList } from '../../http/console/view-routes.ts';
import { request } from '../api.ts';
import { useConsoleData } from '../data.ts';
import { Outcome, useAction } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';
import { fieldText } from './field-text.ts';
import { Icon } from './icon/icon.tsx';
import { Popover } from './popover.tsx';
import { toast } from './toast.tsx';
import './saved-views.css';

interface SavedViewsProps {
  /** The page. */
  path: string;
  /** Its filters. */
  query: Readonly<Record<string, string | undefined>>;
  /** Whether the list is about the installation, not about an account. */
  isInstallation?: boolean;
}

/** The filters of a list that the person saved under names: choose, save and delete. */
export function SavedViews(props: SavedViewsProps) {
  const { t } = useTexts();
  return (
    <Popover
      buttonClass="button"
      popoverClass="saved-views"
      button={
        <>
          <Icon name="bookmark" />
          <span class="wide-text">{t('app.views')}</span>
        </>
      }
    >
      {(close) => <Views {...props} close={close} />}
    </Popover>
  );
}

function Views({ path, query, isInstallation = false, close }: SavedViewsProps & { close: () => void }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const account = isInstallation ? undefined : accountId;
  const data = useConsoleData<SavedViewList>('/console/views', account);
  const { outcome, run } = useAction();
  const views = (data.value?.views ?? []).filter(({ page }) => page === path);
  const current = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
  const save = (form: HTMLFormElement) =>
    run(async () => {
      const name = fieldText(new FormData(form), 'name');
      await request('/console/views', {
        method: 'POST',
        account,
        body: { page: path, name, query: current },
      });
      close();
      toast(t('app.views.saved', { name }));
      return '';
    });
  const remove = (id: string) =>
    run(async () => {
      await request(`/console/views/${encodeURIComponent(id)}`, { method: 'DELETE', account });
      data.reload();
      return '';
    });
  return (
    <>
      {data.value !== null && views.length === 0 && <p class="small">{t('app.views.none')}</p>}
      <ul class="menu-list">
        {views.map(({ id, name, query: saved }) => (
          <li key={id}>
            <button
              type="button"
              class="menu-item"
              onClick={() => {
                close();
                go(href(path, parametersOf(saved)));
              }}
            >
              {name}
            </button>
            <button
              type="button"
              class="button ghost icon-only"
              aria-label={t('app.views.delete', { name })}
              title={t('app.views.delete', { name })}
              onClick={() => void remove(id)}
            >
              <Icon name="x" />
            </button>
          </li>
        ))}
      </ul>
      {Object.keys(current).length === 0 ? (
        <p class="small">{t('app.views.hint')}</p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void save(event.currentTarget);
          }}
        >
          <label class="field">
            {t('app.views.name')}
            <input class="input" name="name" required maxLength={60} autocomplete="off" />
          </label>
          <button class="button primary" type="submit" disabled={outcome?.running}>
            {t('app.views.save')}
          </button>
        </form>
      )}
      {outcome?.failed && <Outcome of={outcome} />}
    </>
  );
}

/** The filters of a view; the account is that of the page. */
function parametersOf({ account: _account, lastKey: _lastKey, ...filters }: Record<string, string>) {
  return filters;
}
