import type { Permission } from '../../people/roles.ts';

/**
 * The permission that each operation of the API requires in the console. An operation that is not listed requires
 * `operator`; test/http/console/matrix.test.ts checks that all are listed.
 */
export const OPERATION_PERMISSIONS = {
  // The account.
  getAccount: 'read',
  updateAccount: 'account',
  listKeys: 'keys',
  createKey: 'keys',
  revokeKey: 'keys',
  // Domains.
  listUseCases: 'read',
  listDomains: 'read',
  registerDomain: 'develop',
  getDomain: 'read',
  updateDomain: 'develop',
  deleteDomain: 'develop',
  assignDomainGroup: 'develop',
  getDomainDnsRecords: 'read',
  getDomainLastCheck: 'read',
  verifyDomain: 'develop',
  rotateDomainDkim: 'develop',
  getDmarcPath: 'read',
  getDomainReports: 'read',
  listDomainGroups: 'read',
  createDomainGroup: 'develop',
  listDomainGroupsOfOwner: 'read',
  getDomainGroup: 'read',
  updateDomainGroup: 'develop',
  deleteDomainGroup: 'develop',
  // Sending, messages, events.
  sendTransactional: 'send',
  sendMarketing: 'send',
  sendTransactionalBatch: 'send',
  resendTransactional: 'send',
  sendMarketingBatch: 'send',
  listMessages: 'read',
  getMessage: 'read',
  listEvents: 'read',
  getStatistics: 'read',
  // Contents of messages have links to sign in and to reset passwords.
  getMessageContent: 'messages',
  getMessageSource: 'messages',
  cancelMessage: 'messages',
  retryMessage: 'messages',
  // Templates and campaigns.
  listTemplates: 'read',
  createTemplate: 'prepare',
  getTemplate: 'read',
  listTemplateVersions: 'read',
  getTemplateVersion: 'read',
  previewTemplate: 'read',
  updateTemplate: 'prepare',
  deleteTemplate: 'prepare',
  listComplianceTemplates: 'read',
  createComplianceTemplate: 'prepare',
  getComplianceTemplate: 'read',
  updateComplianceTemplate: 'prepare',
  deleteComplianceTemplate: 'prepare',
  listCampaigns: 'read',
  createCampaign: 'prepare',
  updateCampaign: 'prepare',
  patchCampaign: 'prepare',
  getCampaign: 'read',
  deleteCampaign: 'prepare',
  getCampaignAnalytics: 'read',
  getCampaignContent: 'read',
  sendCampaign: 'send',
  pauseCampaign: 'send',
  resumeCampaign: 'send',
  cancelCampaign: 'send',
  // Webhooks. A single webhook is shown with its secret.
  listWebhooks: 'read',
  createWebhook: 'develop',
  updateWebhook: 'develop',
  patchWebhook: 'develop',
  getWebhook: 'develop',
  deleteWebhook: 'develop',
  rotateWebhookSecret: 'develop',
  testWebhook: 'develop',
  listWebhookDeliveries: 'read',
  getWebhookDelivery: 'read',
  retryWebhookDelivery: 'develop',
  replayWebhook: 'develop',
  // Contacts, groups, subscriptions, suppressions.
  listContacts: 'read',
  createContact: 'contacts',
  getContact: 'read',
  replaceContactFields: 'contacts',
  updateContact: 'contacts',
  listConsentHistory: 'read',
  importContacts: 'contacts',
  listContactImports: 'read',
  getContactImport: 'read',
  cancelContactImport: 'contacts',
  eraseContact: 'erase',
  listSubscriptionGroups: 'read',
  createSubscriptionGroup: 'contacts',
  getSubscriptionGroup: 'read',
  updateSubscriptionGroup: 'contacts',
  patchSubscriptionGroup: 'contacts',
  deleteSubscriptionGroup: 'contacts',
  listSubscriptions: 'read',
  addSubscription: 'contacts',
  getSubscription: 'read',
  putSubscription: 'contacts',
  patchSubscription: 'contacts',
  deleteSubscription: 'contacts',
  listSuppressions: 'read',
  listSuppressionRemovals: 'read',
  createSuppression: 'contacts',
  importSuppressions: 'contacts',
  deleteSuppressions: 'contacts',
  // The installation.
  listAccounts: 'operator',
  createAccount: 'operator',
  getInstallationAccount: 'operator',
  patchInstallationAccount: 'operator',
  setAccountStatus: 'operator',
  listAccountKeys: 'operator',
  createAccountKey: 'operator',
  revokeAccountKey: 'operator',
  getDoctorReport: 'operator',
  getInstallation: 'operator',
  listInbox: 'operator',
  getInboxMail: 'operator',
  getInboxSource: 'operator',
  updateInboxMail: 'operator',
  getInstallationStatistics: 'operator',
  getQueue: 'operator',
  listQueueAccounts: 'operator',
  explainQueuedMessage: 'operator',
  explainQueuedDestination: 'operator',
  listQueueSites: 'operator',
  listQueueControls: 'operator',
  createQueueControl: 'operator',
  deleteQueueControl: 'operator',
  purgeQueue: 'operator',
  rerouteQueue: 'operator',
  retryQueue: 'operator',
} as const satisfies Readonly<Record<string, Permission>>;

/** Operations of the console itself, as the audit log names them without `console.`. */
export type ConsoleOperation =
  | 'signIn'
  | 'signOut'
  | 'signInWithLink'
  | 'signInWithPassword'
  | 'signInWithPasskey'
  | 'confirmSession'
  | 'confirmSessionWithPasskey'
  | 'beginPasskey'
  | 'setPassword'
  | 'removePassword'
  | 'beginTotp'
  | 'setTotp'
  | 'listMyPasskeys'
  | 'beginMyPasskey'
  | 'addMyPasskey'
  | 'removeMyPasskey'
  | 'getSession'
  | 'getMe'
  | 'getAttention'
  | 'markAttentionSeen'
  | 'getWebhookHealth'
  | 'countMessages'
  | 'listViews'
  | 'saveView'
  | 'deleteView'
  | 'getAudience'
  | 'getCampaignFigures'
  | 'updateMe'
  | 'listMySessions'
  | 'revokeMySession'
  | 'revokeMyOtherSessions'
  | 'listPeople'
  | 'invitePerson'
  | 'updatePerson'
  | 'removePerson'
  | 'recoverPerson'
  | 'sendTestMessage'
  | 'createPreview'
  | 'getPreview'
  | 'listAuditRecords'
  | 'exportAuditRecords'
  | 'exportContacts'
  | 'stream';

/** An operation of the API. */
export type ApiOperationId = keyof typeof OPERATION_PERMISSIONS;

/** An operation as the audit log names it. */
export type OperationId = ApiOperationId | `console.${ConsoleOperation}`;

/** Operations of the API that require a person who was confirmed recently. */
export const REAUTHENTICATED: ReadonlySet<string> = new Set([
  'eraseContact',
  'purgeQueue',
  'setAccountStatus',
  'createAccount',
  'createAccountKey',
  'revokeAccountKey',
  'createKey',
  'revokeKey',
]);

/** Exports: reads of the API and of the console that are recorded in the audit log. */
export const AUDITED_READS: ReadonlySet<string> = new Set([
  'console.exportAuditRecords',
  'console.exportContacts',
]);

/** Operations that change nothing although they have a body: the audit log has their denials only. */
export const READS_WITH_BODY: ReadonlySet<string> = new Set(['previewTemplate']);

/** The permission of an operation. */
export function permissionOf(operationId: string): Permission {
  const permissions: Readonly<Record<string, Permission>> = OPERATION_PERMISSIONS;
  return Object.hasOwn(permissions, operationId) ? (permissions[operationId] ?? 'operator') : 'operator';
}
