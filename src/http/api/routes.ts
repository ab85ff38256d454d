import type { Accounts } from '../../accounts/accounts.ts';
import { createKeys } from '../../accounts/keys.ts';
import { type AccountLimits, readLimits } from '../../accounts/limits.ts';
import type { BackgroundImports } from '../../audience/import/background.ts';
import type { Audience } from '../../audience/service.ts';
import type { BackupSchedule } from '../../backup/schedule.ts';
import type { Campaigns } from '../../campaigns/campaigns.ts';
import type { CampaignSending } from '../../campaigns/send.ts';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { Ids } from '../../core/ids.ts';
import type { Log } from '../../core/log.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { createBulkChanges } from '../../delivery/control/bulk.ts';
import { createControlOrders } from '../../delivery/control/orders.ts';
import type { Delivery } from '../../delivery/delivery.ts';
import type { DescribeCopy } from '../../delivery/prepare.ts';
import type { Doctor } from '../../doctor/service.ts';
import type { Domains } from '../../domains/service.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import { domainOf } from '../../mail/address.ts';
import type { Acceptance } from '../../sending/accept.ts';
import { checkDomain, type Sender } from '../../sending/checks.ts';
import type { OneClickNotice } from '../../sending/one-click.ts';
import { createQueuedMail, type QueuedMail } from '../../sending/queued-mail.ts';
import type { Resend } from '../../sending/resend.ts';
import type { Writer } from '../../store/database/writer.ts';
import { NO_ACCOUNT, type Reader } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { createSuppressionList } from '../../suppression/list.ts';
import { createComplianceTemplates } from '../../templates/compliance-templates.ts';
import { createTemplates } from '../../templates/templates.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import type { Route } from '../route.ts';
import { withStorageCheck } from '../storage-check.ts';
import { accountRoutes } from './accounts/account.ts';
import { installationAccountRoutes } from './accounts/accounts.ts';
import { accountKeyRoutes, keyRoutes } from './accounts/keys.ts';
import { campaignRoutes } from './campaigns.ts';
import { complianceTemplateRoutes } from './compliance-templates.ts';
import { contactRoutes } from './contacts/contacts.ts';
import { contactImportRoutes } from './contacts/contacts-import.ts';
import { subscriptionGroupRoutes } from './contacts/subscription-groups.ts';
import { subscriptionRoutes } from './contacts/subscriptions.ts';
import { doctorRoutes } from './doctor.ts';
import { domainCheckRoutes } from './domains/domain-checks.ts';
import { domainGroupRoutes } from './domains/domain-groups.ts';
import { domainReportRoutes } from './domains/domain-reports.ts';
import { domainRoutes } from './domains/domains.ts';
import { useCaseRoutes } from './domains/use-cases.ts';
import { inboxRoutes } from './inbox.ts';
import { installationRoutes } from './installation.ts';
import { queueRoutes } from './queue/queue.ts';
import { queueChangeRoutes } from './queue/queue-changes.ts';
import { queueControlRoutes } from './queue/queue-controls.ts';
import { messageActionRoutes } from './sending/message-actions.ts';
import { messageContentRoutes } from './sending/message-content.ts';
import { messageRoutes } from './sending/messages.ts';
import { resendRoute } from './sending/resend.ts';
import { sendRoutes } from './sending/send.ts';
import { sendBatchRoutes } from './sending/send-batch.ts';
import { statisticsRoutes } from './statistics.ts';
import { suppressionRoutes } from './suppressions.ts';
import { templatePreviewRoutes } from './template-preview.ts';
import { templateRoutes } from './templates.ts';
import { webhookDeliveryRoutes } from './webhook-deliveries.ts';
import { webhookRoutes } from './webhooks.ts';

/** What the operations of the API call. Services that only the API uses are created here. */
export interface ApiDeps {
  clock: Clock;
  ids: Ids;
  tables: Tables;
  reader: Reader;
  writer: Writer;
  recorder: Recorder;
  limits: AccountLimits;
  accounts: Accounts;
  domains: Domains;
  doctor: Pick<Doctor, 'examine'>;
  audience: Audience;
  backgroundImports: BackgroundImports;
  /** Why nothing more is stored for an account; null: it is. */
  storageRefusal(accountId: string): Refusal | null;
  webhooks: Webhooks;
  acceptance: Acceptance;
  resend: Resend;
  oneClick: OneClickNotice;
  describeCopy: DescribeCopy;
  campaigns: Campaigns;
  campaignSending: CampaignSending;
  delivery: Pick<
    Delivery,
    'announce' | 'firstOutcome' | 'obstacle' | 'controls' | 'inspection' | 'readAgain'
  >;
  config: Config;
  backups: Pick<BackupSchedule, 'status'> | null;
  log: Log;
  /** `public.url` with its actual port. */
  publicUrl: string;
  /** For durations. */
  monotonic: Clock;
  onSuppressionChange: OnSuppressionChange;
}

/** All operations that require a key, in the order of the documentation. */
export function apiRoutes(deps: ApiDeps): Route[] {
  return operations(deps).map((route) => withStorageCheck(route, deps.storageRefusal));
}

function operations(deps: ApiDeps): Route[] {
  const { acceptance, audience, delivery, domains, limits, oneClick, reader, tables, webhooks } = deps;
  const account = tables.accounts.get;
  const keys = createKeys(deps);
  const mayAdd = limits.mayAdd.templates;
  const complianceTemplates = createComplianceTemplates(deps, mayAdd);
  const queuedMail = createQueuedMail(deps, {
    ...deps,
    announce: delivery.announce,
    obstacle: delivery.obstacle,
  });
  const sends = {
    acceptance,
    account,
    firstOutcome: delivery.firstOutcome,
    statusOf: (messageId: string) => tables.messages.byId(messageId)?.status ?? 'queued',
  };
  return [
    ...useCaseRoutes({ domains }),
    ...domainRoutes({ domains }),
    ...domainCheckRoutes(deps),
    ...domainReportRoutes(deps),
    ...domainGroupRoutes({ domains }),
    ...sendRoutes(sends),
    ...sendBatchRoutes({ ...sends, log: deps.log }),
    resendRoute({ resend: deps.resend, account }),
    ...messageRoutes({ reader }),
    ...messageContentRoutes(deps),
    ...messageActionRoutes({ queuedMail }),
    ...statisticsRoutes(deps),
    ...templatePreviewRoutes({ tables, contacts: audience.contacts }),
    ...templateRoutes({ templates: createTemplates(deps, mayAdd) }),
    ...complianceTemplateRoutes({
      complianceTemplates,
      hasDomain: (accountId, domain) => tables.domains.named(accountId, domain).length > 0,
    }),
    ...campaignRoutes({ campaigns: deps.campaigns, sending: deps.campaignSending, account, oneClick }),
    ...webhookRoutes({ webhooks }),
    ...webhookDeliveryRoutes({ webhooks }),
    ...suppressionRoutes({
      suppressions: createSuppressionList(deps, { ...deps, mayAdd: limits.mayAdd.suppressions }),
    }),
    ...contactImportRoutes({
      tables,
      importer: audience.importer,
      backgroundImports: deps.backgroundImports,
      storageRefusal: deps.storageRefusal,
    }),
    ...contactRoutes(audience),
    ...subscriptionGroupRoutes({
      ...audience,
      complianceTemplates,
      publicUrl: deps.publicUrl,
      senderRefusal: ({ accountId, allowFrom }, address) => {
        const owner = account(accountId);
        if (owner === null) return null;
        const sender: Sender = { account: owner, useCase: 'tx', allowFrom, allowEssential: true };
        const domain = checkDomain(tables, sender, { fromDomain: domainOf(address) });
        return isRefusal(domain) ? domain : null;
      },
    }),
    ...subscriptionRoutes(audience),
    ...accountRoutes({
      accounts: deps.accounts,
      limitsOf: (accountId) => readLimits(tables, deps.config.limits.account, accountId, deps.clock.now()),
    }),
    ...keyRoutes({ keys }),
    ...installationAccountRoutes({ ...deps, defaults: () => deps.config.limits.account }),
    ...accountKeyRoutes({ ...deps, keys }),
    ...doctorRoutes(deps),
    ...inboxRoutes(deps),
    ...installationRoutes(deps),
    ...queueOperations(deps, queuedMail),
  ];
}

/** Operations on the queue of all accounts. */
function queueOperations(deps: ApiDeps, queuedMail: QueuedMail): Route[] {
  const { delivery, reader, log, monotonic } = deps;
  const orders = createControlOrders({ ...deps, onChange: () => void delivery.controls.refresh() });
  const bulk = createBulkChanges({
    ...deps,
    read: {
      waiting: (filter, page) => reader.table(NO_ACCOUNT, 'queue', 'waiting', filter, page),
      counts: (filter) => reader.table(NO_ACCOUNT, 'queue', 'counts', filter),
    },
    onRerouted: delivery.readAgain,
  });
  return [
    ...queueRoutes(deps),
    ...queueControlRoutes({ orders }),
    ...queueChangeRoutes({
      bulk,
      retry: (id) => queuedMail.retry(null, id),
      probeSuspended: queuedMail.probeSuspended,
      clock: monotonic,
      log,
    }),
  ];
}
