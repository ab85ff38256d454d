import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request, whenSignedOut } from './api.ts';
import { LiveProvider, useLive } from './data.ts';
import {
  adoptPageToken,
  findPageToken,
  finishSignInElsewhere,
  forgetPageToken,
  whenSignedInElsewhere,
} from './page-token.ts';
import { SignInPage } from './pages/sign-in.tsx';
import { CurrentPage, PAGES, WITHOUT_ACCOUNT } from './pages.tsx';
import { AccountOptions } from './parts/account-options.tsx';
import { discardTasks } from './parts/long-task.tsx';
import { Palette } from './parts/palette/palette.tsx';
import { SessionConfirmation } from './parts/session-confirmation.tsx';
import { Settings } from './parts/settings.tsx';
import { Empty, Failure, focusHeading, Page } from './parts.tsx';
import { hasUnsavedWork, NavigationProvider, useBrowserLocation, useNavigation } from './routing.ts';
import {
  type ConsoleSession,
  currentMember,
  MemberProvider,
  memberWithoutAccount,
  type SessionPerson,
} from './session.ts';
import {
  browserLanguage,
  isLanguage,
  type Language,
  loadTexts,
  type Texts,
  TextsProvider,
  useTexts,
} from './texts.ts';

const LANGUAGE_KEY = 'postrider-language';

/** The application: who is signed in, in which language. */
export function App() {
  const navigation = useBrowserLocation();
  const [session, setSession] = useState<ConsoleSession | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [texts, setTexts] = useState<Texts | null>(null);
  const [isForeign, setForeign] = useState(false);

  const wanted = useRef<Language | null>(null);
  const applyLanguage = (language: Language) => {
    wanted.current = language;
    document.documentElement.lang = language;
    void loadTexts(language).then((loaded) => {
      // The texts of an earlier choice may arrive later.
      if (wanted.current === language) setTexts(loaded);
    });
  };
  const begin = (next: ConsoleSession) => {
    if (next.pageToken !== undefined) adoptPageToken(next.pageToken);
    if (!next.signedIn) forgetPageToken();
    setSession(next);
    const language = next.person?.language;
    if (isLanguage(language)) applyLanguage(language);
  };
  const load = () => {
    setError(null);
    findPageToken()
      .then(() => request<ConsoleSession>('/console/session'))
      .then(begin, (failure: unknown) => {
        if (!(failure instanceof ApiError)) throw failure;
        setError(failure);
      });
  };
  useEffect(() => {
    const stored = localStorage.getItem(LANGUAGE_KEY);
    applyLanguage(isLanguage(stored) ? stored : browserLanguage());
    whenSignedOut(() => {
      forgetPageToken();
      setSession((last) => (last === null ? null : { ...last, signedIn: false, person: null }));
    });
    whenSignedInElsewhere(load);
    setForeign(!finishSignInElsewhere());
    load();
  }, []);

  if (texts === null) return null;
  const choose = (language: Language) => {
    localStorage.setItem(LANGUAGE_KEY, language);
    applyLanguage(language);
    // Without success, the language is that of this browser only.
    if (session?.signedIn)
      void request('/console/me', { method: 'PATCH', body: { language } }).catch(() => {});
  };
  const content =
    error !== null ? (
      <main>
        <Failure error={error} retry={load} />
      </main>
    ) : session === null ? null : session.person === null ? (
      <SignInPage
        methods={session.methods}
        isForeign={isForeign}
        onSignedIn={begin}
        settings={<Settings onLanguage={choose} />}
      />
    ) : (
      <Shell person={session.person} onLanguage={choose} onSignedOut={load} />
    );
  return (
    <TextsProvider value={texts}>
      <NavigationProvider value={navigation}>{content}</NavigationProvider>
    </TextsProvider>
  );
}

interface ShellProps {
  person: SessionPerson;
  onLanguage: (language: Language) => void;
  onSignedOut: () => void;
}

/** Everything around a page. */
function Shell({ person, onLanguage, onSignedOut }: ShellProps) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const member = currentMember(person, location.query['account']);
  const live = useLive(member?.accountId ?? null);
  const [first = ''] = location.segments;
  const address = location.segments.join('/');
  const isFirst = useRef(true);
  useEffect(() => {
    setOpen(false);
    // Screen readers read the new page; the first one is read by itself.
    if (!isFirst.current && main.current !== null) focusHeading(main.current);
    isFirst.current = false;
  }, [address]);

  const current = member ?? memberWithoutAccount(person);
  const pages = PAGES.filter(({ needs }) => needs === undefined || current.has(needs));
  const signOut = () => {
    if (hasUnsavedWork() && !window.confirm(t('app.signOut.unsaved'))) return;
    discardTasks();
    void request('/console/session', { method: 'DELETE' }).finally(onSignedOut);
  };
  return (
    <>
      <a class="skip" href="#content" onClick={() => main.current?.focus()}>
        {t('app.skip')}
      </a>
      <header>
        <a class="brand" href={href('')}>
          Postrider
        </a>
        <Palette member={current} pages={pages.map(({ path, title }) => ({ path, title: t(title) }))} />
        <button
          type="button"
          class="menu"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
        >
          {t('app.menu')}
        </button>
      </header>
      <div class="columns">
        <aside id="menu" class={isOpen ? 'side open' : 'side'} aria-label={t('app.menu')}>
          {person.memberships.length > 0 && (
            <label>
              {t('app.account')}
              <select
                value={member?.accountId ?? ''}
                onChange={({ currentTarget }) => {
                  const account = currentTarget.value;
                  // It changes with the address: the person may stay because of unsaved changes.
                  currentTarget.value = member?.accountId ?? '';
                  go(href(first, { account }));
                }}
              >
                <AccountOptions of={person} />
              </select>
            </label>
          )}
          <nav aria-label={t('app.pages')}>
            <ul>
              {pages.map(({ path, title }) => (
                <li key={path}>
                  <a href={href(path)} aria-current={path === first ? 'page' : undefined}>
                    {t(title)}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <Settings onLanguage={onLanguage} />
          <p class="small">
            <a href={href('me')} aria-current={first === 'me' ? 'page' : undefined}>
              {person.email}
            </a>
          </p>
          <button type="button" onClick={signOut}>
            {t('app.signOut')}
          </button>
        </aside>
        <main id="content" ref={main} tabIndex={-1}>
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
        </main>
      </div>
      <SessionConfirmation onSignOut={signOut} />
    </>
  );
}
