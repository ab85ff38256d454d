import type { z } from 'zod';
import { REFUSALS, type RefusalCode } from '../../core/refusal.ts';
import { JSON_TYPE } from '../answers.ts';
import type { JsonSchema } from '../json-schema.ts';
import type { OpenRoute, Route } from '../route.ts';
import { staticPage } from '../static-page.ts';
import { REFUSAL_MEANINGS } from './error-descriptions.ts';
import { ERROR_SCHEMA, schemaOf } from './schemas.ts';

/**
 * The OpenAPI 3.1 document, made from the descriptions that also validate requests: it cannot promise what
 * the server does not do.
 */
export interface OpenApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

export interface OpenApiResponse {
  description: string;
  content?: Record<
    string,
    { schema: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
  >;
}

export interface OpenApiOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  /** Scope that the key must have. */
  'x-scope'?: string;
  parameters: OpenApiParameter[];
  requestBody?: {
    required: boolean;
    content: Record<string, { schema: JsonSchema; example?: object | string }>;
  };
  responses: Record<string, OpenApiResponse>;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, JsonSchema> };
}

const ERROR = { $ref: '#/components/schemas/Error' };

/** What every keyed operation can answer with, beyond what it names itself. */
const ALWAYS: RefusalCode[] = [
  'UNAUTHENTICATED',
  'KEY_NOT_ALLOWED',
  'ACCOUNT_DISABLED',
  'INSUFFICIENT_SCOPE',
  'HOST_NOT_ALLOWED',
  'RATE_LIMITED',
  'INTERNAL_ERROR',
  'UNAVAILABLE',
];
const WITH_BODY: RefusalCode[] = [
  'INVALID_JSON',
  'VALIDATION_ERROR',
  'PAYLOAD_TOO_LARGE',
  'REQUEST_TIMEOUT',
  'UNSUPPORTED_MEDIA_TYPE',
];

const DESCRIPTION = `Every keyed request carries \`X-Api-Key\` and \`X-Id\`. A success is \`{ "success": true, "data": … }\`; an error carries a code, a sentence and the request id. Fields of a body that are not known are ignored and named in \`data.warnings\`; so are read-only fields of a resource, unless they have the value that the resource has. Every answer carries \`X-Request-Id\`.`;

export function openApiDocument(from: {
  routes: readonly Route[];
  openRoutes: readonly OpenRoute[];
  version: string;
}): OpenApiDocument {
  const schemas: Record<string, JsonSchema> = { Error: ERROR_SCHEMA };
  const paths: OpenApiDocument['paths'] = {};
  const tags = new Set<string>();
  const add = (path: string, method: string, operation: OpenApiOperation) => {
    (paths[path] ??= {})[method.toLowerCase()] = operation;
    for (const tag of operation.tags) tags.add(tag);
  };
  for (const route of from.routes) add(route.path, route.method, keyedOperation(route, schemas));
  for (const route of from.openRoutes) add(route.path, 'GET', openOperation(route));
  return {
    openapi: '3.1.0',
    info: { title: 'Postrider', version: from.version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'A key of the account.' },
        accountId: { type: 'apiKey', in: 'header', name: 'X-Id', description: 'The account id.' },
      },
    },
  };
}

/** `/openapi.json`, written once. */
export function openApiRoute(document: OpenApiDocument): OpenRoute {
  return {
    path: '/openapi.json',
    operationId: 'getOpenApi',
    tag: 'Operations',
    summary: 'This interface as an OpenAPI document',
    answers: { 200: { description: 'The document.', contentType: 'application/json' } },
    visit: staticPage(JSON_TYPE, JSON.stringify(document)),
  };
}

function keyedOperation(route: Route, schemas: Record<string, JsonSchema>): OpenApiOperation {
  const refusals = [...route.refusals, ...ALWAYS];
  if (route.narrowBy !== undefined) refusals.push('QUERY_TOO_BROAD');
  if (route.body !== undefined) refusals.push(...WITH_BODY);
  if (route.upload !== undefined)
    refusals.push('VALIDATION_ERROR', 'REQUEST_TIMEOUT', 'UNSUPPORTED_MEDIA_TYPE');
  if (route.params !== undefined || route.query !== undefined) refusals.push('VALIDATION_ERROR');
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: [{ apiKey: [], accountId: [] }],
    'x-scope': route.scope,
    parameters: [
      ...parametersOf(route.params, 'path', schemas),
      ...parametersOf(route.query, 'query', schemas),
      ...Object.entries(route.headers ?? {}).map(([name, description]) => headerParameter(name, description)),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(route.body, route.example, schemas) }),
    ...(route.upload === undefined ? {} : { requestBody: uploadOf(route.upload) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, { description, data, example }]) => [
          status,
          successResponse(description, schemaOf(data, 'output', schemas), example, takesBody(route)),
        ]),
      ),
      ...refusalResponses(refusals),
    },
  };
}

function takesBody({ body, upload }: Route): boolean {
  return body !== undefined || upload !== undefined;
}

function openOperation(route: OpenRoute): OpenApiOperation {
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: [],
    parameters: Object.entries(route.query ?? {}).map(([name, description]) => ({
      name,
      in: 'query',
      required: false,
      description,
      schema: { type: 'string' },
    })),
    responses: Object.fromEntries(
      Object.entries(route.answers).map(([status, { description, contentType, example }]) => [
        status,
        {
          description,
          content: {
            [contentType]: {
              schema: contentType === 'application/json' ? { type: 'object' } : { type: 'string' },
              ...(example === undefined ? {} : { example }),
            },
          },
        },
      ]),
    ),
  };
}

function requestBodyOf(body: z.ZodType, example: object | undefined, schemas: Record<string, JsonSchema>) {
  return {
    required: !body.safeParse(undefined).success,
    content: {
      'application/json': {
        schema: schemaOf(body, 'input', schemas),
        ...(example === undefined ? {} : { example }),
      },
    },
  };
}

function uploadOf(types: Record<string, string>) {
  return {
    required: true,
    content: Object.fromEntries(
      Object.entries(types).map(([type, example]) => [type, { schema: { type: 'string' }, example }]),
    ),
  };
}

function successResponse(
  description: string,
  data: JsonSchema,
  example: object | undefined,
  withBody: boolean,
): OpenApiResponse {
  const shown = withBody ? withWarnings(data) : data;
  return {
    description,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['success', 'data'],
          properties: { success: { const: true }, data: shown },
        },
        ...(example === undefined ? {} : { example: { success: true, data: example } }),
      },
    },
  };
}

function withWarnings(data: JsonSchema): JsonSchema {
  if (data['type'] !== 'object' || typeof data['properties'] !== 'object') return data;
  const warnings = {
    type: 'array',
    items: { type: 'string' },
    description: 'What of the request was ignored; absent when nothing was.',
  };
  return { ...data, properties: { ...data['properties'], warnings } };
}

/** One response a status, each of its codes as an example. */
function refusalResponses(codes: RefusalCode[]): Record<string, OpenApiResponse> {
  const byStatus = new Map<number, RefusalCode[]>();
  for (const code of new Set(codes)) {
    const status = REFUSALS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      {
        description: ofStatus.map((code) => `\`${code}\`: ${REFUSAL_MEANINGS[code]}`).join('\n'),
        content: {
          'application/json': {
            schema: ERROR,
            examples: Object.fromEntries(ofStatus.map((code) => [code, { value: errorExample(code) }])),
          },
        },
      },
    ]),
  );
}

function errorExample(code: RefusalCode) {
  const message = REFUSAL_MEANINGS[code];
  return {
    success: false,
    error: { code, message },
    message,
    reasonCode: code,
    requestId: '018f3c1e-7d1a-7c5e-9a55-3a1d5c0f2b11',
  };
}

function parametersOf(
  form: z.ZodObject | undefined,
  place: 'path' | 'query',
  schemas: Record<string, JsonSchema>,
): OpenApiParameter[] {
  return Object.entries(form?.shape ?? {}).map(([name, schema]) => {
    const { description, ...rest } = schemaOf(schema as z.ZodType, 'input', schemas);
    return {
      name,
      in: place,
      required: place === 'path' || !(schema as z.ZodType).safeParse(undefined).success,
      ...(typeof description === 'string' ? { description } : {}),
      schema: rest,
    };
  });
}

function headerParameter(name: string, description: string): OpenApiParameter {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}
