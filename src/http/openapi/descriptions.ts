import type { RefusalCode } from '../../core/refusal.ts';

/** What each tag contains, as the documentation introduces it. */
export const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  Domains: 'Sending domains, their DNS records, verification and DKIM keys.',
  'Domain groups': 'Groups that organize the domains of an account.',
  Sending: 'Send transactional and marketing email, one message or a batch.',
  'Messages and events': 'Status and history of messages, and the feed of all events.',
  Templates: 'Stored content that a send refers to by id.',
  'Compliance templates': 'Content of the compliance variables, such as the unsubscribe footer.',
  Campaigns: 'Send an email to a subscription group, and read its results.',
  Webhooks: 'Endpoints that receive events as signed POST requests, and their deliveries.',
  Suppressions: 'Addresses that the account cannot send to.',
  Contacts: 'Recipients with their profile and consent, and their erasure.',
  'Subscription groups': 'Lists that contacts subscribe to.',
  Subscriptions: 'Memberships of contacts in subscription groups.',
  Account: 'Name, company and postal address of the account.',
  Installation:
    'The installation as a whole. Requires a key with the scope `operator`, which only the command line creates: `postrider key create --account ID --scope operator`.',
  Queue:
    'Queued mail of all accounts: why it waits, pauses, purging and rerouting. Requires a key with the scope `operator`.',
  Operations: 'Health, metrics and documentation. These operations require no API key.',
};

/** What each error code means. */
export const ERROR_DESCRIPTIONS: Record<RefusalCode, string> = {
  INVALID_JSON: 'The body is not valid JSON.',
  SUPPRESSION_FILE:
    'The file is an export of suppressions, whose addresses are not imported as contacts: import it with `POST /web-setup/suppressions/import`.',
  VALIDATION_ERROR: 'A field, path parameter or query parameter is missing or invalid; `details` names it.',
  UNAUTHENTICATED: 'The key is missing, unknown or revoked, or does not belong to the account in `X-Id`.',
  INSUFFICIENT_SCOPE: 'The key does not have the scope of this operation.',
  KEY_NOT_ALLOWED: 'The key is restricted to other caller addresses or From domains.',
  ACCOUNT_DISABLED: 'The account is disabled.',
  DOMAIN_NOT_REGISTERED: 'The `from` domain is not registered in this account.',
  DOMAIN_NOT_VERIFIED: 'The `from` domain is registered but not verified.',
  USE_CASE_MISMATCH: 'The `from` domain is registered for the other use case only.',
  CONSENT_REQUIRED: 'The recipient has not given consent.',
  RECIPIENT_UNSUBSCRIBED: 'The recipient has unsubscribed.',
  RECIPIENT_SUPPRESSED: 'The recipient is suppressed; `details` has the reason and the time.',
  ACCOUNT_NOT_FOUND: 'The account does not exist.',
  KEY_NOT_FOUND: 'The key does not exist.',
  DOMAIN_NOT_FOUND: 'The account has no such domain.',
  GROUP_NOT_FOUND: 'The account has no such domain group.',
  SUBSCRIPTION_GROUP_NOT_FOUND: 'The account has no such subscription group.',
  SUBSCRIPTION_NOT_FOUND: 'The contact is not a member of the group.',
  CONTACT_NOT_FOUND: 'The account has no such contact.',
  WEBHOOK_NOT_FOUND: 'The account has no such webhook.',
  CAMPAIGN_NOT_FOUND: 'The account has no such campaign.',
  MESSAGE_NOT_FOUND: 'The account has no such message.',
  TEMPLATE_NOT_FOUND: 'The account has no such template.',
  USE_CASE_NOT_FOUND: 'The use case does not exist.',
  NOT_FOUND: 'The resource does not exist.',
  METHOD_NOT_ALLOWED: 'The path does not support this method; `Allow` lists those that it supports.',
  REQUEST_TIMEOUT: 'The body arrived too slowly.',
  CONTACT_ALREADY_EXISTS: 'A contact with this email address or phone number already exists.',
  GROUP_NOT_EMPTY: 'The group still has domains, or is the default group.',
  INVALID_STATE: 'The resource is not in a state that allows this operation.',
  LIMIT_REACHED: 'The account has reached its limit for this resource; `details` names the limit.',
  IDEMPOTENCY_IN_PROGRESS: 'A request with the same `Idempotency-Key` is in progress.',
  PAYLOAD_TOO_LARGE: 'The body exceeds its limit.',
  ATTACHMENTS_TOO_LARGE: 'The decoded attachments exceed 2,097,152 bytes in total.',
  UNSUPPORTED_MEDIA_TYPE: 'The media type of the body is not supported.',
  TOO_MANY_ATTACHMENTS: 'The message has more than 10 attachments.',
  COMPLIANCE_TEMPLATE_MISSING: 'The html lacks a compliance variable; `details` names it.',
  COMPANY_ADDRESS_MISSING: 'The account has no company name and postal address to insert.',
  TEMPLATE_VARIABLE_MISSING:
    'A variable has no value, or its name has characters that names cannot have; `details` names it.',
  TEMPLATE_SYNTAX:
    'The content of marketing mail has the syntax of another template language, which would be sent as text; `details` names it and our form.',
  IDEMPOTENCY_KEY_REUSED: 'The same `Idempotency-Key` was sent with a different body.',
  HOST_NOT_ALLOWED: 'The API is not served under the name in `Host`; `api.hosts` lists the names.',
  RATE_LIMITED:
    'Too many requests, concurrent requests, messages or failed authentications; the message names the limit, `Retry-After` has the time to wait.',
  INTERNAL_ERROR: 'The service failed; its log has the error under the request id.',
  UNAVAILABLE:
    'The service is shutting down, its database is not available (disk full, I/O error, locked), its queue exceeds its limit, or too many queries are waiting. Nothing was accepted; try again after `Retry-After`.',
  QUERY_TOO_BROAD:
    'The query was stopped because it reads more rows than its time budget allows (`readers.budget`); `details` names the parameters that narrow it.',
};
