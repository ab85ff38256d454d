import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { REFUSALS, type RefusalCode } from '../../core/refusal.ts';
import { JSON_TYPE } from '../answers.ts';
import type { JsonSchema } from '../json-schema.ts';
import type { OpenRoute, Route } from '../route.ts';
import { staticPage } from '../static-page.ts';
import { ERROR_DESCRIPTIONS, TAG_DESCRIPTIONS } from './descriptions.ts';
import { createSchemaRegistry, referenceTo, type SchemaRegistry, WARNINGS_SCHEMA } from './schemas.ts';

/** The OpenAPI 3.1 document. It is built from the descriptions that also validate requests. */
export interface OpenApiDocument {
  openapi: '3.1.0';
  info: {
    title: string;
    version: string;
    description: string;
    license: { name: string; identifier: string };
  };
  servers: { url: string }[];
  /** Of all operations that do not set their own. */
  security: Record<string, string[]>[];
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    parameters: Record<string, OpenApiParameter>;
    responses: Record<string, OpenApiResponse>;
    examples: Record<string, { value: object }>;
    securitySchemes: Record<string, JsonSchema>;
  };
}

export interface OpenApiOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  /** Empty: no key is required. Absent: the security of the document applies. */
  security?: Record<string, string[]>[];
  /** Scope that the key must have. */
  'x-scope'?: string;
  parameters: (OpenApiParameter | OpenApiReference)[];
  requestBody?: {
    required: boolean;
    content: Record<string, { schema: JsonSchema; example?: object | string }>;
  };
  responses: Record<string, OpenApiResponse | OpenApiReference>;
}

export interface OpenApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

export interface OpenApiResponse {
  description: string;
  content?: Record<string, OpenApiContent>;
}

export interface OpenApiContent {
  schema: JsonSchema;
  example?: unknown;
  /** References to examples in the components. */
  examples?: Record<string, OpenApiReference>;
}

export interface OpenApiReference {
  $ref: string;
}

/** Errors of every operation that requires a key. */
const KEYED_ERRORS: RefusalCode[] = [
  'UNAUTHENTICATED',
  'KEY_NOT_ALLOWED',
  'ACCOUNT_DISABLED',
  'INSUFFICIENT_SCOPE',
  'HOST_NOT_ALLOWED',
  'RATE_LIMITED',
  'INTERNAL_ERROR',
  'UNAVAILABLE',
];
const BODY_ERRORS: RefusalCode[] = [
  'INVALID_JSON',
  'VALIDATION_ERROR',
  'PAYLOAD_TOO_LARGE',
  'REQUEST_TIMEOUT',
  'UNSUPPORTED_MEDIA_TYPE',
];
const UPLOAD_ERRORS: RefusalCode[] = ['VALIDATION_ERROR', 'REQUEST_TIMEOUT', 'UNSUPPORTED_MEDIA_TYPE'];
const OPEN_ERRORS: RefusalCode[] = ['HOST_NOT_ALLOWED', 'INTERNAL_ERROR', 'UNAVAILABLE'];

/** Names of error responses that many operations share; others are named after their codes or an operation. */
const SHARED_RESPONSES: Record<string, RefusalCode[]> = {
  InvalidBody: ['INVALID_JSON', 'VALIDATION_ERROR'],
  Forbidden: ['KEY_NOT_ALLOWED', 'ACCOUNT_DISABLED', 'INSUFFICIENT_SCOPE'],
};
const MAX_CODES_IN_NAME = 2;

const DESCRIPTION = `Requests are authenticated with the headers \`X-Api-Key\` and \`X-Id\`. A successful response is \`{ "success": true, "data": … }\`; an error response has a code, a message and the request id. Unknown fields of a request body are ignored and named in \`data.warnings\`, and so are read-only fields whose value differs from that of the resource. Every response has the header \`X-Request-Id\`.`;

export interface OpenApiOptions {
  routes: readonly Route[];
  openRoutes: readonly OpenRoute[];
  /** Version of the program. */
  version: string;
}

/** Throws when two operations or schemas contradict each other. */
export function openApiDocument({ routes, openRoutes, version }: OpenApiOptions): OpenApiDocument {
  const builder: Builder = {
    registry: createSchemaRegistry(),
    parameters: {},
    responses: {},
    examples: {},
  };
  const paths: OpenApiDocument['paths'] = {};
  const tags = new Set<string>();
  const add = (path: string, method: string, operation: OpenApiOperation) => {
    (paths[path] ??= {})[method.toLowerCase()] = operation;
    for (const tag of operation.tags) tags.add(tag);
  };
  for (const route of routes) add(route.path, route.method, keyedOperation(route, builder));
  for (const route of openRoutes) add(route.path, 'GET', openOperation(route, builder));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postrider',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [], accountId: [] }],
    tags: [...tags].map((name) => {
      const description = TAG_DESCRIPTIONS[name];
      return description === undefined ? { name } : { name, description };
    }),
    paths,
    components: {
      schemas: builder.registry.schemas,
      parameters: builder.parameters,
      responses: builder.responses,
      examples: builder.examples,
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'A key of the account.' },
        accountId: { type: 'apiKey', in: 'header', name: 'X-Id', description: 'The account id.' },
      },
    },
  };
}

/** `/openapi.json`, serialized once. */
export function openApiRoute(document: OpenApiDocument): OpenRoute {
  return {
    path: '/openapi.json',
    operationId: 'getOpenApi',
    tag: 'Operations',
    summary: 'Get this API as an OpenAPI document',
    answers: { 200: { description: 'The document.', contentType: 'application/json' } },
    handle: staticPage(JSON_TYPE, JSON.stringify(document)),
  };
}

/** The response itself, or the component that it refers to. */
export function resolveResponse(
  { components }: OpenApiDocument,
  response: OpenApiResponse | OpenApiReference,
): OpenApiResponse {
  return '$ref' in response ? componentAt(components.responses, response) : response;
}

/** The parameters of an operation, with references resolved. */
export function resolveParameters(
  { components }: OpenApiDocument,
  { parameters }: OpenApiOperation,
): OpenApiParameter[] {
  return parameters.map((parameter) =>
    '$ref' in parameter ? componentAt(components.parameters, parameter) : parameter,
  );
}

/** All examples of a content, by name; one without a name has the name ''. */
export function examplesOf(
  { components }: OpenApiDocument,
  { example, examples = {} }: OpenApiContent,
): Record<string, unknown> {
  const named = Object.entries(examples).map(([name, reference]) => [
    name,
    componentAt(components.examples, reference).value,
  ]);
  return { ...Object.fromEntries(named), ...(example === undefined ? {} : { '': example }) };
}

function componentAt<Component>(
  components: Record<string, Component>,
  { $ref }: OpenApiReference,
): Component {
  const component = components[$ref.slice($ref.lastIndexOf('/') + 1)];
  if (component === undefined) throw new Error(`${$ref} is not in the document`);
  return component;
}

/** Components that are collected while operations are described. */
interface Builder {
  registry: SchemaRegistry;
  parameters: Record<string, OpenApiParameter>;
  responses: Record<string, OpenApiResponse>;
  examples: Record<string, { value: object }>;
}

function keyedOperation(route: Route, builder: Builder): OpenApiOperation {
  const { registry } = builder;
  const codes = [...route.refusals, ...KEYED_ERRORS];
  if (route.narrowBy !== undefined) codes.push('QUERY_TOO_BROAD');
  if (route.body !== undefined) codes.push(...BODY_ERRORS);
  if (route.upload !== undefined) codes.push(...UPLOAD_ERRORS);
  if (route.params !== undefined || route.query !== undefined) codes.push('VALIDATION_ERROR');
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    'x-scope': route.scope,
    parameters: [
      ...parametersOf(route.params, 'path', builder),
      ...parametersOf(route.query, 'query', builder),
      ...Object.entries(route.headers ?? {}).map(([name, description]) => headerParameter(name, description)),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(route.body, route.example, registry) }),
    ...(route.upload === undefined ? {} : { requestBody: uploadOf(route.upload) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, { description, data, example }]) => [
          status,
          successResponse(
            description,
            dataSchema(route, data, registry),
            example,
            resultName(route),
            builder,
          ),
        ]),
      ),
      ...errorResponses(route.operationId, codes, builder),
    },
  };
}

function openOperation(route: OpenRoute, builder: Builder): OpenApiOperation {
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
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, { description, contentType, schema, example }]) => [
          status,
          {
            description,
            content: {
              [contentType]: {
                schema:
                  schema === undefined
                    ? { type: contentType === 'application/json' ? 'object' : 'string' }
                    : builder.registry.schemaOf(schema, 'output'),
                ...(example === undefined ? {} : { example }),
              },
            },
          },
        ]),
      ),
      ...errorResponses(route.operationId, [...(route.refusals ?? []), ...OPEN_ERRORS], builder),
    },
  };
}

function requestBodyOf(body: z.ZodType, example: object | undefined, { schemaOf }: SchemaRegistry) {
  return {
    required: !body.safeParse(undefined).success,
    content: {
      'application/json': {
        schema: schemaOf(body, 'input'),
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

/** `data` of a success. A schema without an id is named after the operation; requests with a body may cause warnings. */
function dataSchema(route: Route, data: z.ZodType, { schemaOf, add }: SchemaRegistry): JsonSchema {
  const schema = schemaOf(data, 'output');
  const hasWarnings = route.body !== undefined || route.upload !== undefined;
  if (typeof schema['$ref'] === 'string')
    return hasWarnings ? { allOf: [schema, referenceTo('Warnings')] } : schema;
  const properties = schema['properties'];
  const named =
    hasWarnings && typeof properties === 'object'
      ? { ...schema, properties: { ...properties, warnings: WARNINGS_SCHEMA } }
      : schema;
  return add(resultName(route), named);
}

function resultName({ operationId }: Route): string {
  return `${pascalCase(operationId)}Result`;
}

function successResponse(
  description: string,
  data: JsonSchema,
  example: object | undefined,
  own: string,
  { examples }: Builder,
): OpenApiResponse {
  return {
    description,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['success', 'data'],
          properties: { success: { const: true }, data },
        },
        ...(example === undefined
          ? {}
          : exampleContent(data, { success: true, data: example }, own, examples)),
      },
    },
  };
}

/** Operations whose data has the same schema share the example. `own`: the schema that only this operation has. */
function exampleContent(
  data: JsonSchema,
  value: object,
  own: string,
  examples: Builder['examples'],
): Pick<OpenApiContent, 'example' | 'examples'> {
  const [first] = Array.isArray(data['allOf']) ? data['allOf'] : [data];
  const name = String(first['$ref']).split('/').at(-1) ?? '';
  if (name === own) return { example: value };
  const shared = (examples[name] ??= { value });
  return isDeepStrictEqual(shared.value, value)
    ? { examples: { [name]: { $ref: `#/components/examples/${name}` } } }
    : { example: value };
}

/** One response for each status, with an example of each code. */
function errorResponses(
  operationId: string,
  codes: readonly RefusalCode[],
  builder: Builder,
): Record<string, OpenApiReference> {
  const byStatus = new Map<number, RefusalCode[]>();
  for (const code of new Set(codes)) {
    builder.examples[code] = { value: errorExample(code) };
    const status = REFUSALS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      errorResponse(`${pascalCase(operationId)}${status}`, ofStatus, builder),
    ]),
  );
}

/** `name` is that of a response with many codes, unless an earlier operation has the same. */
function errorResponse(
  name: string,
  codes: readonly RefusalCode[],
  { responses }: Builder,
): OpenApiReference {
  const response = {
    description: codes.map((code) => `\`${code}\`: ${ERROR_DESCRIPTIONS[code]}`).join('\n'),
    content: {
      'application/json': {
        schema: referenceTo('Error'),
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
  const shared =
    Object.keys(SHARED_RESPONSES).find((key) => SHARED_RESPONSES[key]?.join() === codes.join()) ??
    Object.keys(responses).find((key) => isDeepStrictEqual(responses[key], response)) ??
    (codes.length > MAX_CODES_IN_NAME
      ? name
      : codes.map((code) => pascalCase(code.toLowerCase())).join('Or'));
  responses[shared] = response;
  return { $ref: `#/components/responses/${shared}` };
}

function errorExample(code: RefusalCode) {
  const [message] = ERROR_DESCRIPTIONS[code].split(/[;:.]/, 1);
  return {
    success: false,
    error: { code, message },
    message,
    reasonCode: code,
    requestId: '018f3c1e-7d1a-7c5e-9a55-3a1d5c0f2b11',
  };
}

function parametersOf(
  schema: z.ZodObject | undefined,
  place: 'path' | 'query',
  { registry, parameters }: Builder,
): OpenApiReference[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...rest } = registry.schemaOf(field as z.ZodType, 'input');
    const parameter: OpenApiParameter = {
      name,
      in: place,
      required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      ...(typeof description === 'string' ? { description } : {}),
      schema: rest,
    };
    return { $ref: `#/components/parameters/${shareParameter(parameter, parameters)}` };
  });
}

/** The name of an equal component. Parameters with the same name and other schemas are numbered: `limit`, `limit2`. */
function shareParameter(parameter: OpenApiParameter, parameters: Builder['parameters']): string {
  for (let number = 1; ; number++) {
    const key = number === 1 ? parameter.name : `${parameter.name}${number}`;
    if (isDeepStrictEqual((parameters[key] ??= parameter), parameter)) return key;
  }
}

function headerParameter(name: string, description: string): OpenApiParameter {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

/** `createCampaign` and `campaign_not_found` become `CreateCampaign` and `CampaignNotFound`. */
function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
