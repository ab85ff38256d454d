import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Accounts } from '../../../src/accounts/accounts.ts';
import { REFUSALS } from '../../../src/core/refusal.ts';
import { accountRoutes } from '../../../src/http/api/account.ts';
import type { OpenApiDocument, OpenApiOperation } from '../../../src/http/openapi/openapi.ts';
import { type Api, startApi } from '../harness.ts';
import { sampleRoutes } from '../sample-routes.ts';

// Only described here, never called.
const routes = [...sampleRoutes, ...accountRoutes({} as Accounts)];

let api: Api;
let document: OpenApiDocument;
let page: string;
beforeAll(async () => {
  api = await startApi({ routes });
  document = (await (await fetch(`${api.base}/openapi.json`)).json()) as OpenApiDocument;
  page = await (await fetch(`${api.base}/docs`)).text();
});
afterAll(() => api.stop());

function operations(): OpenApiOperation[] {
  return Object.values(document.paths).flatMap((methods) => Object.values(methods));
}

/** Every object inside, itself too. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Record<string, unknown>;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

describe('the OpenAPI document', () => {
  it('has the form of OpenAPI 3.1', () => {
    const parameter = z.strictObject({
      name: z.string(),
      in: z.enum(['path', 'query', 'header']),
      required: z.boolean(),
      description: z.string().optional(),
      schema: z.looseObject({}),
    });
    const content = z.record(
      z.string(),
      z.strictObject({
        schema: z.looseObject({}),
        example: z.unknown().optional(),
        examples: z.record(z.string(), z.strictObject({ value: z.looseObject({}) })).optional(),
      }),
    );
    const operation = z.strictObject({
      operationId: z.string(),
      tags: z.array(z.string()).length(1),
      summary: z.string().min(1),
      description: z.string().optional(),
      security: z.array(z.record(z.string(), z.array(z.string()))),
      'x-scope': z.string().optional(),
      parameters: z.array(parameter),
      requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
      responses: z.record(
        z.string().regex(/^[1-5]\d\d$/),
        z.strictObject({ description: z.string().min(1), content }),
      ),
    });
    const form = z.strictObject({
      openapi: z.literal('3.1.0'),
      info: z.strictObject({ title: z.string(), version: z.literal('1.2.3'), description: z.string() }),
      servers: z.array(z.strictObject({ url: z.string() })),
      tags: z.array(z.strictObject({ name: z.string() })),
      paths: z.record(
        z.string().startsWith('/'),
        z.partialRecord(z.enum(['get', 'post', 'put', 'patch', 'delete']), operation),
      ),
      components: z.strictObject({
        schemas: z.record(z.string(), z.looseObject({})),
        securitySchemes: z.record(z.string(), z.looseObject({ type: z.literal('apiKey') })),
      }),
    });
    expect(form.safeParse(document).error?.issues ?? []).toEqual([]);
  });

  it('names every operation once', () => {
    const ids = operations().map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const route of routes) {
      expect(document.paths[route.path]?.[route.method.toLowerCase()]?.operationId).toBe(route.operationId);
    }
    for (const path of ['/web-setup/health', '/healthz', '/readyz', '/metrics']) {
      expect(document.paths[path]?.['get']?.security).toEqual([]);
    }
  });

  it('refers to nothing that is not there, neither schema nor key scheme nor tag', () => {
    for (const object of objectsIn(document)) {
      const reference = object['$ref'];
      if (typeof reference !== 'string') continue;
      expect(reference).toMatch(/^#\/components\/schemas\//);
      expect(document.components.schemas).toHaveProperty(reference.slice('#/components/schemas/'.length));
    }
    for (const { security, tags } of operations()) {
      for (const name of security.flatMap((one) => Object.keys(one))) {
        expect(document.components.securitySchemes).toHaveProperty(name);
      }
      expect(document.tags.map(({ name }) => name)).toEqual(expect.arrayContaining(tags));
    }
  });

  it('describes every parameter of every path', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      const names = [...path.matchAll(/\{(.*?)\}/g)].map((match) => match[1]);
      for (const { parameters } of Object.values(methods)) {
        const described = parameters.filter((one) => one.in === 'path' && one.required);
        expect(described.map(({ name }) => name)).toEqual(names);
      }
    }
  });

  it('has under each status the codes that have it, and an example of each', () => {
    for (const { responses, operationId } of operations()) {
      for (const [status, response] of Object.entries(responses).filter(([status]) => status >= '400')) {
        for (const [code, { value }] of Object.entries(
          response.content?.['application/json']?.examples ?? {},
        )) {
          expect(REFUSALS[code as keyof typeof REFUSALS], `${operationId} ${code}`).toBe(Number(status));
          expect(value).toMatchObject({ success: false, reasonCode: code, error: { code } });
        }
      }
    }
    const send = document.paths['/transactional/send']?.['post'];
    expect(Object.keys(send?.responses ?? {})).toEqual([
      '200',
      '400',
      '401',
      '403',
      '408',
      '413',
      '415',
      '421',
      '429',
      '500',
      '503',
    ]);
    expect(Object.keys(send?.responses['403']?.content?.['application/json']?.examples ?? {})).toEqual([
      'RECIPIENT_SUPPRESSED',
      'CONSENT_REQUIRED',
      'KEY_NOT_ALLOWED',
      'ACCOUNT_DISABLED',
      'INSUFFICIENT_SCOPE',
    ]);
  });

  it('says which fields a body must have', () => {
    const body =
      document.paths['/web-setup/things']?.['post']?.requestBody?.content['application/json']?.schema;
    expect(body).toMatchObject({
      type: 'object',
      required: ['to'],
      properties: { subject: { maxLength: 20 } },
    });
  });
});

describe('examples', () => {
  it.each(
    routes.filter(({ example }) => example !== undefined).map((route) => [route.operationId, route] as const),
  )('of the request match its schema: %s', (_, route) =>
    expect(route.body?.safeParse(route.example).error?.issues ?? []).toEqual([]),
  );

  it.each(
    routes.flatMap(({ operationId, answers }) =>
      Object.entries(answers)
        .filter(([, { example }]) => example !== undefined)
        .map(([status, answer]) => [`${operationId} ${status}`, answer] as const),
    ),
  )('of the answer match its schema: %s', (_, { data, example }) =>
    expect(data.safeParse(example).error?.issues ?? []).toEqual([]),
  );
});

describe('the documentation page', () => {
  it('has every operation under an anchor of its own, and every link inside leads somewhere', () => {
    for (const { operationId } of operations()) expect(page).toContain(`<article id="${operationId}">`);
    for (const [, anchor] of page.matchAll(/href="#([^"]*)"/g)) expect(page).toContain(`id="${anchor}"`);
  });

  it('shows fields, refusals and a call to copy', () => {
    expect(page).toContain('<code>attachments[].content</code>');
    expect(page).toContain('<code>RECIPIENT_SUPPRESSED</code>');
    expect(page).toContain('curl -X POST &quot;$BASE/transactional/send&quot;');
    expect(page).toContain('companyAddress.postalCode');
    expect(page).toContain('<td>text or null</td>');
  });

  it('loads nothing from elsewhere and runs nothing', async () => {
    const response = await fetch(`${api.base}/docs`);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-/,
    );
    expect(page).not.toMatch(/<script|<img|<link|@import|url\(|style="|\son\w+=/);
  });

  it('shows what a description says, never runs it', async () => {
    const evil = '<img src=x onerror=alert(1)>"';
    const { docsPage } = await import('../../../src/http/openapi/docs.ts');
    const [path] = Object.keys(document.paths);
    const poisoned = structuredClone(document);
    for (const operation of Object.values(poisoned.paths[path ?? ''] ?? {})) operation.summary = evil;
    expect(docsPage(poisoned)).not.toContain('<img');
  });
});
