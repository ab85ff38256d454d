import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';

/** Every operation of the API while the disk is nearly full. */
const FULL = { 'limits.freeDiskBytes': 1e15 };
const NOBODY = `email_${'0'.repeat(32)}`;
const REFUSED = /disk is nearly full/;

/**
 * The operations with another method than GET that work: they remove data, stop something, opt someone out, store nothing, or
 * belong to the operator. A new operation is refused unless it is listed here and its description has `stores`.
 */
const WORKING = [
  // Removing.
  'deleteCampaign',
  'deleteComplianceTemplate',
  'deleteDomain',
  'deleteDomainGroup',
  'deleteInboundMail',
  'deleteInboundRoute',
  'deleteMedia',
  'deletePartial',
  'deleteSegment',
  'deleteSequence',
  'deleteSubscription',
  'deleteSubscriptionGroup',
  'deleteSuppressions',
  'deleteTemplate',
  'deleteWebhook',
  'eraseContact',
  'revokeKey',
  // Stopping and repeating what is stored.
  'cancelCampaign',
  'cancelContactImport',
  'cancelHygieneRun',
  'cancelMessage',
  'chooseCampaignWinner',
  'pauseCampaign',
  'pauseSequence',
  'rescheduleMessage',
  'resumeCampaign',
  'resumeSending',
  'retryMessage',
  'retryWebhookDelivery',
  // Opting out.
  'createSuppression',
  // Storing nothing.
  'previewSegment',
  'previewTemplate',
  'verifyDomain',
  // Of the operator.
  'createAccount',
  'createAccountKey',
  'createQueueControl',
  'deleteQueueControl',
  'patchInstallationAccount',
  'purgeQueue',
  'rerouteQueue',
  'retryQueue',
  'revokeAccountKey',
  'setAccountStatus',
  'updateInboxMail',
];

interface Operation {
  operationId: string;
  requestBody?: {
    content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }>;
  };
}

let daemon: InProcess;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess(FULL);
  client = await daemon.account('Full');
}, 60_000);
afterAll(() => daemon.stop());

/** The operations of the document that are no reads. */
async function writes(): Promise<{ method: string; path: string; operation: Operation }[]> {
  const response = await fetch(`${daemon.url}/openapi.json`);
  // The document is checked by test/http/openapi/.
  const { paths } = (await response.json()) as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'get' && method !== 'parameters')
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Sends the example of the documentation. */
async function call(method: string, path: string, { requestBody }: Operation): Promise<string> {
  const [[type, content] = ['', undefined]] = Object.entries(requestBody?.content ?? {});
  const example = content?.example ?? Object.values(content?.examples ?? {})[0]?.value;
  const response = await client.call(
    method,
    path.replaceAll(/\{\w*[iI]dentifier\}/g, NOBODY).replaceAll(/\{\w+\}/g, 'unknown'),
    typeof example === 'string' ? { rawBody: example, headers: { 'Content-Type': type } } : { body: example },
  );
  return `${response.status} ${response.text}`;
}

describe('while the disk is nearly full', () => {
  it('refuses every operation that adds data, and no other', async () => {
    const working: string[] = [];
    for (const { method, path, operation } of await writes()) {
      const answer = await call(method, path, operation);
      expect(answer, operation.operationId).not.toMatch(/^(?:401|403|500) /);
      if (!REFUSED.test(answer)) working.push(operation.operationId);
      else if (!answer.startsWith('200 ') && !answer.startsWith('202 '))
        expect(answer, operation.operationId).toMatch(/^503 /);
    }
    expect(working.toSorted()).toEqual(WORKING.toSorted());
  });
});

describe('an opt-out while the disk is nearly full', () => {
  const contact = `/web-setup/contacts/${NOBODY}`;
  const member = `/web-setup/contacts/subscription-groups/unknown/subscriptions/${NOBODY}`;
  it.each([
    ['of a contact', contact, { globalStatus: 'unsubscribed' }, 'CONTACT_NOT_FOUND'],
    ['of a member', member, { isActive: false }, 'SUBSCRIPTION_GROUP_NOT_FOUND'],
    ['of a contact with data', contact, { globalStatus: 'unsubscribed', customFields: {} }, 'UNAVAILABLE'],
    ['of a member with data', member, { isActive: false, customFields: {} }, 'UNAVAILABLE'],
  ])('%s is processed only without data', async (_, path, body, code) => {
    expect((await client.put(path, body)).error.code).toBe(code);
  });
});
