import type { AttentionResponse } from '../http/console/attention-routes.ts';
import { OverviewPage } from './pages/overview/overview.tsx';
import type { IconName } from './parts/icon/icon-names.ts';
import { lazyPage } from './parts/lazy.tsx';
import { Page } from './parts.tsx';
import type { PermissionName } from './session.ts';
import { type TextKey, useTexts } from './texts.ts';

/** The groups of the navigation; those without a page that the person may open are not shown. */
export const PAGE_GROUPS = ['top', 'audience', 'marketing', 'build', 'installation', 'account'] as const;

/** The pages in the navigation; `path` is the beginning of the address. */
export const PAGES: readonly PageEntry[] = [
  { path: '', title: 'page.overview', group: 'top', icon: 'layout-dashboard' },
  { path: 'messages', title: 'page.messages', group: 'top', icon: 'send' },
  { path: 'reputation', title: 'page.reports', group: 'top', icon: 'chart-line' },
  { path: 'contacts', title: 'page.contacts', group: 'audience', icon: 'users' },
  { path: 'groups', title: 'page.groups', group: 'audience', icon: 'users-round' },
  { path: 'segments', title: 'page.segments', group: 'audience', icon: 'funnel' },
  { path: 'suppressions', title: 'page.suppressions', group: 'audience', icon: 'ban' },
  { path: 'campaigns', title: 'page.campaigns', group: 'marketing', icon: 'megaphone', count: 'campaigns' },
  { path: 'sequences', title: 'page.sequences', group: 'marketing', icon: 'route' },
  { path: 'templates', title: 'page.templates', group: 'marketing', icon: 'file-text' },
  { path: 'media', title: 'page.media', group: 'marketing', icon: 'image' },
  { path: 'domains', title: 'page.domains', group: 'build', icon: 'globe', count: 'domains' },
  { path: 'keys', title: 'page.keys', group: 'build', icon: 'key-round', needs: 'keys' },
  { path: 'webhooks', title: 'page.webhooks', group: 'build', icon: 'webhook', count: 'webhooks' },
  { path: 'inbound', title: 'page.inbound', group: 'build', icon: 'mail', needs: 'messages' },
  { path: 'reference', title: 'page.api', group: 'build', icon: 'code', needs: 'develop' },
  {
    path: 'queue',
    title: 'page.queue',
    group: 'installation',
    icon: 'list-ordered',
    needs: 'operator',
    count: 'queue',
  },
  {
    path: 'inbox',
    title: 'page.inbox',
    group: 'installation',
    icon: 'inbox',
    needs: 'operator',
    count: 'inbox',
  },
  { path: 'system', title: 'page.system', group: 'installation', icon: 'server', needs: 'operator' },
  {
    path: 'system/accounts',
    title: 'page.accounts',
    group: 'installation',
    icon: 'building',
    needs: 'operator',
  },
  { path: 'people', title: 'page.people', group: 'account', icon: 'user-cog', needs: 'people' },
  { path: 'audit', title: 'page.audit', group: 'account', icon: 'scroll-text', needs: 'people' },
  { path: 'settings', title: 'page.settings', group: 'account', icon: 'settings', needs: 'account' },
];

/** Counts of what needs attention; those of domains and webhooks are failures. */
export type NavigationCount = keyof AttentionResponse['counts'] | 'queue' | 'inbox';

export interface PageEntry {
  path: string;
  title: TextKey;
  group: (typeof PAGE_GROUPS)[number];
  icon: IconName;
  /** What is counted next to its name. */
  count?: NavigationCount;
  /** The permission without which it is not shown. */
  needs?: PermissionName;
}

/** Pages about the person or the installation: operators open them before there is an account. */
export const WITHOUT_ACCOUNT = ['me', 'people', 'audit', 'system', 'queue', 'inbox'];

const MessagesPage = lazyPage(() =>
  import('./pages/messages/messages.tsx').then((module) => module.MessagesPage),
);
const TemplateListPage = lazyPage(() =>
  import('./pages/templates/template-list.tsx').then((module) => module.TemplateListPage),
);
const TemplatePage = lazyPage(() =>
  import('./pages/templates/template-editor.tsx').then((module) => module.TemplatePage),
);
const PartialListPage = lazyPage(() =>
  import('./pages/templates/partials.tsx').then((module) => module.PartialListPage),
);
const PartialPage = lazyPage(() =>
  import('./pages/templates/partials.tsx').then((module) => module.PartialPage),
);
const MediaPage = lazyPage(() => import('./pages/media/media.tsx').then((module) => module.MediaPage));
const CampaignListPage = lazyPage(() =>
  import('./pages/campaigns/campaign-list.tsx').then((module) => module.CampaignListPage),
);
const CampaignPage = lazyPage(() =>
  import('./pages/campaigns/campaign.tsx').then((module) => module.CampaignPage),
);
const SequenceListPage = lazyPage(() =>
  import('./pages/sequences/sequence-list.tsx').then((module) => module.SequenceListPage),
);
const SequencePage = lazyPage(() =>
  import('./pages/sequences/sequence.tsx').then((module) => module.SequencePage),
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
const HygienePage = lazyPage(() =>
  import('./pages/contacts/hygiene.tsx').then((module) => module.HygienePage),
);
const ImportProgressPage = lazyPage(() =>
  import('./pages/contacts/import-progress.tsx').then((module) => module.ImportProgressPage),
);
const ContactPage = lazyPage(() =>
  import('./pages/contacts/contact.tsx').then((module) => module.ContactPage),
);
const SegmentListPage = lazyPage(() =>
  import('./pages/segments/segment-list.tsx').then((module) => module.SegmentListPage),
);
const NewSegmentPage = lazyPage(() =>
  import('./pages/segments/segment.tsx').then((module) => module.NewSegmentPage),
);
const SegmentPage = lazyPage(() =>
  import('./pages/segments/segment.tsx').then((module) => module.SegmentPage),
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
const InboundPage = lazyPage(() =>
  import('./pages/inbound/mail-list.tsx').then((module) => module.InboundPage),
);
const InboundMailPage = lazyPage(() =>
  import('./pages/inbound/mail.tsx').then((module) => module.InboundMailPage),
);
const InboundRoutesPage = lazyPage(() =>
  import('./pages/inbound/routes.tsx').then((module) => module.InboundRoutesPage),
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
const SettingsPage = lazyPage(() =>
  import('./pages/settings/settings.tsx').then((module) => module.SettingsPage),
);
const ProfilePage = lazyPage(() =>
  import('./pages/profile/profile.tsx').then((module) => module.ProfilePage),
);

/** The page at an address. `segments`: see `PageAddress`. */
export function CurrentPage({ segments }: { segments: string[] }) {
  const { t } = useTexts();
  const [page = '', id, more] = segments;
  if (page === '') return <OverviewPage />;
  if (page === 'messages' && more === undefined) return <MessagesPage messageId={id ?? null} />;
  if (page === 'domains' && id === undefined) return <DomainsPage />;
  if (page === 'domains' && id === 'new' && more === undefined) return <RegistrationPage />;
  if (page === 'domains' && id !== undefined && more === undefined)
    return <DomainPage key={id} domainId={id} />;
  if (page === 'templates' && id === undefined) return <TemplateListPage />;
  if (page === 'templates' && id === 'partials' && more === undefined) return <PartialListPage />;
  if (page === 'templates' && id === 'partials' && segments.length === 3 && more !== undefined)
    return <PartialPage key={more} partialId={more} />;
  if (page === 'templates' && id !== undefined && more === undefined)
    return <TemplatePage key={id} templateId={id} />;
  if (page === 'media' && id === undefined) return <MediaPage />;
  if (page === 'campaigns' && id === undefined) return <CampaignListPage />;
  if (page === 'campaigns' && id !== undefined && more === undefined)
    return <CampaignPage key={id} campaignId={id} />;
  // Its former address, which people have stored.
  if ((page === 'reputation' || page === 'reports') && id === undefined) return <ReportsPage />;
  if (page === 'sequences' && id === undefined) return <SequenceListPage />;
  if (page === 'sequences' && id !== undefined && more === undefined)
    return <SequencePage key={id} sequenceId={id} />;
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
  if (page === 'contacts' && id === 'hygiene' && more === undefined) return <HygienePage />;
  if (page === 'contacts' && id === 'import' && more === undefined) return <ContactImportPage />;
  if (page === 'contacts' && id === 'import' && segments.length === 3 && more !== undefined)
    return <ImportProgressPage key={more} importId={more} />;
  if (
    page === 'contacts' &&
    id !== undefined &&
    (more === undefined || (more === 'proof' && segments.length === 3))
  )
    return <ContactPage key={`${id} ${more}`} identifier={id} isProof={more === 'proof'} />;
  if (page === 'groups' && id === undefined) return <GroupListPage />;
  if (page === 'groups' && id !== undefined && more === undefined) return <GroupPage key={id} groupId={id} />;
  if (page === 'segments' && id === undefined) return <SegmentListPage />;
  if (page === 'segments' && id === 'new' && more === undefined) return <NewSegmentPage />;
  if (page === 'segments' && id !== undefined && more === undefined)
    return <SegmentPage key={id} segmentId={id} />;
  if (page === 'suppressions' && id === undefined) return <SuppressionsPage />;
  if (page === 'suppressions' && id !== undefined && more === undefined)
    return <SuppressionPage key={id} identifier={id} />;
  if (page === 'webhooks' && id === undefined) return <WebhooksPage />;
  if (page === 'webhooks' && id !== undefined && more === undefined)
    return <WebhookPage key={id} webhookId={id} />;
  if (page === 'inbound' && id === undefined) return <InboundPage />;
  if (page === 'inbound' && id === 'routes' && more === undefined) return <InboundRoutesPage />;
  if (page === 'inbound' && id !== undefined && more === undefined)
    return <InboundMailPage key={id} inboundId={id} />;
  if (page === 'people' && id === undefined) return <PeoplePage />;
  if (page === 'audit' && id === undefined) return <AuditPage />;
  if (page === 'settings' && id === undefined) return <SettingsPage />;
  if (page === 'me' && id === undefined) return <ProfilePage />;
  return (
    <Page title={t('app.notFound')}>
      <p>{t('app.notFound.hint')}</p>
    </Page>
  );
}
