import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { Accounts } from '../../../src/accounts/accounts.ts';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { type RefusalCode, statusOf } from '../../../src/core/refusal.ts';
import { accountRoutes } from '../../../src/http/api/accounts/account.ts';
import { overviewPage, subjectPage } from '../../../src/http/openapi/docs.ts';
import {
  examplesOf,
  type OpenApiDocument,
  type OpenApiOperation,
  resolveParameters,
  resolveResponse,
} from '../../../src/http/openapi/document.ts';
import { buildingDocument } from '../../../src/http/openapi/openapi.ts';
import type { Route } from '../../../src/http/route.ts';
import { type Api, startApi } from '../harness.ts';
import { sampleRoutes } from '../sample-routes.ts';

// The handlers are not called.
const routes = [...sampleRoutes, ...accountRoutes({ accounts: {} as Accounts, limitsOf: () => [] })];

let api: Api;
let document: OpenApiDocument;
let overview: string;
/** The page of each subject. */
const pages = new Map<string, string>();
beforeAll(async () => {
  api = await startApi({ routes });
  document = (await (await fetch(`${api.base}/openapi.json`)).json()) as OpenApiDocument;
  const read = async (path: string) => (await fetch(`${api.base}${path}`)).text();
  overview = await read('/docs');
  for (const [, subject = ''] of overview.matchAll(/<h2><a href="\/docs\/([^"]*)"/g))
    pages.set(subject, await read(`/docs/${subject}`));
});
afterAll(() => api.stop());

function operations(): OpenApiOperation[] {
  return Object.values(document.paths).flatMap((methods) => Object.values(methods));
}

/** The value and every object inside it. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Record<string, unknown>;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

describe('the OpenAPI document', () => {
  it('is a valid OpenAPI 3.1 document', () => {
    const reference = z.strictObject({ $ref: z.string() });
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
        examples: z.record(z.string(), reference).optional(),
      }),
    );
    const response = z.strictObject({ description: z.string().min(1), content });
    const operation = z.strictObject({
      operationId: z.string(),
      tags: z.array(z.string()).length(1),
      summary: z.string().min(1),
      description: z.string().optional(),
      security: z.tuple([]).optional(),
      'x-scope': z.string().optional(),
      parameters: z.array(z.union([parameter, reference])),
      requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
      responses: z.record(z.string().regex(/^([1-5]\d\d|default)$/), z.union([response, reference])),
    });
    const form = z.strictObject({
      openapi: z.literal('3.1.0'),
      info: z.strictObject({
        title: z.string(),
        version: z.literal('1.2.3'),
        description: z.string(),
        license: z.strictObject({ name: z.string(), identifier: z.string() }),
      }),
      servers: z.array(z.strictObject({ url: z.string() })),
      security: z.array(z.record(z.string(), z.array(z.string()))),
      tags: z.array(z.strictObject({ name: z.string(), description: z.string().optional() })),
      paths: z.record(
        z.string().startsWith('/'),
        z.partialRecord(z.enum(['get', 'post', 'put', 'patch', 'delete']), operation),
      ),
      components: z.strictObject({
        schemas: z.record(z.string(), z.looseObject({})),
        parameters: z.record(z.string(), parameter),
        responses: z.record(z.string(), response),
        examples: z.record(z.string(), z.strictObject({ value: z.looseObject({}) })),
        securitySchemes: z.strictObject({
          bearer: z.looseObject({ type: z.literal('http'), scheme: z.literal('bearer') }),
          apiKey: z.looseObject({ type: z.literal('apiKey'), name: z.literal('X-Api-Key') }),
          accountId: z.looseObject({ type: z.literal('apiKey'), name: z.literal('X-Id') }),
        }),
      }),
    });
    expect(form.safeParse(document).error?.issues ?? []).toEqual([]);
  });

  it('has every operation exactly once', () => {
    const ids = operations().map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const route of routes) {
      expect(document.paths[route.path]?.[route.method.toLowerCase()]?.operationId).toBe(route.operationId);
    }
    for (const path of ['/web-setup/health', '/healthz', '/readyz', '/metrics']) {
      expect(document.paths[path]?.['get']?.security).toEqual([]);
    }
  });

  it('has every component and tag that it refers to', () => {
    for (const object of objectsIn(document)) {
      const reference = object['$ref'];
      if (typeof reference !== 'string') continue;
      expect(document).toHaveProperty(reference.slice('#/'.length).split('/'));
    }
    for (const name of document.security.flatMap((one) => Object.keys(one)))
      expect(document.components.securitySchemes).toHaveProperty(name);
    for (const { tags } of operations()) {
      expect(document.tags.map(({ name }) => name)).toEqual(expect.arrayContaining(tags));
    }
  });

  it('describes every parameter of every path', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      const names = [...path.matchAll(/\{(.*?)\}/g)].map((match) => match[1]);
      for (const operation of Object.values(methods)) {
        const described = resolveParameters(document, operation).filter(
          (parameter) => parameter.in === 'path' && parameter.required,
        );
        expect(described.map(({ name }) => name)).toEqual(names);
      }
    }
  });

  it('lists under each status its error codes with an example', () => {
    for (const { responses, operationId } of operations()) {
      for (const [status, response] of Object.entries(responses).filter(([status]) => status >= '400')) {
        const content = resolveResponse(document, response).content?.['application/json'];
        for (const [code, value] of Object.entries(
          content === undefined ? {} : examplesOf(document, content),
        )) {
          const expected =
            status === 'default' ? [400, 401, 403, 408, 413, 415, 421, 429, 500, 503] : [Number(status)];
          expect(expected, `${operationId} ${code}`).toContain(statusOf(code as RefusalCode));
          expect(value).toMatchObject({ success: false, reasonCode: code, error: { code } });
        }
      }
    }
    const send = document.paths['/transactional/send']?.['post'];
    expect(Object.keys(send?.responses ?? {})).toEqual(['200', '403', 'default']);
    const forbidden = resolveResponse(document, send?.responses['403'] ?? { description: '' });
    expect(Object.keys(forbidden.content?.['application/json']?.examples ?? {})).toEqual([
      'RECIPIENT_SUPPRESSED',
      'CONSENT_REQUIRED',
      'KEY_NOT_ALLOWED',
      'ACCOUNT_DISABLED',
      'INSUFFICIENT_SCOPE',
    ]);
  });

  it('has an equal success response of several operations once', () => {
    const update = routes.find(({ operationId }) => operationId === 'updateAccount');
    if (update === undefined) throw new Error('updateAccount does not exist');
    const patch: Route = { ...update, method: 'PATCH', operationId: 'patchAccount' };
    const shared = withoutPause(buildingDocument({ routes: [update, patch], openRoutes: [], version: '1' }));
    const methods = shared.paths['/web-setup/account'];
    const reference = { $ref: '#/components/responses/UpdateAccount200' };
    expect([methods?.['put']?.responses['200'], methods?.['patch']?.responses['200']]).toEqual([
      reference,
      reference,
    ]);
    expect(resolveResponse(shared, reference).description).toBe('The updated account.');
  });

  it('names the required fields of a body', () => {
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
  )('match the schema of the request: %s', (_, route) =>
    expect(route.body?.safeParse(route.example).error?.issues ?? []).toEqual([]),
  );

  it.each(
    routes.flatMap(({ operationId, responses }) =>
      Object.entries(responses)
        .filter(([, { example }]) => example !== undefined)
        .map(([status, answer]) => [`${operationId} ${status}`, answer] as const),
    ),
  )('match the schema of the response: %s', (_, { data, example }) =>
    expect(data.safeParse(example).error?.issues ?? []).toEqual([]),
  );
});

describe('the documentation pages', () => {
  const all = () => [overview, ...pages.values()].join('\n');

  it('have one for every tag', () => {
    expect(pages.size).toBe(document.tags.length);
    for (const { name } of document.tags) expect(overview).toContain(`>${name}</a></h2>`);
  });

  it('have an anchor for every operation, and the target of every link', () => {
    for (const { operationId } of operations()) expect(all()).toContain(`<article id="${operationId}">`);
    for (const [subject, page] of pages)
      for (const [, anchor] of page.matchAll(/href="#([^"]*)"/g))
        expect(page, subject).toContain(`id="${anchor}"`);
    const targets = [...all().matchAll(/href="\/docs(?:\/([^"#]*))?(?:#([^"]*))?"/g)];
    expect(targets.length).toBeGreaterThan(operations().length);
    for (const [link, subject, anchor] of targets) {
      const page = subject === undefined ? overview : pages.get(subject);
      expect(page, link).toContain(anchor === undefined ? '<main>' : `id="${anchor}"`);
    }
  });

  it('show fields, errors and a request with curl', () => {
    const sending = pages.get('sending');
    expect(sending).toContain('<code>attachments[].content</code>');
    expect(sending).toContain('<code>RECIPIENT_SUPPRESSED</code>');
    expect(sending).toContain('curl -X POST &quot;$BASE/transactional/send&quot;');
    expect(all()).toContain('companyAddress.postalCode');
    expect(all()).toContain('<td>integer or null</td>');
    expect(overview).toContain('<code>UNAUTHENTICATED</code>');
  });

  it('load no resources and have no script', async () => {
    for (const path of ['/docs', '/docs/sending']) {
      const { headers } = await fetch(`${api.base}${path}`);
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    }
    expect(all()).not.toMatch(/<script|<img|<link|@import|url\(|style="|\son\w+=/);
  });

  it('are not found for another subject', async () => {
    const response = await fetch(`${api.base}/docs/nothing`);
    expect([response.status, await response.json()]).toMatchObject([404, { reasonCode: 'NOT_FOUND' }]);
  });

  it('escape descriptions', () => {
    const html = '<img src=x onerror=alert(1)>"';
    const changed = structuredClone(document);
    for (const operation of Object.values(changed.paths).flatMap((methods) => Object.values(methods)))
      operation.summary = html;
    const written = changed.tags.map((tag) => subjectPage(changed, tag));
    expect([overviewPage(changed), ...written].join('')).not.toContain('<img');
  });
});
