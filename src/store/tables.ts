import type { Refusal } from '../core/refusal.ts';
import { accountLimitTable, messageCountTable } from './account-limits.ts';
import { accountTable } from './accounts.ts';
import { apiKeyTable } from './api-keys.ts';
import { campaignCountTable } from './campaign-counts.ts';
import { campaignSendTable } from './campaign-sends.ts';
import { campaignTable } from './campaigns.ts';
import { certificateTable } from './certificates.ts';
import { complianceTemplateTable } from './compliance-templates.ts';
import { consentTable } from './consent.ts';
import { contactTable } from './contacts.ts';
import { erasureTable } from './contacts-erasure.ts';
import { contactImportTable } from './contacts-imports.ts';
import type { Database } from './database.ts';
import { delayNoticeTable } from './delay-notices.ts';
import { dmarcReportTable } from './dmarc-reports.ts';
import { domainGroupTable } from './domain-groups.ts';
import { dkimKeyTable, domainTable } from './domains.ts';
import { eventFeed } from './event-feed.ts';
import { eventTable } from './events.ts';
import { freeSpaceTable } from './free-space.ts';
import { idempotencyTable } from './idempotency.ts';
import { keptMailTable } from './kept-mail.ts';
import { messageList } from './message-list.ts';
import { messageTable } from './messages.ts';
import { queueTable } from './queue.ts';
import { retentionTable } from './retention.ts';
import { settingsTable } from './settings.ts';
import { sharedContentTable } from './shared-contents.ts';
import { subscriptionGroupTable } from './subscription-groups.ts';
import { groupOptOutTable, subscriptionTable } from './subscriptions.ts';
import { suppressionTable } from './suppressions.ts';
import { templateTable } from './templates.ts';
import { tlsReportTable } from './tls-reports.ts';
import { visitTable } from './visits.ts';
import { webhookDeliveryTable } from './webhook-deliveries.ts';
import { webhookTable } from './webhooks.ts';

/**
 * All tables over one connection. Reading through it is free at any time: writes happen inside the writer's
 * groups only, which run without a pause, so no reader ever sees half of one.
 */
export function createTables(db: Database) {
  return {
    settings: settingsTable(db),
    accounts: accountTable(db),
    accountLimits: accountLimitTable(db),
    messageCounts: messageCountTable(db),
    apiKeys: apiKeyTable(db),
    domainGroups: domainGroupTable(db),
    domains: domainTable(db),
    dkimKeys: dkimKeyTable(db),
    messages: { ...messageTable(db), list: messageList(db).list },
    sharedContents: sharedContentTable(db),
    visits: visitTable(db),
    queue: queueTable(db),
    events: { ...eventTable(db), ...eventFeed(db) },
    idempotency: idempotencyTable(db),
    suppressions: suppressionTable(db),
    contacts: contactTable(db),
    consents: consentTable(db),
    subscriptionGroups: subscriptionGroupTable(db),
    subscriptions: subscriptionTable(db),
    groupOptOuts: groupOptOutTable(db),
    contactImports: contactImportTable(db),
    erasures: erasureTable(db),
    keptMail: keptMailTable(db),
    delayNotices: delayNoticeTable(db),
    dmarcReports: dmarcReportTable(db),
    tlsReports: tlsReportTable(db),
    templates: templateTable(db),
    complianceTemplates: complianceTemplateTable(db),
    campaigns: campaignTable(db),
    campaignCounts: campaignCountTable(db),
    campaignSends: campaignSendTable(db),
    certificates: certificateTable(db),
    webhooks: webhookTable(db),
    webhookDeliveries: webhookDeliveryTable(db),
    retention: retentionTable(db),
    freeSpace: freeSpaceTable(db),
  };
}

export type Tables = ReturnType<typeof createTables>;

/** Whether an account may have one more of a resource; called in the unit of work that inserts it. */
export type MayAdd = (tables: Tables, accountId: string) => Refusal | null;
