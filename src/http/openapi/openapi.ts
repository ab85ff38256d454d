import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { Work } from '../../core/concurrency/slices.ts';
import { REFUSALS, type RefusalCode, statusOf } from '../../core/refusal.ts';
import { type Direction, type JsonSchema, jsonSchemaOf } from '../json-schema.ts';
import { JSON_TYPE } from '../responses.ts';
import type { OpenRoute, Route } from '../route.ts';
import { staticPage } from '../static-page.ts';
import type {
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiReference,
  OpenApiResponse,
} from './document.ts';

const DESCRIPTION = `Requests are authenticated with a key in \`Authorization: Bearer\`, or in \`X-Api-Key\` together with the account id in \`X-Id\`, which is optional for \`Authorization\` and must match if it is sent. A successful response is \`{ "success": true, "data": … }\`; an error response has a code, a message and the request id. Unknown fields of a request body are ignored and named in \`data.warnings\`, and so are read-only fields whose value differs from that of the resource. Every response has the header \`X-Request-Id\`.`;

/** What each tag contains, as the documentation introduces it. */
const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  Domains: 'Sending domains, their DNS records, verification and DKIM keys.',
  'Domain groups': 'Groups that organize the domains of an account.',
  Sending: 'Send transactional and marketing email, one message or a batch.',
  'Messages and events': 'Status and history of messages, and the feed of all events.',
  Reputation: 'What mailbox providers do with the mail of the account.',
  Templates: 'Stored content that a send refers to by id.',
  'Inbound mail': 'Mail that the account receives, and the addresses that it is received at.',
  Media: 'Images of the account, which its mail shows.',
  'Compliance templates': 'Content of the compliance variables, such as the unsubscribe footer.',
  Campaigns: 'Send an email to a subscription group, and read its results.',
  Segments: 'Saved filters of contacts, by their fields, groups and engagement.',
  Sequences: 'Messages that a contact receives one after the other, from a trigger on.',
  Webhooks: 'Endpoints that receive events as signed POST requests, and their deliveries.',
  Suppressions: 'Addresses that the account cannot send to.',
  Contacts: 'Recipients with their profile and consent, and their erasure.',
  'Subscription groups': 'Lists that contacts subscribe to.',
  Subscriptions: 'Memberships of contacts in subscription groups.',
  'Public pages': 'Texts, languages and look of the pages for recipients.',
  Account: 'Name, company and postal address of the account.',
  Installation:
    'The installation as a whole. Requires a key with the scope `operator`, which only the command line creates: `postrider key create --account ID --scope operator`.',
  Queue:
    'Queued mail of all accounts: why it waits, pauses, purging and rerouting. Requires a key with the scope `operator`.',
  Operations: 'Health, metrics and documentation. These operations require no API key.',
};

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
  const components: Components = { schemas: {}, parameters: {}, responses: {}, examples: {} };
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
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  shareResponses(operations, components);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postrider',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { apiKey: [], accountId: [] }],
    tags: [...tags].map((name) => {
      const description = TAG_DESCRIPTIONS[name];
      return description === undefined ? { name } : { name, description };
    }),
    paths,
    components: {
      ...components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key of the account.' },
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
  const { operationId, tag, summary, description, scope, headers = {}, refusals } = route;
  const codes = route.narrowBy === undefined ? refusals : [...refusals, 'QUERY_TOO_BROAD' as const];
  const requestBody = requestBodyOf(route, components);
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    'x-scope': scope,
    parameters: [
      ...parametersOf(route.params, 'path', components),
      ...parametersOf(route.query, 'query', components),
      ...textParameters(headers, 'header').map((parameter) =>
        share(components, 'parameters', parameter.name, parameter),
      ),
    ],
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.responses).map(([status, success]) => [
          status,
          successResponse(route, success, components),
        ]),
      ),
      ...errorResponses(operationId, codes, 'keyed', components),
    },
  };
}

function openOperation(route: OpenRoute, components: Components): OpenApiOperation {
  const { operationId, tag, summary, description, params = {}, query = {}, refusals = [] } = route;
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: [],
    parameters: [...textParameters(params, 'path'), ...textParameters(query, 'query')],
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
                    : schemaOf(schema, 'output', components),
                ...(example === undefined ? {} : { example }),
              },
            },
          },
        ]),
      ),
      ...errorResponses(operationId, [...refusals, 'HOST_NOT_ALLOWED'], 'open', components),
    },
  };
}

const BINARY = { type: 'string', format: 'binary' };
const FILE_SCHEMAS: Readonly<Record<string, object>> = {
  'multipart/form-data': { type: 'object', required: ['file'], properties: { file: BINARY } },
};

function requestBodyOf({ body, example, upload, file }: Route, components: Components) {
  if (body === undefined && upload === undefined && file === undefined) return undefined;
  const files = [
    ...Object.entries(upload ?? {}).map(([type, example]) => [type, { schema: { type: 'string' }, example }]),
    ...(file ?? []).map((type) => [type, { schema: FILE_SCHEMAS[type] ?? BINARY }]),
  ];
  const json = body === undefined ? undefined : schemaOf(body, 'input', components);
  return {
    required: upload !== undefined || file !== undefined || body?.safeParse(undefined).success === false,
    content: {
      ...(json === undefined
        ? {}
        : { 'application/json': { schema: json, ...(example === undefined ? {} : { example }) } }),
      ...Object.fromEntries(files),
    },
  };
}

function parametersOf(
  schema: z.ZodObject | undefined,
  place: 'path' | 'query',
  components: Components,
): OpenApiReference[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...rest } = schemaOf(field as z.ZodType, 'input', components);
    const parameter: OpenApiParameter = {
      name,
      in: place,
      required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      ...(typeof description === 'string' ? { description } : {}),
      schema: rest,
    };
    return share(components, 'parameters', name, parameter);
  });
}

/** Parameters that are any text, from their descriptions. */
function textParameters(descriptions: Record<string, string>, place: OpenApiParameter['in']) {
  return Object.entries(descriptions).map(
    ([name, description]): OpenApiParameter => ({
      name,
      in: place,
      required: place === 'path',
      description,
      schema: { type: 'string' },
    }),
  );
}

/** What was ignored in a request with a body. */
const warnings = z
  .object({
    warnings: z
      .array(z.string())
      .meta({
        id: 'WarningList',
        description: 'What was ignored in the request; absent when nothing was.',
      })
      .optional(),
  })
  .meta({ id: 'Warnings' });

/**
 * The envelope of a success. Data without a name is named after the operation; operations whose data has the same schema
 * share its example.
 */
function successResponse(
  route: Route,
  { description, data, example, file }: Route['responses'][number],
  components: Components,
): OpenApiResponse {
  if (file?.isOnly === true) return { description, content: { [file.type]: { schema: BINARY } } };
  const own = `${pascalCase(route.operationId)}Result`;
  const name = data.meta()?.id ?? own;
  const named = name === own ? data.meta({ id: own }) : data;
  const hasWarnings = route.body !== undefined || route.upload !== undefined || route.file !== undefined;
  const value = { success: true, data: example };
  const examples = () => ({ success: share(components, 'examples', name, { value }) });
  return {
    description,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['success', 'data'],
          properties: {
            success: { const: true },
            data: schemaOf(hasWarnings ? z.intersection(named, warnings) : named, 'output', components),
          },
        },
        ...(example === undefined ? {} : name === own ? { example: value } : { examples: examples() }),
      },
      ...(file === undefined ? {} : { [file.type]: { schema: { type: 'string' }, example: file.example } }),
    },
  };
}

/** Errors of the key. Operations without another 4XX response list them, because linters require one. */
const FORBIDDEN_ERRORS: RefusalCode[] = ['KEY_NOT_ALLOWED', 'ACCOUNT_DISABLED', 'INSUFFICIENT_SCOPE'];
/** Errors that come before an operation or end any: the response `default` describes them once. */
const COMMON_ERRORS = {
  keyed: [
    'UNAUTHENTICATED',
    ...FORBIDDEN_ERRORS,
    'INVALID_JSON',
    'VALIDATION_ERROR',
    'REQUEST_TIMEOUT',
    'PAYLOAD_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'HOST_NOT_ALLOWED',
    'RATE_LIMITED',
    'INTERNAL_ERROR',
    'UNAVAILABLE',
  ],
  open: ['HOST_NOT_ALLOWED', 'INTERNAL_ERROR', 'UNAVAILABLE'],
} satisfies Record<string, RefusalCode[]>;

/** One response for each status, with an example of each code, and `default` for `COMMON_ERRORS`. */
function errorResponses(
  operationId: string,
  codes: readonly RefusalCode[],
  kind: keyof typeof COMMON_ERRORS,
  components: Components,
): Record<string, OpenApiReference> {
  const common: readonly RefusalCode[] = COMMON_ERRORS[kind];
  const listsForbidden = kind === 'keyed' && !codes.some((code) => statusOf(code) < 500);
  const listed = listsForbidden ? [...codes, ...FORBIDDEN_ERRORS] : codes;
  const statuses = [...new Set(listed.map(statusOf))];
  return {
    ...Object.fromEntries(
      statuses.map((status) => {
        const ofStatus = [...new Set([...listed, ...common])].filter((code) => statusOf(code) === status);
        const name = listsForbidden ? 'Forbidden' : `${pascalCase(operationId)}${status}`;
        return [String(status), errorResponse(name, ofStatus, components)];
      }),
    ),
    default: errorResponse(kind === 'keyed' ? 'CommonErrors' : 'OpenErrors', common, components),
  };
}

/** A response with at most this number of codes is named after them, and its description has their descriptions. */
const MAX_CODES_IN_NAME = 2;

const errorCode = z.enum(Object.keys(REFUSALS)).meta({ id: 'ErrorCode' });

/** The error envelope of `responses.ts`. */
const errorEnvelope = z
  .object({
    success: z.literal(false),
    error: z.object({
      code: errorCode,
      message: z.string().describe('A sentence for a person.'),
      details: z
        .array(
          z
            .object({
              field: z.string().describe('Path into the request, such as `attachments[2].content`.'),
              message: z.string(),
              code: errorCode.optional(),
              recipient: z.string().optional(),
              name: z.string().optional(),
              reason: z.string().optional(),
              since: z.iso.datetime().optional(),
            })
            .meta({ id: 'ErrorDetail' }),
        )
        .optional(),
    }),
    message: z.string().describe('Repeats `error.message`.'),
    reasonCode: errorCode.describe('Repeats `error.code`.'),
    requestId: z.string(),
    subscriptionStatus: z
      .enum(['not_subscribed', 'unsubscribed', 'bounced', 'complained', 'suppressed', 'paused'])
      .optional()
      .describe('Of errors about consent only.'),
  })
  .meta({ id: 'Error' });

/** `longName` is that of a response with many codes. */
function errorResponse(
  longName: string,
  codes: readonly RefusalCode[],
  components: Components,
): OpenApiReference {
  const isShort = codes.length <= MAX_CODES_IN_NAME;
  const examples = codes.map((code) => {
    const [message] = REFUSALS[code][1].split(/[;:.]/, 1);
    const error = { code, message };
    const value = { success: false, error, message, reasonCode: code, requestId: 'order-10042' };
    return [code, share(components, 'examples', code, { value })];
  });
  const name = isShort ? codes.map((code) => pascalCase(code.toLowerCase())).join('Or') : longName;
  return share(components, 'responses', name, {
    description: isShort
      ? codes.map((code) => `\`${code}\`: ${REFUSALS[code][1]}`).join('\n')
      : 'One of the codes in the examples.',
    content: {
      'application/json': {
        schema: schemaOf(errorEnvelope, 'output', components),
        examples: Object.fromEntries(examples),
      },
    },
  });
}

/** The parts that operations refer to, as far as operations were described. */
type Components = Omit<OpenApiDocument['components'], 'securitySchemes'>;

/** The schema, or a reference to it when it has a name. The named schemas in it become components. */
function schemaOf(schema: z.ZodType, direction: Direction, { schemas }: Components): JsonSchema {
  const { root, definitions } = jsonSchemaOf(schema, direction);
  for (const [name, definition] of Object.entries(definitions)) {
    const known = (schemas[name] ??= definition);
    if (isDeepStrictEqual(known, definition)) continue;
    // Requests refuse unknown fields of it, and responses may grow: the document has the form that permits them.
    const open = permittingFields(definition);
    if (!isDeepStrictEqual(permittingFields(known), open))
      throw new Error(
        `two schemas have the name ${name}, or requests and responses have different forms of it`,
      );
    schemas[name] = open;
  }
  return root;
}

function permittingFields(schema: JsonSchema): JsonSchema {
  const open: JsonSchema = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'additionalProperties' && value === false ? undefined : value,
  );
  return open;
}

/** A reference to the component that equals the value; different ones with one name are numbered: `limit`, `limit2`. */
function share<Kind extends 'parameters' | 'responses' | 'examples'>(
  components: Components,
  kind: Kind,
  name: string,
  value: Components[Kind][string],
): OpenApiReference {
  const shared: Record<string, unknown> = components[kind];
  const isEqual = (key: string) => isDeepStrictEqual(shared[key], value);
  let key = isEqual(name) ? name : Object.keys(shared).find(isEqual);
  for (let number = 1; key === undefined; number++) {
    const free = number === 1 ? name : `${name}${number}`;
    if (shared[free] === undefined) key = free;
  }
  shared[key] = value;
  return { $ref: `#/components/${kind}/${key}` };
}

/** Moves responses that are the same for several operations, such as PUT and PATCH, to the components. */
function shareResponses(operations: readonly OpenApiOperation[], components: Components): void {
  const seen = new Map<string, { responses: OpenApiOperation['responses']; name: string; status: string }>();
  for (const { operationId, responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      if ('$ref' in response) continue;
      const text = JSON.stringify(response);
      const first = seen.get(text);
      if (first === undefined) {
        seen.set(text, { responses, name: `${pascalCase(operationId)}${status}`, status });
        continue;
      }
      const reference = share(components, 'responses', first.name, response);
      first.responses[first.status] = reference;
      responses[status] = reference;
    }
  }
}

/** `createCampaign` and `campaign_not_found` become `CreateCampaign` and `CampaignNotFound`. */
function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
