import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request, whenSignedOut } from './api.ts';
import { LiveProvider, useLive } from './data.ts';
import { MessagesPage } from './pages/messages.tsx';
import { OverviewPage } from './pages/overview/overview.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { lazyPage } from './parts/lazy.tsx';
import { Palette } from './parts/palette.tsx';
import { SessionConfirmation } from './parts/session-confirmation.tsx';
import { Empty, Failure, focusHeading, Page } from './parts.tsx';
import { NavigationProvider, useBrowserLocation, useNavigation } from './routing.ts';
import {
  type ConsoleSession,
  MemberProvider,
  memberOf,
  memberWithoutAccount,
  type PermissionName,
  type SessionPerson,
} from './session.ts';
import {
  browserLanguage,
  isLanguage,
  LANGUAGES,
  type Language,
  loadTexts,
  type TextKey,
  type Texts,
  TextsProvider,
  useTexts,
} from './texts.ts';
import { applyTheme, storedTheme, THEMES, type Theme } from './theme.ts';

/** The pages in the navigation; `path` is the first segment of the address. */
const PAGES: readonly PageEntry[] = [
  { path: '', title: 'page.overview' },
  { path: 'messages', title: 'page.messages' },
  { path: 'domains', title: 'page.domains' },
  { path: 'queue', title: 'page.queue', needs: 'operator' },
  { path: 'contacts', title: 'page.contacts' },
  { path: 'groups', title: 'page.groups' },
  { path: 'suppressions', title: 'page.suppressions' },
  { path: 'webhooks', title: 'page.webhooks' },
  { path: 'templates', title: 'page.templates' },
  { path: 'campaigns', title: 'page.campaigns' },
  { path: 'reports', title: 'page.reports' },
  { path: 'inbox', title: 'page.inbox', needs: 'operator' },
  { path: 'keys', title: 'page.keys', needs: 'keys' },
  { path: 'reference', title: 'page.api', needs: 'develop' },
  { path: 'people', title: 'page.people', needs: 'people' },
  { path: 'audit', title: 'page.audit', needs: 'people' },
  { path: 'system', title: 'page.system', needs: 'operator' },
];

interface PageEntry {
  path: string;
  title: TextKey;
  /** The permission without which it is not shown. */
  needs?: PermissionName;
}

/** Pages about the person or the installation: operators open them before there is an account. */
const WITHOUT_ACCOUNT = ['me', 'people', 'audit', 'system', 'queue', 'inbox'];

const TemplateListPage = lazyPage(() =>
  import('./pages/templates/template-list.tsx').then((module) => module.TemplateListPage),
);
const TemplatePage = lazyPage(() =>
  import('./pages/templates/template-editor.tsx').then((module) => module.TemplatePage),
);
const CampaignListPage = lazyPage(() =>
  import('./pages/campaigns/campaign-list.tsx').then((module) => module.CampaignListPage),
);
const CampaignPage = lazyPage(() =>
  import('./pages/campaigns/campaign.tsx').then((module) => module.CampaignPage),
);
const DomainsPage = lazyPage(() =>
  import('./pages/domains/domain-list.tsx').then((module) => module.DomainsPage),
);
const RegistrationPage = lazyPage(() =>
  import('./pages/domains/registration.tsx').then((module) => module.RegistrationPage),
);
const DomainPage = lazyPage(() => import('./pages/domains/domain.tsx').then((module) => module.DomainPage));
const QueuePage = lazyPage(() => import('./pages/queue/queue.tsx').then((module) => module.QueuePage));
const ContactListPage = lazyPage(() =>
  import('./pages/contacts/contact-list.tsx').then((module) => module.ContactListPage),
);
const ContactImportPage = lazyPage(() =>
  import('./pages/contacts/import.tsx').then((module) => module.ContactImportPage),
);
const ContactPage = lazyPage(() =>
  import('./pages/contacts/contact.tsx').then((module) => module.ContactPage),
);
const GroupListPage = lazyPage(() =>
  import('./pages/groups/group-list.tsx').then((module) => module.GroupListPage),
);
const GroupPage = lazyPage(() => import('./pages/groups/group.tsx').then((module) => module.GroupPage));
const SuppressionsPage = lazyPage(() =>
  import('./pages/suppressions/suppressions.tsx').then((module) => module.SuppressionsPage),
);
const SuppressionPage = lazyPage(() =>
  import('./pages/suppressions/evidence.tsx').then((module) => module.SuppressionPage),
);
const WebhooksPage = lazyPage(() =>
  import('./pages/webhooks/webhooks.tsx').then((module) => module.WebhooksPage),
);
const WebhookPage = lazyPage(() =>
  import('./pages/webhooks/webhook.tsx').then((module) => module.WebhookPage),
);
const ReportsPage = lazyPage(() =>
  import('./pages/reports/reports.tsx').then((module) => module.ReportsPage),
);
const InboxPage = lazyPage(() => import('./pages/inbox/inbox-list.tsx').then((module) => module.InboxPage));
const InboxMailPage = lazyPage(() =>
  import('./pages/inbox/inbox-mail.tsx').then((module) => module.InboxMailPage),
);
const KeysPage = lazyPage(() => import('./pages/keys/keys.tsx').then((module) => module.KeysPage));
const ApiPage = lazyPage(() => import('./pages/api/api.tsx').then((module) => module.ApiPage));
const SystemPage = lazyPage(() => import('./pages/system/system.tsx').then((module) => module.SystemPage));
const AccountsPage = lazyPage(() =>
  import('./pages/accounts/accounts.tsx').then((module) => module.AccountsPage),
);
const AccountPage = lazyPage(() =>
  import('./pages/accounts/account.tsx').then((module) => module.AccountPage),
);
const PeoplePage = lazyPage(() => import('./pages/people.tsx').then((module) => module.PeoplePage));
const AuditPage = lazyPage(() => import('./pages/audit.tsx').then((module) => module.AuditPage));
const ProfilePage = lazyPage(() => import('./pages/profile.tsx').then((module) => module.ProfilePage));

const LANGUAGE_KEY = 'postrider-language';

/** The application: who is signed in, in which language. */
export function App() {
  const navigation = useBrowserLocation();
  const [session, setSession] = useState<ConsoleSession | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [texts, setTexts] = useState<Texts | null>(null);

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
    setSession(next);
    const language = next.person?.language;
    if (isLanguage(language)) applyLanguage(language);
  };
  const load = () => {
    setError(null);
    request<ConsoleSession>('/console/session').then(begin, (failure: unknown) => {
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    });
  };
  useEffect(() => {
    const stored = localStorage.getItem(LANGUAGE_KEY);
    applyLanguage(isLanguage(stored) ? stored : browserLanguage());
    whenSignedOut(() =>
      setSession((last) => (last === null ? null : { ...last, signedIn: false, person: null })),
    );
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
      <SignInPage methods={session.methods} onSignedIn={begin} settings={<Settings onLanguage={choose} />} />
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
  const member = memberOf(person, location.query['account']);
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
  const signOut = () => void request('/console/session', { method: 'DELETE' }).finally(onSignedOut);
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
                {person.memberships.map(({ accountId, accountName }) => (
                  <option value={accountId} key={accountId}>
                    {accountName}
                  </option>
                ))}
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

function CurrentPage({ segments }: { segments: string[] }) {
  const { t } = useTexts();
  const [page = '', id, more] = segments;
  if (page === '') return <OverviewPage />;
  if (page === 'messages' && more === undefined) return <MessagesPage messageId={id ?? null} />;
  if (page === 'domains' && id === undefined) return <DomainsPage />;
  if (page === 'domains' && id === 'new' && more === undefined) return <RegistrationPage />;
  if (page === 'domains' && id !== undefined && more === undefined)
    return <DomainPage key={id} domainId={id} />;
  if (page === 'templates' && id === undefined) return <TemplateListPage />;
  if (page === 'templates' && id !== undefined && more === undefined)
    return <TemplatePage key={id} templateId={id} />;
  if (page === 'campaigns' && id === undefined) return <CampaignListPage />;
  if (page === 'campaigns' && id !== undefined && more === undefined)
    return <CampaignPage key={id} campaignId={id} />;
  if (page === 'reports' && id === undefined) return <ReportsPage />;
  if (page === 'inbox' && id === undefined) return <InboxPage />;
  if (page === 'inbox' && id !== undefined && more === undefined)
    return <InboxMailPage key={id} number={id} />;
  if (page === 'keys' && id === undefined) return <KeysPage />;
  if (page === 'reference' && more === undefined) return <ApiPage operationId={id ?? null} />;
  if (page === 'system' && id === undefined) return <SystemPage />;
  if (page === 'system' && id === 'accounts' && more === undefined) return <AccountsPage />;
  if (page === 'system' && id === 'accounts' && segments.length === 3 && more !== undefined)
    return <AccountPage key={more} accountId={more} />;
  if (page === 'queue' && segments.length !== 2 && segments.length < 4)
    return <QueuePage kind={id} name={more} />;
  if (page === 'contacts' && id === undefined) return <ContactListPage />;
  if (page === 'contacts' && id === 'import' && more === undefined) return <ContactImportPage />;
  if (page === 'contacts' && id !== undefined && more === undefined)
    return <ContactPage key={id} identifier={id} />;
  if (page === 'groups' && id === undefined) return <GroupListPage />;
  if (page === 'groups' && id !== undefined && more === undefined) return <GroupPage key={id} groupId={id} />;
  if (page === 'suppressions' && id === undefined) return <SuppressionsPage />;
  if (page === 'suppressions' && id !== undefined && more === undefined)
    return <SuppressionPage key={id} identifier={id} />;
  if (page === 'webhooks' && id === undefined) return <WebhooksPage />;
  if (page === 'webhooks' && id !== undefined && more === undefined)
    return <WebhookPage key={id} webhookId={id} />;
  if (page === 'people' && id === undefined) return <PeoplePage />;
  if (page === 'audit' && id === undefined) return <AuditPage />;
  if (page === 'me' && id === undefined) return <ProfilePage />;
  return (
    <Page title={t('app.notFound')}>
      <p>{t('app.notFound.hint')}</p>
    </Page>
  );
}

/** Language and theme. */
function Settings({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { t, language } = useTexts();
  const [theme, setTheme] = useState<Theme>(storedTheme);
  return (
    <div class="settings">
      <label>
        {t('app.language')}
        <select
          value={language}
          onChange={({ currentTarget: { value } }) => {
            if (isLanguage(value)) onLanguage(value);
          }}
        >
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option value={code} lang={code} key={code}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('app.theme')}
        <select
          value={theme}
          onChange={({ currentTarget: { value } }) => {
            const next = THEMES.find((name) => name === value) ?? 'system';
            applyTheme(next);
            setTheme(next);
          }}
        >
          {THEMES.map((name) => (
            <option value={name} key={name}>
              {t(`app.theme.${name}`)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
