import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import type { Work } from '../../core/concurrency/slices.ts';
import type { RefusalCode } from '../../core/refusal.ts';
import type { JsonSchema } from '../json-schema.ts';
import { JSON_TYPE } from '../responses.ts';
import type { OpenRoute, Route } from '../route.ts';
import { staticPage } from '../static-page.ts';
import { type Components, errorResponses, pascalCase, shareResponses } from './components.ts';
import { TAG_DESCRIPTIONS } from './descriptions.ts';
import type {
  OpenApiContent,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiReference,
  OpenApiResponse,
} from './document.ts';
import { createSchemaRegistry, referenceTo, type SchemaRegistry } from './schemas.ts';

const DESCRIPTION = `Requests are authenticated with the headers \`X-Api-Key\` and \`X-Id\`. A successful response is \`{ "success": true, "data": … }\`; an error response has a code, a message and the request id. Unknown fields of a request body are ignored and named in \`data.warnings\`, and so are read-only fields whose value differs from that of the resource. Every response has the header \`X-Request-Id\`.`;

export interface OpenApiOptions {
  routes: readonly Route[];
  openRoutes: readonly OpenRoute[];
  /** Version of the program. */
  version: string;
}

/**
 * Builds the OpenAPI document from the descriptions that also validate requests: hundreds of milliseconds of work. Throws
 * when two schemas have the same name.
 */
export function* buildingDocument({ routes, openRoutes, version }: OpenApiOptions): Work<OpenApiDocument> {
  const components: Components = {
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
  for (const route of routes) {
    add(route.path, route.method, keyedOperation(route, components));
    yield;
  }
  for (const route of openRoutes) add(route.path, 'GET', openOperation(route, components));
  yield;
  shareResponses(
    Object.values(paths).flatMap((methods) => Object.values(methods)),
    components,
  );
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
      schemas: components.registry.schemas,
      parameters: components.parameters,
      responses: components.responses,
      examples: components.examples,
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'A key of the account.' },
        accountId: { type: 'apiKey', in: 'header', name: 'X-Id', description: 'The account id.' },
      },
    },
  };
}

/** `/openapi.json`; `document` returns the document that the page is written from. */
export function openApiRoute(document: () => Promise<OpenApiDocument>): OpenRoute {
  return {
    path: '/openapi.json',
    operationId: 'getOpenApi',
    tag: 'Operations',
    summary: 'Get this API as an OpenAPI document',
    responses: { 200: { description: 'The document.', contentType: 'application/json' } },
    handle: staticPage(JSON_TYPE, async () => JSON.stringify(await document())),
  };
}

function keyedOperation(route: Route, components: Components): OpenApiOperation {
  const { registry } = components;
  const codes: readonly RefusalCode[] =
    route.narrowBy === undefined ? route.refusals : [...route.refusals, 'QUERY_TOO_BROAD'];
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    'x-scope': route.scope,
    parameters: [
      ...parametersOf(route.params, 'path', components),
      ...parametersOf(route.query, 'query', components),
      ...Object.entries(route.headers ?? {}).map(([name, description]) =>
        headerParameter(name, description, components),
      ),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(route.body, route.example, registry) }),
    ...(route.upload === undefined ? {} : { requestBody: uploadOf(route.upload) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.responses).map(([status, { description, data, example }]) => [
          status,
          successResponse(
            description,
            dataSchema(route, data, registry),
            example,
            resultName(route),
            components,
          ),
        ]),
      ),
      ...errorResponses(route.operationId, codes, 'keyed', components),
    },
  };
}

function openOperation(route: OpenRoute, components: Components): OpenApiOperation {
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
        Object.entries(route.responses).map(([status, { description, contentType, schema, example }]) => [
          status,
          {
            description,
            content: {
              [contentType]: {
                schema:
                  schema === undefined
                    ? { type: contentType === 'application/json' ? 'object' : 'string' }
                    : components.registry.schemaOf(schema, 'output'),
                ...(example === undefined ? {} : { example }),
              },
            },
          },
        ]),
      ),
      ...errorResponses(
        route.operationId,
        [...(route.refusals ?? []), 'HOST_NOT_ALLOWED'],
        'open',
        components,
      ),
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
  return add(resultName(route), hasWarnings ? withWarnings(schema) : schema);
}

function withWarnings(schema: JsonSchema): JsonSchema {
  const { allOf, properties } = schema;
  if (Array.isArray(allOf)) return { ...schema, allOf: [...allOf, referenceTo('Warnings')] };
  return typeof properties === 'object'
    ? { ...schema, properties: { ...properties, warnings: referenceTo('WarningList') } }
    : schema;
}

function resultName({ operationId }: Route): string {
  return `${pascalCase(operationId)}Result`;
}

function successResponse(
  description: string,
  data: JsonSchema,
  example: object | undefined,
  own: string,
  { examples }: Components,
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
  examples: Components['examples'],
): Pick<OpenApiContent, 'example' | 'examples'> {
  const [first] = Array.isArray(data['allOf']) ? data['allOf'] : [data];
  const name = String(first['$ref']).split('/').at(-1) ?? '';
  if (name === own) return { example: value };
  const shared = (examples[name] ??= { value });
  return isDeepStrictEqual(shared.value, value)
    ? { examples: { success: { $ref: `#/components/examples/${name}` } } }
    : { example: value };
}

function parametersOf(
  schema: z.ZodObject | undefined,
  place: 'path' | 'query',
  { registry, parameters }: Components,
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
    return parameterReference(parameter, parameters);
  });
}

/**
 * A reference to the component that equals the parameter. Parameters with the same name and different schemas are
 * numbered: `limit`, `limit2`.
 */
function parameterReference(
  parameter: OpenApiParameter,
  parameters: Components['parameters'],
): OpenApiReference {
  for (let number = 1; ; number++) {
    const key = number === 1 ? parameter.name : `${parameter.name}${number}`;
    if (isDeepStrictEqual((parameters[key] ??= parameter), parameter))
      return { $ref: `#/components/parameters/${key}` };
  }
}

function headerParameter(name: string, description: string, { parameters }: Components): OpenApiReference {
  const parameter: OpenApiParameter = {
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  };
  return parameterReference(parameter, parameters);
}
