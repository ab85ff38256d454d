import { lazyProperties } from '../core/lazy-properties.ts';
import type { Refusal } from '../core/refusal.ts';
import { accountLimitTable, messageCountTable } from './account-limits.ts';
import { accountTable } from './accounts.ts';
import { apiKeyTable } from './api-keys.ts';
import { restoreHoldTable } from './backup/restore-holds.ts';
import { archivedCampaignTable } from './campaigns/archived-campaigns.ts';
import { campaignCountTable } from './campaigns/campaign-counts.ts';
import { campaignSendTable } from './campaigns/campaign-sends.ts';
import { campaignVariantTable } from './campaigns/campaign-variants.ts';
import { campaignTable } from './campaigns/campaigns.ts';
import { sequencePeopleTable, sequenceTable } from './campaigns/sequences.ts';
import { complianceTemplateTable } from './compliance-templates.ts';
import { backgroundImportTable, contactImportTable } from './contacts/background-imports.ts';
import { closedSignUpTable } from './contacts/closed-sign-ups.ts';
import { consentTable } from './contacts/consent.ts';
import { contactTable } from './contacts/contacts.ts';
import { erasureTable } from './contacts/contacts-erasure.ts';
import { engagementTable } from './contacts/engagement.ts';
import { hygieneTable } from './contacts/hygiene.ts';
import { personalDataTable } from './contacts/personal-data.ts';
import { segmentColumnTable } from './contacts/segment-columns.ts';
import { segmentTable } from './contacts/segments.ts';
import { subscriptionGroupTable } from './contacts/subscription-groups.ts';
import { groupOptOutTable, subscriptionTable } from './contacts/subscriptions.ts';
import { sunsetTable } from './contacts/sunset.ts';
import type { Database } from './database/database.ts';
import { siteLimitTable } from './delivery/site-limits.ts';
import { unclassifiedReplyTable } from './delivery/unclassified-replies.ts';
import { certificateTable } from './domains/certificates.ts';
import { dmarcReportTable } from './domains/dmarc-reports.ts';
import { domainGroupTable } from './domains/domain-groups.ts';
import { dkimKeyTable, domainCheckTable, domainTable } from './domains/domains.ts';
import { platformKeyTable } from './domains/platform-keys.ts';
import { tlsReportTable } from './domains/tls-reports.ts';
import { egressCountTable } from './egress/egress-counts.ts';
import { egressHealthTable, egressWarmupTable } from './egress/egress-health.ts';
import { idempotencyTable } from './idempotency.ts';
import { inboundTable } from './inbound/inbound-mails.ts';
import { inboundRouteTable } from './inbound/inbound-routes.ts';
import { keptMailTable } from './kept-mail.ts';
import { freeSpaceTable } from './maintenance/free-space.ts';
import { retentionTable } from './maintenance/retention.ts';
import { mediaTable } from './media.ts';
import { eventFeed } from './messages/event-feed.ts';
import { eventTable, visitTable } from './messages/events.ts';
import { hourlyCountTable } from './messages/hourly-counts.ts';
import { messageList } from './messages/message-list.ts';
import { delayNoticeTable, messageTable, sharedContentTable } from './messages/messages.ts';
import { queueTable } from './messages/queue.ts';
import { queueControlTable, queueRerouteTable } from './messages/queue-controls.ts';
import { queueList } from './messages/queue-list.ts';
import { tagCountTable } from './messages/tag-counts.ts';
import { backlogTable } from './monitoring/backlog.ts';
import { partialTable } from './partials.ts';
import { auditTable } from './people/audit.ts';
import { identityTable, passkeyTable } from './people/credentials.ts';
import { attentionSeenTable, failureNoticeTable, noticeMailTable } from './people/notices.ts';
import { membershipTable, peopleTable } from './people/people.ts';
import { savedViewTable } from './people/saved-views.ts';
import { sessionTable, signInLinkTable } from './people/sessions.ts';
import { publicPagesTable } from './public-pages.ts';
import { reputationCountTable } from './reputation/reputation-counts.ts';
import { spamRateTable } from './reputation/spam-rates.ts';
import { sealedValueTable } from './sealed-values.ts';
import { sendingLimitTable } from './sending-limits.ts';
import { settingsTable } from './settings.ts';
import { suppressionRemovalTable, suppressionTable } from './suppressions.ts';
import { templateTable, templateVersionTable } from './templates.ts';
import { stsPolicyTable } from './tls/sts-policies.ts';
import { tlsSessionTable } from './tls/tls-sessions.ts';
import { accountMoveTable } from './transfer/account-moves.ts';
import { accountImportTable, importedRecordTable, tokenKeyTable } from './transfer/imported-records.ts';
import { movedMessageTable } from './transfer/moved-messages.ts';
import { webhookDeliveryTable } from './webhook-deliveries.ts';
import { webhookTable } from './webhooks.ts';

/**
 * All tables of one connection. They may be read at any time: the writer runs each group synchronously, so that no read
 * sees a part of it. The statements of a table are prepared at its first use: a command or a thread uses few tables, and
 * preparing all takes 6 ms.
 */
export function createTables(db: Database) {
  return lazyProperties({
    settings: () => settingsTable(db),
    accounts: () => accountTable(db),
    accountLimits: () => accountLimitTable(db),
    publicPages: () => publicPagesTable(db),
    messageCounts: () => messageCountTable(db),
    apiKeys: () => apiKeyTable(db),
    domainGroups: () => domainGroupTable(db),
    domains: () => domainTable(db),
    domainChecks: () => domainCheckTable(db),
    dkimKeys: () => dkimKeyTable(db),
    platformKeys: () => platformKeyTable(db),
    messages: () => ({ ...messageTable(db), ...messageList(db) }),
    sharedContents: () => sharedContentTable(db),
    visits: () => visitTable(db),
    queue: () => ({ ...queueTable(db), ...queueList(db) }),
    queueControls: () => queueControlTable(db),
    queueReroutes: () => queueRerouteTable(db),
    events: () => ({ ...eventTable(db), ...eventFeed(db) }),
    idempotency: () => idempotencyTable(db),
    suppressions: () => suppressionTable(db),
    contacts: () => contactTable(db),
    consents: () => consentTable(db),
    engagement: () => engagementTable(db),
    segments: () => segmentTable(db),
    segmentColumns: () => segmentColumnTable(db),
    subscriptionGroups: () => subscriptionGroupTable(db),
    subscriptions: () => subscriptionTable(db),
    closedSignUps: () => closedSignUpTable(db),
    groupOptOuts: () => groupOptOutTable(db),
    contactImports: () => contactImportTable(db),
    backgroundImports: () => backgroundImportTable(db),
    erasures: () => erasureTable(db),
    hygiene: () => hygieneTable(db),
    sunset: () => sunsetTable(db),
    personalData: () => personalDataTable(db),
    media: () => mediaTable(db),
    keptMail: () => keptMailTable(db),
    inboundRoutes: () => inboundRouteTable(db),
    inbound: () => inboundTable(db),
    delayNotices: () => delayNoticeTable(db),
    hourlyCounts: () => hourlyCountTable(db),
    tagCounts: () => tagCountTable(db),
    siteLimits: () => siteLimitTable(db),
    unclassifiedReplies: () => unclassifiedReplyTable(db),
    egressCounts: () => egressCountTable(db),
    reputationCounts: () => reputationCountTable(db),
    spamRates: () => spamRateTable(db),
    egressWarmup: () => egressWarmupTable(db),
    egressHealth: () => egressHealthTable(db),
    dmarcReports: () => dmarcReportTable(db),
    tlsReports: () => tlsReportTable(db),
    partials: () => partialTable(db),
    templates: () => templateTable(db),
    templateVersions: () => templateVersionTable(db),
    complianceTemplates: () => complianceTemplateTable(db),
    archivedCampaigns: () => archivedCampaignTable(db),
    campaigns: () => campaignTable(db),
    campaignCounts: () => campaignCountTable(db),
    campaignSends: () => campaignSendTable(db),
    campaignVariants: () => campaignVariantTable(db),
    sendingLimits: () => sendingLimitTable(db),
    sequences: () => sequenceTable(db),
    sequencePeople: () => sequencePeopleTable(db),
    certificates: () => certificateTable(db),
    stsPolicies: () => stsPolicyTable(db),
    tlsSessions: () => tlsSessionTable(db),
    webhooks: () => webhookTable(db),
    webhookDeliveries: () => webhookDeliveryTable(db),
    people: () => peopleTable(db),
    memberships: () => membershipTable(db),
    signInLinks: () => signInLinkTable(db),
    consoleSessions: () => sessionTable(db),
    passkeys: () => passkeyTable(db),
    savedViews: () => savedViewTable(db),
    identities: () => identityTable(db),
    attentionSeen: () => attentionSeenTable(db),
    failureNotices: () => failureNoticeTable(db),
    noticeMails: () => noticeMailTable(db),
    suppressionRemovals: () => suppressionRemovalTable(db),
    auditRecords: () => auditTable(db),
    tokenKeys: () => tokenKeyTable(db),
    sealedValues: () => sealedValueTable(db),
    movedMessages: () => movedMessageTable(db),
    accountImports: () => accountImportTable(db),
    accountMoves: () => accountMoveTable(db),
    importedRecords: () => importedRecordTable(db),
    restoreHolds: () => restoreHoldTable(db),
    retention: () => retentionTable(db),
    freeSpace: () => freeSpaceTable(db),
    backlog: () => backlogTable(db),
  });
}

export type Tables = ReturnType<typeof createTables>;

/** Prepares the statements of all tables. Throws when the schema lacks something that they need. */
export function prepareTables(tables: Tables): void {
  for (const name of Object.keys(tables)) Reflect.get(tables, name);
}

/** Returns a Refusal when an account may not have one more of a resource; called in the unit of work that inserts it. */
export type MayAdd = (tables: Tables, accountId: string) => Refusal | null;
