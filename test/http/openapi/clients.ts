import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTypeScript, { type OpenAPI3 } from 'openapi-typescript';
import type { OpenApiDocument } from '../../../src/http/openapi/document.ts';

/** What is used of the linter, which is not part of the installation: see .ci/tools. */
interface Redocly {
  createConfig(rules: object): Promise<object>;
  lintFromString(options: {
    source: string;
    absoluteRef: string;
    config: object;
  }): Promise<{ ruleId: string; message: string; location: { pointer?: string }[] }[]>;
}

/** Errors and warnings of the recommended rules of Redocly. */
export async function lintFaults(document: OpenApiDocument): Promise<string[]> {
  const libraries = new URL('../../../.ci/tools/libraries.mjs', import.meta.url).href;
  const { createConfig, lintFromString } = (await import(libraries)) as Redocly;
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // Contact identifiers start with `email_` or `phone_`, so they never equal `subscription-groups`.
      'no-ambiguous-paths': 'off',
    },
  });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: 'openapi.json',
    config,
  });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
}

/** A program that uses the generated types; the errors that it expects prove that the types are narrow. */
const CLIENT = `
import type { components, paths } from './api.ts';

type Schemas = components['schemas'];

const input: Schemas['WebhookInput'] = { url: 'https://example.com/hook', events: ['email_bounced'] };
export const patch: Schemas['WebhookPatch'] = { isActive: false };
// @ts-expect-error url is required.
export const incomplete: Schemas['WebhookInput'] = { events: '*' };
// @ts-expect-error The status is an enumeration.
export const unknown: Schemas['MessageStatus'] = 'lost';

type Fields<T> = T extends { requestBody?: { content: { 'application/json': infer Body } } } ? Body : never;
type Post<Path extends keyof paths> = paths[Path] extends { post: infer Operation } ? Fields<Operation> : never;

/** Fields with a default can be left out. */
const SUBSCRIPTIONS = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions';
export const subscription: Post<typeof SUBSCRIPTIONS> = { email: 'ada@example.net' };
export const suppression: Post<'/web-setup/suppressions'> = { email: 'ada@example.net' };
export const key: Post<'/web-setup/keys'> = { scopes: ['transactional'] };
export const replayed: Post<'/web-setup/webhooks/{webhookId}/replay'> = {
  from: '2026-02-01T00:00:00Z',
  to: '2026-02-02T00:00:00Z',
};

export const templateInput: Post<'/web-setup/templates'> = {
  name: 'Order',
  html: '<p>{{orderNumber}}</p>',
  variables: [{ name: 'orderNumber', type: 'string', required: true }, 'firstName'],
};
// @ts-expect-error A variable has a name.
export const unnamed: Post<'/web-setup/templates'> = { name: 'Order', variables: [{ type: 'string' }] };

/** Strings that are not set are absent, as clients of the interface declare them. */
interface DeclaredTemplate {
  templateId?: string;
  name: string;
  subject?: string;
  html: string;
  type?: 'transactional' | 'marketing';
}
interface DeclaredContact {
  contactIdentifier?: string;
  email?: string;
  firstName?: string;
  lastName?: string;
  phone?: string;
  consentMethod?: string;
  consentDetails?: string;
  consentTimestamp?: string;
}
interface DeclaredGroup {
  groupId?: string;
  name: string;
  description?: string;
  importStatus: string | null;
  unsubscribeTemplateId?: string;
}

export async function createTemplate(base: string): Promise<DeclaredTemplate> {
  type Result = paths['/web-setup/templates']['post']['responses'][201]['content']['application/json'];
  const body = JSON.stringify(templateInput);
  const result: Result = await (await fetch(base + '/web-setup/templates', { method: 'POST', body })).json();
  const names: string[] = result.data.template.variables.map((each) =>
    typeof each === 'string' ? each : each.name,
  );
  console.log(names.join());
  return result.data.template;
}

export const declared = (contact: Schemas['Contact'], group: Schemas['SubscriptionGroup']) =>
  [contact, group] satisfies [DeclaredContact, DeclaredGroup];

type ImportSuppressions = paths['/web-setup/suppressions/import']['post'];

export async function importSuppressions(base: string, file: string): Promise<string[]> {
  const body: NonNullable<ImportSuppressions['requestBody']>['content']['text/csv'] = file;
  const query: NonNullable<ImportSuppressions['parameters']['query']> = { format: 'sendgrid' };
  type Result = ImportSuppressions['responses'][200]['content']['application/json'];
  const path = '/web-setup/suppressions/import?' + new URLSearchParams({ format: query.format ?? 'auto' });
  const result: Result = await (await fetch(base + path, { method: 'POST', body })).json();
  return result.data.rejectedRows.map(({ line, reason }) => line + ': ' + reason);
}

type CreateWebhook = paths['/web-setup/webhooks']['post'];
type Created = CreateWebhook['responses'][201]['content']['application/json'];
type ApiError = Schemas['Error'];

export async function createWebhook(base: string): Promise<Schemas['WebhookDetail']> {
  const body: NonNullable<CreateWebhook['requestBody']>['content']['application/json'] = input;
  const response = await fetch(base + '/web-setup/webhooks', { method: 'POST', body: JSON.stringify(body) });
  const result: Created | ApiError = await response.json();
  if (!result.success) {
    const code: Schemas['ErrorCode'] = result.error.code;
    throw new Error(code);
  }
  const warnings: string[] = result.data.warnings ?? [];
  console.log(warnings.join());
  return result.data;
}

export async function campaignNames(base: string): Promise<string[]> {
  type Listed = paths['/web-setup/campaigns']['get']['responses'][200]['content']['application/json'];
  const listed: Listed = await (await fetch(base + '/web-setup/campaigns')).json();
  const campaigns: Schemas['Campaign'][] = listed.data.campaigns;
  return campaigns.map(({ name }) => name);
}
`;

/** Compiler errors of a client whose types are generated from the document. */
export async function clientFaults(document: OpenApiDocument): Promise<string> {
  // The type of the generator allows fewer keywords of schemas than OpenApiDocument.
  const types = await openapiTypeScript(structuredClone(document) as unknown as OpenAPI3, {
    // As its command does.
    defaultNonNullable: true,
  });
  const dir = mkdtempSync(join(tmpdir(), 'postrider-client-'));
  try {
    writeFileSync(join(dir, 'api.ts'), types);
    writeFileSync(join(dir, 'client.ts'), CLIENT);
    return await compilerOutput(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function compilerOutput(dir: string): Promise<string> {
  const compiler = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));
  const compilerOptions = {
    noEmit: true,
    strict: true,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    types: [],
    allowImportingTsExtensions: true,
  };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [compiler, '-p', dir], (error, stdout) => {
      if (error !== null && stdout === '') reject(error);
      else resolve(stdout);
    });
  });
}
