import { useEffect, useRef, useState } from 'preact/hooks';
import type { AttentionResponse } from '../../http/console/attention-routes.ts';
import { request } from '../api.ts';
import { AttentionProvider, useAttention } from '../attention.ts';
import { LiveProvider, useConsoleData, useLive, useRefresh } from '../data.ts';
import {
  CurrentPage,
  type NavigationCount,
  PAGE_GROUPS,
  PAGES,
  type PageEntry,
  WITHOUT_ACCOUNT,
} from '../pages.tsx';
import { CloseButton } from '../parts/close-button.tsx';
import { Icon } from '../parts/icon/icon.tsx';
import { discardTasks } from '../parts/long-task.tsx';
import { useMedia } from '../parts/media.ts';
import { Palette } from '../parts/palette/palette.tsx';
import { noteRecentPage } from '../parts/recent-pages.ts';
import { SessionConfirmation } from '../parts/session-confirmation.tsx';
import { settleToasts, Toasts } from '../parts/toast.tsx';
import { Empty, focusHeading, Page } from '../parts.tsx';
import { hasUnsavedWork, type PageAddress, useNavigation } from '../routing.ts';
import { currentMember, MemberProvider, memberWithoutAccount, type SessionPerson } from '../session.ts';
import { type Language, useTexts } from '../texts.ts';
import { AccountSwitcher } from './account-switcher.tsx';
import { Bell } from './bell.tsx';
import { Crumbs, TitleProvider } from './crumbs.tsx';
import { Mark } from './mark.tsx';
import { PersonMenu } from './person-menu.tsx';
import { Shortcuts, setShortcuts } from './shortcuts.tsx';
import './shell.css';

/** Windows in which the side bar is a drawer, as in shell.css. */
const NARROW = '(width < 60rem)';

/** What belongs to the installation causes no events of an account. */
const ATTENTION_REFRESH_MS = 30_000;

interface ShellProps {
  person: SessionPerson;
  onLanguage: (language: Language) => void;
  onSignedOut: () => void;
}

/** Everything around a page. */
export function Shell({ person, onLanguage, onSignedOut }: ShellProps) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const isNarrow = useMedia(NARROW);
  const [isOpen, setOpen] = useState(false);
  const [title, setTitle] = useState('');
  const [isKeyListOpen, setKeyListOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const drawer = useRef<HTMLDialogElement>(null);
  const member = currentMember(person, location.query['account']);
  const live = useLive(member?.accountId ?? null);
  const attention = useConsoleData<AttentionResponse>(
    member === null ? null : '/console/attention',
    member?.accountId,
    live,
  );
  useRefresh(attention.reload, ATTENTION_REFRESH_MS);
  const [first = ''] = location.segments;
  const address = location.segments.join('/');
  const isFirst = useRef(true);
  useEffect(() => {
    drawer.current?.close();
    // Screen readers read the new page; the first one is read by itself.
    if (!isFirst.current && main.current !== null) focusHeading(main.current);
    isFirst.current = false;
  }, [address]);

  const current = member ?? memberWithoutAccount(person);
  const pages = PAGES.filter(({ needs }) => needs === undefined || current.has(needs));
  const shown = pageAt(pages, location.segments);
  /** The filters of each list as they were last, to which the way back from its entries leads. */
  const lists = useRef(new Map<string, PageAddress['query']>());
  const listKey = (path: string) => `${member?.accountId} ${path}`;
  if (shown?.path === address) lists.current.set(listKey(address), location.query);
  const listedPages = pages.map(({ path, title: key }) => ({ path, title: t(key) }));
  useEffect(() => setShortcuts(person.shortcuts), [person.shortcuts]);
  useEffect(() => {
    if (title !== '') noteRecentPage({ title, address: window.location.pathname + window.location.search });
  }, [title, location]);
  const signOut = () => {
    if (hasUnsavedWork() && !window.confirm(t('app.signOut.unsaved'))) return;
    discardTasks();
    // Requests on one connection may overtake each other: what waits is sent before the session ends.
    void settleToasts(false)
      .then(() => request('/console/session', { method: 'DELETE' }))
      .finally(onSignedOut);
  };
  const brand = (
    <a class="brand" href={href('')}>
      <Mark />
      Postrider
    </a>
  );
  const navigation = (
    <>
      {person.memberships.length > 0 && (
        <AccountSwitcher person={person} accountId={member?.accountId ?? ''} />
      )}
      <nav class="side-nav" aria-label={t('app.pages')}>
        {PAGE_GROUPS.map((group) => (
          <PageGroup key={group} group={group} pages={pages} shown={shown} />
        ))}
      </nav>
      <div class="side-foot">
        <PersonMenu
          person={person}
          onLanguage={onLanguage}
          onShortcuts={() => {
            drawer.current?.close();
            setKeyListOpen(true);
          }}
          onSignOut={signOut}
        />
      </div>
    </>
  );
  return (
    <AttentionProvider value={attention}>
      <a class="skip" href="#content" onClick={() => main.current?.focus()}>
        {t('app.skip')}
      </a>
      <div class="shell">
        {!isNarrow && (
          <aside class="side" aria-label={t('app.menu')}>
            {brand}
            {navigation}
          </aside>
        )}
        <div class="content">
          <header class="top">
            {isNarrow && (
              <button
                type="button"
                class="button ghost icon-only"
                aria-label={t('app.menu')}
                title={t('app.menu')}
                aria-expanded={isOpen}
                onClick={() => {
                  drawer.current?.showModal();
                  setOpen(true);
                }}
              >
                <Icon name="menu" />
              </button>
            )}
            <Crumbs
              section={
                shown === undefined
                  ? null
                  : {
                      title: t(shown.title),
                      address: href(shown.path, lists.current.get(listKey(shown.path))),
                    }
              }
              title={title}
            />
            <Palette member={current} pages={listedPages} />
            <Bell accountId={member?.accountId ?? null} />
          </header>
          <main id="content" ref={main} tabIndex={-1}>
            <TitleProvider value={setTitle}>
              {member === null && !WITHOUT_ACCOUNT.includes(first) ? (
                <Page title={t('page.overview')}>
                  <Empty title={t('app.noAccount')}>
                    <p>{t(person.operator ? 'app.noAccount.operator' : 'app.noAccount.member')}</p>
                  </Empty>
                </Page>
              ) : (
                <MemberProvider value={current}>
                  <LiveProvider value={live}>
                    <CurrentPage key={current.accountId} segments={location.segments} />
                  </LiveProvider>
                </MemberProvider>
              )}
            </TitleProvider>
          </main>
        </div>
      </div>
      {isNarrow && (
        <dialog
          class="drawer left"
          aria-label={t('app.menu')}
          ref={drawer}
          onClose={() => setOpen(false)}
          onClick={({ target, currentTarget }) => {
            // A click next to the drawer is one on its backdrop.
            if (target === currentTarget) currentTarget.close();
          }}
        >
          <div class="drawer-head">
            {brand}
            <CloseButton onClick={() => drawer.current?.close()} />
          </div>
          {navigation}
        </dialog>
      )}
      <SessionConfirmation onSignOut={signOut} />
      <Shortcuts pages={listedPages} isListOpen={isKeyListOpen} onList={setKeyListOpen} />
      <Toasts />
    </AttentionProvider>
  );
}

interface PageGroupProps {
  group: PageEntry['group'];
  pages: readonly PageEntry[];
  shown: PageEntry | undefined;
}

/** The pages of a group of the navigation. */
function PageGroup({ group, pages, shown }: PageGroupProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const own = pages.filter((page) => page.group === group);
  if (own.length === 0) return null;
  return (
    <div>
      {group !== 'top' && (
        <p class="nav-group" id={`group-${group}`}>
          {t(`app.group.${group}`)}
        </p>
      )}
      <ul class="nav-list" aria-labelledby={group === 'top' ? undefined : `group-${group}`}>
        {own.map((page) => (
          <li key={page.path}>
            <a class="nav-item" href={href(page.path)} aria-current={page === shown ? 'page' : undefined}>
              <Icon name={page.icon} />
              {t(page.title)}
              {page.count !== undefined && <Count of={page.count} />}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** How much there is to attend to; nothing if there is nothing. */
function Count({ of }: { of: NavigationCount }) {
  const { t, number } = useTexts();
  const { value } = useAttention();
  const { counts, installation } = value ?? { counts: null, installation: null };
  const count = of === 'queue' || of === 'inbox' ? installation?.counts[of] : counts?.[of];
  if (count === undefined || count === 0) return null;
  const text = t(`app.count.${of}`, { count });
  return (
    <span class={of === 'domains' || of === 'webhooks' ? 'nav-count bad' : 'nav-count'} title={text}>
      <span aria-hidden="true">{number(count)}</span>
      <span class="unseen">{text}</span>
    </span>
  );
}

/** The page of the navigation to which an address belongs: the one with the longest path that it begins with. */
function pageAt(pages: readonly PageEntry[], segments: readonly string[]): PageEntry | undefined {
  const address = segments.join('/');
  return pages
    .filter(({ path }) => address === path || (path !== '' && address.startsWith(`${path}/`)))
    .sort((one, other) => other.path.length - one.path.length)[0];
}
