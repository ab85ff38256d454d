import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { isRecord, type JsonSchema } from '../../src/http/json-schema.ts';
import {
  examplesOf,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiResponse,
  resolveParameters,
  resolveResponse,
} from '../../src/http/openapi/document.ts';

/**
 * Reads the OpenAPI document as a client generator does, with an independent JSON Schema validator: the operations,
 * whether a response conforms to the document, and invalid requests.
 */
/** Uploads that are not text. */
const BINARY = /^(?:image|multipart)\//;

export interface Operation {
  /** `GET /web-setup/domains/{domainId}`. */
  name: string;
  method: string;
  path: string;
  spec: OpenApiOperation;
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
}

export interface BrokenRequest {
  what: string;
  field: string;
  body?: unknown;
  query?: Record<string, string>;
}

const JSON_TYPE = 'application/json';

export async function readDocument(url: string) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  const ajv = new Ajv2020({ strict: false, allErrors: true, inlineRefs: false, code: { optimize: false } });
  ajv.addFormat('date-time', TIME);
  for (const format of ['email', 'uri', 'uuid', 'ipv4', 'ipv6']) ajv.addFormat(format, true);
  ajv.addSchema(closedDocument(document), 'document');

  /** The validator of the schema at these steps into the document. */
  function schemaAt(...steps: string[]): ValidateFunction {
    const pointer = steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')));
    const validate = ajv.getSchema(`document#/${pointer.join('/')}`);
    if (validate === undefined) throw new Error(`no schema at ${steps.join(' / ')}`);
    return validate;
  }

  /** The key of the response that describes this status. */
  const keyOf = ({ spec }: Operation, status: string) =>
    status in spec.responses || Number(status) < 400 ? status : 'default';
  const stepsTo = ({ method, path }: Operation) => ['paths', path, method.toLowerCase()];
  const responseAt = (operation: Operation, status: string) => {
    const key = keyOf(operation, status);
    const response = operation.spec.responses[key];
    const steps =
      response !== undefined && '$ref' in response
        ? stepsOf(response.$ref)
        : [...stepsTo(operation), 'responses', key];
    return schemaAt(...steps, 'content', JSON_TYPE, 'schema');
  };
  const bodyAt = (operation: Operation) =>
    schemaAt(...stepsTo(operation), 'requestBody', 'content', JSON_TYPE, 'schema');
  const responseOf = (operation: Operation, status: string): OpenApiResponse | null => {
    const response = operation.spec.responses[keyOf(operation, status)];
    return response === undefined ? null : resolveResponse(document, response);
  };
  const faultsOf = (validate: ValidateFunction, value: unknown) =>
    validate(value)
      ? []
      : (validate.errors ?? []).map(
          (fault) => `${fault.instancePath} ${fault.message} ${JSON.stringify(fault.params)}`,
        );

  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, spec]): Operation => {
      const upper = method.toUpperCase();
      return { name: `${upper} ${path}`, method: upper, path, spec };
    }),
  );

  return {
    document,
    operations,
    responseOf,
    examplesOf: (operation: Operation, status: string): unknown[] => {
      const json = responseOf(operation, status)?.content?.[JSON_TYPE];
      return json === undefined ? [] : Object.values(examplesOf(document, json));
    },
    /** Deviations of a response from the document. */
    faultsOfAnswer: (operation: Operation, { status, headers, text }: Answered): string[] => {
      const described = responseOf(operation, String(status));
      if (described === null) return [`status ${status} is not in the document`];
      const type = headers.get('content-type')?.split(';')[0] ?? '';
      if (described.content?.[type] === undefined) return [`content type ${type} is not in the document`];
      if (type !== JSON_TYPE) return [];
      // The default response is for the errors that it names, not for any status.
      const code = (JSON.parse(text) as { reasonCode?: string }).reasonCode ?? '';
      const isDefault = keyOf(operation, String(status)) === 'default';
      if (isDefault && described.content[JSON_TYPE]?.examples?.[code] === undefined)
        return [`status ${status} is not in the document`];
      return [...faultsOf(responseAt(operation, String(status)), JSON.parse(text)), ...invalidTimes(text)];
    },
    /** Examples of the operation that its own schemas reject. */
    faultsOfExamples: (operation: Operation): string[] => {
      const faults: string[] = [];
      const body = operation.spec.requestBody?.content[JSON_TYPE];
      const uploads = body === undefined ? Object.entries(operation.spec.requestBody?.content ?? {}) : [];
      for (const [type, { example }] of uploads)
        if (example === undefined && !BINARY.test(type)) faults.push(`an upload of ${type} has no example`);
      if (body !== undefined) {
        faults.push(
          ...(body.example === undefined
            ? ['the body has no example']
            : faultsOf(bodyAt(operation), body.example)),
        );
      }
      for (const status of Object.keys(operation.spec.responses)) {
        const json = responseOf(operation, status)?.content?.[JSON_TYPE];
        if (json === undefined) continue;
        const examples = Object.values(examplesOf(document, json));
        if (examples.length === 0) faults.push(`${status} has no example`);
        for (const example of examples)
          faults.push(
            ...faultsOf(responseAt(operation, status), example).map((fault) => `${status} ${fault}`),
          );
      }
      return faults;
    },
    /** Variants of `body` and of the query, each with one value that the document does not allow. */
    brokenRequests: (operation: Operation, body: Record<string, unknown>): BrokenRequest[] => [
      ...brokenBodies(operation, body),
      ...brokenQueries(resolveParameters(document, operation.spec)),
    ],
  };

  function brokenBodies(operation: Operation, body: Record<string, unknown>): BrokenRequest[] {
    const schema = operation.spec.requestBody?.content[JSON_TYPE]?.schema;
    if (schema === undefined) return [];
    // A request schema is named: the document has no anonymous ones.
    const steps = stepsOf(String(schema['$ref']));
    const named = document.components.schemas[steps.at(-1) ?? ''] ?? {};
    const properties = isRecord(named['properties']) ? Object.keys(named['properties']) : [];
    const required = (named['required'] as string[] | undefined) ?? [];
    return [
      ...required.map((field) => {
        const { [field]: _, ...rest } = body;
        return { what: `no ${field}`, field, body: rest };
      }),
      ...properties.flatMap((field) => {
        const takes = schemaAt(...steps, 'properties', field);
        const wrong = [7, 'x', true, [], {}].find((value) => !takes(value));
        return wrong === undefined
          ? []
          : [{ what: `${field}: ${JSON.stringify(wrong)}`, field, body: { ...body, [field]: wrong } }];
      }),
    ];
  }
}

/** Requests may have a time in any form of RFC 3339; responses have one form. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const RESPONSE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function invalidTimes(text: string): string[] {
  const texts = [...text.matchAll(/"([^"\\]*)"/g)].map((match) => match[1] ?? '');
  return texts
    .filter((one) => TIME.test(one) && !RESPONSE_TIME.test(one))
    .map((one) => `${one} is not a time in UTC with milliseconds`);
}

/** A value that the schema of a query parameter refuses; null if it allows any text. */
function wrongText(name: string, schema: Record<string, unknown>): string | null {
  if (name === 'lastKey') return 'not-a-key';
  if (schema['type'] === 'integer' || schema['type'] === 'number') return 'many';
  if (schema['enum'] !== undefined || schema['type'] === 'boolean') return 'neither';
  if (schema['format'] === 'date-time') return 'yesterday';
  return typeof schema['maxLength'] === 'number' ? 'x'.repeat(schema['maxLength'] + 1) : null;
}

function brokenQueries(parameters: readonly OpenApiParameter[]): BrokenRequest[] {
  return parameters
    .filter((parameter) => parameter.in === 'query')
    .flatMap(({ name, schema }) => {
      const wrong = wrongText(name, schema);
      return wrong === null ? [] : [{ what: `?${name}`, field: name, query: { [name]: wrong } }];
    });
}

/** `#/components/schemas/Webhook` as steps into the document. */
function stepsOf(reference: string): string[] {
  return reference.split('/').slice(1);
}

/** Responses may grow, so the document leaves objects open; a field that it does not describe is an error here. */
function closedDocument(document: OpenApiDocument): object {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        key,
        key === 'schema' && isRecord(inner) ? closed(inner) : walk(inner),
      ]),
    );
  };
  const definitions = Object.entries(document.components.schemas).map(([name, schema]) => [
    name,
    closedInside(schema),
  ]);
  const components = {
    ...document.components,
    responses: walk(document.components.responses),
    schemas: Object.fromEntries(definitions),
  };
  return { ...document, paths: walk(document.paths), components };
}

/** Closed where a schema is used, not where it is defined: `allOf` may combine it with other fields. */
function closed(schema: JsonSchema): JsonSchema {
  const inner = closedInside(schema);
  const isOpen =
    '$ref' in inner || 'allOf' in inner || ('properties' in inner && !('additionalProperties' in inner));
  return isOpen ? { ...inner, unevaluatedProperties: false } : inner;
}

function closedInside(schema: JsonSchema): JsonSchema {
  const result: JsonSchema = { ...schema };
  for (const key of ['items', 'additionalProperties'])
    if (isRecord(result[key])) result[key] = closed(result[key]);
  for (const key of ['anyOf', 'oneOf'])
    if (Array.isArray(result[key]))
      result[key] = result[key].map((one) => (isRecord(one) ? closed(one) : one));
  if (isRecord(result['properties']))
    result['properties'] = Object.fromEntries(
      Object.entries(result['properties']).map(([name, one]) => [name, isRecord(one) ? closed(one) : one]),
    );
  return result;
}
