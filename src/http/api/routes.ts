import type { Accounts } from '../../accounts/accounts.ts';
import { createKeys } from '../../accounts/keys.ts';
import { type AccountLimits, readLimits } from '../../accounts/limits.ts';
import { createPublicPageSettings } from '../../accounts/public-pages.ts';
import type { AddressChecks } from '../../audience/hygiene/checks.ts';
import type { HygieneRuns } from '../../audience/hygiene/runs.ts';
import type { SunsetRules } from '../../audience/hygiene/sunset.ts';
import type { BackgroundImports } from '../../audience/import/background.ts';
import type { Audience } from '../../audience/service.ts';
import type { BackupSchedule } from '../../backup/schedule.ts';
import type { Campaigns } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import type { Sequences } from '../../campaigns/sequences/sequences.ts';
import type { Refusal } from '../../core/refusal.ts';
import { createBulkChanges, createControlOrders } from '../../delivery/control.ts';
import type { Delivery } from '../../delivery/delivery.ts';
import type { DescribeCopy } from '../../delivery/prepare.ts';
import type { Doctor } from '../../doctor/service.ts';
import type { Domains } from '../../domains/service.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import type { Inbound } from '../../inbound/inbound.ts';
import type { Media } from '../../media/media.ts';
import type { SendingMonitor } from '../../reputation/monitor.ts';
import { createSpamRates } from '../../reputation/spam-rates.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import { createQueuedMail } from '../../sending/queued-mail.ts';
import type { Resend } from '../../sending/resend.ts';
import { createTestMessages } from '../../sending/test-messages.ts';
import type { Context } from '../../store/context.ts';
import { NO_ACCOUNT } from '../../store/readers/reads.ts';
import { createSuppressionList } from '../../suppression/list.ts';
import type { LinkChecks } from '../../templates/checks/link-checks.ts';
import type { SpamFilters } from '../../templates/checks/spam-filters.ts';
import { createComplianceTemplates } from '../../templates/compliance-templates.ts';
import { createPartials } from '../../templates/partials.ts';
import { createTemplates } from '../../templates/templates.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import type { Route } from '../route.ts';
import { withStorageCheck } from '../storage-check.ts';
import { withTestKeyCheck } from '../test-keys.ts';
import { accountRoutes } from './accounts/account.ts';
import { installationAccountRoutes } from './accounts/accounts.ts';
import { accountKeyRoutes, keyRoutes } from './accounts/keys.ts';
import { publicPagesRoutes } from './accounts/public-pages.ts';
import { campaignRoutes } from './campaigns.ts';
import { complianceTemplateRoutes } from './compliance-templates.ts';
import { contactEventRoutes } from './contacts/contact-events.ts';
import { contactRoutes } from './contacts/contacts.ts';
import { contactImportRoutes } from './contacts/contacts-import.ts';
import { evidenceRoutes } from './contacts/evidence.ts';
import { hygieneRoutes } from './contacts/hygiene.ts';
import { segmentRoutes } from './contacts/segments.ts';
import { subscriptionGroupRoutes } from './contacts/subscription-groups.ts';
import { subscriptionRoutes } from './contacts/subscriptions.ts';
import { sunsetRoutes } from './contacts/sunset.ts';
import { doctorRoutes } from './doctor.ts';
import { domainGroupRoutes } from './domains/domain-groups.ts';
import { domainReportRoutes } from './domains/domain-reports.ts';
import { domainRoutes } from './domains/domains.ts';
import { inboundRoutes } from './inbound.ts';
import { inboundRouteRoutes } from './inbound-routes.ts';
import { inboxRoutes } from './inbox.ts';
import { installationRoutes } from './installation.ts';
import { mediaRoutes } from './media.ts';
import { partialRoutes } from './partials.ts';
import { queueRoutes } from './queue/queue.ts';
import { queueChangeRoutes } from './queue/queue-changes.ts';
import { reputationRoutes } from './reputation.ts';
import { reputationLimitRoutes } from './reputation-limits.ts';
import { messageContentRoutes } from './sending/message-content.ts';
import { messageActionRoutes, messageRoutes } from './sending/messages.ts';
import { resendRoute, type SendServices, sendRoutes } from './sending/send.ts';
import { sendBatchRoutes } from './sending/send-batch.ts';
import { type RawMail, rawSendRoute } from './sending/send-raw.ts';
import { testMessageRoutes } from './sending/test-messages.ts';
import { sequenceRoutes } from './sequences.ts';
import { statisticsRoutes } from './statistics.ts';
import { suppressionRoutes } from './suppressions.ts';
import { templatePreviewRoutes } from './template-preview.ts';
import { templateStarterRoutes } from './template-starters.ts';
import { templateRoutes } from './templates.ts';
import { webhookDeliveryRoutes } from './webhook-deliveries.ts';
import { webhookRoutes } from './webhooks.ts';

/*
 * The resources of the API: one import and one line each. They are listed, not found in the directory, so that the compiler
 * checks the services that each one gets, and the documentation has a chosen order. Everything else about an operation
 * (paths of the console, permissions, OpenAPI, validation) is derived from its `route()`.
 */

/** What the operations of the API call. Services that only the API uses are created here. */
export interface ApiServices extends SendServices {
  recorder: Recorder;
  onSuppressionChange: OnSuppressionChange;
  limits: AccountLimits;
  accounts: Accounts;
  domains: Domains;
  doctor: Pick<Doctor, 'examine'>;
  audience: Audience;
  backgroundImports: BackgroundImports;
  addressChecks: AddressChecks;
  hygiene: HygieneRuns;
  sunset: SunsetRules;
  /** Why nothing more is stored for an account; null: it is. */
  storageRefusal(accountId: string): Refusal | null;
  webhooks: Webhooks;
  rawMail: RawMail;
  resend: Resend;
  oneClick: OneClickNotice;
  describeCopy: DescribeCopy;
  campaigns: Campaigns;
  campaignSending: CampaignSending;
  threads: TemplateThreads;
  linkChecks: Pick<LinkChecks, 'check'>;
  spamFilters: Pick<SpamFilters, 'check'>;
  sequences: Sequences;
  media: Media;
  inbound: Inbound;
  delivery: Pick<Delivery, 'announce' | 'firstOutcome' | 'controls' | 'waits' | 'readAgain'>;
  sendingMonitor: SendingMonitor;
  backups: Pick<BackupSchedule, 'status'> | null;
  /** `public.url` with its actual port. */
  publicUrl: string;
}

/** All operations that require a key, in the order of the documentation. */
export function apiRoutes(context: Context, services: ApiServices): Route[] {
  return operations(context, services).map((route) =>
    withTestKeyCheck(withStorageCheck(route, services.storageRefusal), context.tables),
  );
}

function operations(context: Context, services: ApiServices): Route[] {
  const { audience, delivery, limits } = services;
  const { config, clock, reader, tables } = context;
  const deps = { ...context, ...services };
  const keys = createKeys(deps);
  const mayAdd = limits.mayAdd.templates;
  const complianceTemplates = createComplianceTemplates(context, mayAdd);
  const { announce } = delivery;
  const { obstacle } = delivery.waits;
  const queuedMail = createQueuedMail(context, { ...services, announce, obstacle });
  const orders = createControlOrders(context, () => void delivery.controls.refresh());
  const bulk = createBulkChanges(context, {
    config,
    recorder: services.recorder,
    read: {
      waiting: (filter, page) => reader.table(NO_ACCOUNT, 'queue', 'waiting', filter, page),
      counts: (filter) => reader.table(NO_ACCOUNT, 'queue', 'counts', filter),
    },
    onRerouted: delivery.readAgain,
  });
  return [
    ...domainRoutes(context, services),
    ...domainReportRoutes(context, services),
    ...domainGroupRoutes(services),
    ...sendRoutes(context, services),
    ...sendBatchRoutes(context, services),
    rawSendRoute(context, services),
    resendRoute(context, services),
    ...messageRoutes(context),
    ...messageContentRoutes(context, services),
    ...messageActionRoutes({ queuedMail }),
    ...statisticsRoutes(context),
    ...reputationLimitRoutes(context, services),
    ...reputationRoutes(context, { spamRates: createSpamRates(context) }),
    ...templatePreviewRoutes(context, { ...audience, ...services }),
    ...templateStarterRoutes(context),
    ...templateRoutes({ templates: createTemplates(context, mayAdd, services.threads) }),
    ...testMessageRoutes(context, {
      ...services,
      tests: createTestMessages(context, services.acceptance),
      sending: services.campaignSending,
    }),
    ...partialRoutes({ partials: createPartials(context, services.threads) }),
    ...mediaRoutes(context, services),
    ...complianceTemplateRoutes(context, { complianceTemplates }),
    ...campaignRoutes({ ...services, sending: services.campaignSending, account: tables.accounts.get }),
    ...sequenceRoutes(services),
    ...webhookRoutes(services),
    ...webhookDeliveryRoutes(services),
    ...inboundRouteRoutes(services),
    ...inboundRoutes(services),
    ...suppressionRoutes({
      suppressions: createSuppressionList(context, { ...services, mayAdd: limits.mayAdd.suppressions }),
    }),
    ...contactImportRoutes(context, { ...services, importer: audience.importer }),
    ...hygieneRoutes(services),
    ...sunsetRoutes(services),
    ...contactRoutes(audience),
    ...evidenceRoutes(context),
    ...contactEventRoutes(services),
    ...subscriptionGroupRoutes(context, { ...services, ...audience, complianceTemplates }),
    ...subscriptionRoutes(audience),
    ...segmentRoutes(audience),
    ...accountRoutes({
      accounts: services.accounts,
      limitsOf: (accountId) => readLimits(tables, config.limits.account, accountId, clock.now()),
    }),
    ...publicPagesRoutes({ pages: createPublicPageSettings(context) }),
    ...keyRoutes({ keys, seal: context.seal }),
    ...installationAccountRoutes(context, services),
    ...accountKeyRoutes({ ...services, keys, seal: context.seal }),
    ...doctorRoutes(services),
    ...inboxRoutes(context),
    ...installationRoutes(context, services),
    ...queueRoutes(context, { delivery, orders }),
    ...queueChangeRoutes(context, { bulk, queuedMail }),
  ];
}
