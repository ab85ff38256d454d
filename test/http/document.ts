import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { OpenApiDocument, OpenApiOperation } from '../../src/http/openapi/openapi.ts';

/**
 * Reads the OpenAPI document as a client generator would, with a JSON Schema validator that is not ours: which
 * operations there are, whether an answer is one that is promised, and how a request can be wrong.
 */
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
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addFormat('date-time', TIME);
  for (const format of ['email', 'uri', 'uuid', 'ipv4', 'ipv6']) ajv.addFormat(format, true);
  ajv.addSchema(closed(document), 'document');

  /** The validator of the schema at these steps into the document. */
  function schemaAt(...steps: string[]): ValidateFunction {
    const pointer = steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')));
    const validate = ajv.getSchema(`document#/${pointer.join('/')}`);
    if (validate === undefined) throw new Error(`there is no schema at ${steps.join(' / ')}`);
    return validate;
  }

  const place = ({ method, path }: Operation) => ['paths', path, method.toLowerCase()];
  const answerAt = (operation: Operation, status: string) =>
    schemaAt(...place(operation), 'responses', status, 'content', JSON_TYPE, 'schema');
  const bodyAt = (operation: Operation, ...steps: string[]) =>
    schemaAt(...place(operation), 'requestBody', 'content', JSON_TYPE, 'schema', ...steps);
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
    /** What of an answer was not promised; empty when all was. */
    faultsOfAnswer: (operation: Operation, { status, headers, text }: Answered): string[] => {
      const promised = operation.spec.responses[String(status)];
      if (promised === undefined) return [`status ${status} is not in the document`];
      const type = headers.get('content-type')?.split(';')[0] ?? '';
      if (promised.content?.[type] === undefined) return [`content type ${type} is not in the document`];
      if (type !== JSON_TYPE) return [];
      return [...faultsOf(answerAt(operation, String(status)), JSON.parse(text)), ...oddTimes(text)];
    },
    /** Every example of the operation that is not of its own schema. */
    faultsOfExamples: (operation: Operation): string[] => {
      const faults: string[] = [];
      const body = operation.spec.requestBody?.content[JSON_TYPE];
      const uploads = body === undefined ? Object.entries(operation.spec.requestBody?.content ?? {}) : [];
      for (const [type, { example }] of uploads)
        if (example === undefined) faults.push(`an upload of ${type} has no example`);
      if (body !== undefined) {
        faults.push(
          ...(body.example === undefined
            ? ['the body has no example']
            : faultsOf(bodyAt(operation), body.example)),
        );
      }
      for (const [status, { content }] of Object.entries(operation.spec.responses)) {
        const json = content?.[JSON_TYPE];
        if (json === undefined) continue;
        const examples = [json.example, ...Object.values(json.examples ?? {}).map(({ value }) => value)];
        const given = examples.filter((example) => example !== undefined);
        if (given.length === 0) faults.push(`${status} has no example`);
        for (const example of given)
          faults.push(...faultsOf(answerAt(operation, status), example).map((fault) => `${status} ${fault}`));
      }
      return faults;
    },
    /** Requests like `body` with one thing wrong each, which the document says must be refused. */
    brokenRequests: (operation: Operation, body: Record<string, unknown>): BrokenRequest[] => [
      ...brokenBodies(operation, body),
      ...brokenQueries(operation),
    ],
  };

  function brokenBodies(operation: Operation, body: Record<string, unknown>): BrokenRequest[] {
    const schema = operation.spec.requestBody?.content[JSON_TYPE]?.schema;
    if (schema === undefined) return [];
    const properties = Object.keys((schema['properties'] as object | undefined) ?? {});
    const required = (schema['required'] as string[] | undefined) ?? [];
    return [
      ...required.map((field) => {
        const { [field]: _, ...rest } = body;
        return { what: `no ${field}`, field, body: rest };
      }),
      ...properties.flatMap((field) => {
        const takes = bodyAt(operation, 'properties', field);
        const wrong = [7, 'x', true, [], {}].find((value) => !takes(value));
        return wrong === undefined
          ? []
          : [{ what: `${field}: ${JSON.stringify(wrong)}`, field, body: { ...body, [field]: wrong } }];
      }),
    ];
  }
}

/** Callers may write a time in any of RFC 3339's forms; answers have one. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const OUR_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function oddTimes(text: string): string[] {
  const texts = [...text.matchAll(/"([^"\\]*)"/g)].map((match) => match[1] ?? '');
  return texts
    .filter((one) => TIME.test(one) && !OUR_TIME.test(one))
    .map((one) => `${one} is no time in UTC with milliseconds`);
}

/** A value that a query parameter's own schema refuses; null where it takes any text. */
function wrongText(name: string, schema: Record<string, unknown>): string | null {
  if (name === 'lastKey') return 'not-a-key';
  if (schema['type'] === 'integer' || schema['type'] === 'number') return 'many';
  if (schema['enum'] !== undefined || schema['type'] === 'boolean') return 'neither';
  if (schema['format'] === 'date-time') return 'yesterday';
  return typeof schema['maxLength'] === 'number' ? 'x'.repeat(schema['maxLength'] + 1) : null;
}

function brokenQueries({ spec }: Operation): BrokenRequest[] {
  return spec.parameters
    .filter((parameter) => parameter.in === 'query')
    .flatMap(({ name, schema }) => {
      const wrong = wrongText(name, schema);
      return wrong === null ? [] : [{ what: `?${name}`, field: name, query: { [name]: wrong } }];
    });
}

/** An answer may grow; but whatever it has today is to be described. */
function closed<T>(value: T): T {
  if (Array.isArray(value)) return value.map(closed) as T;
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]));
  const open = inner['type'] === 'object' && 'properties' in inner && !('additionalProperties' in inner);
  return (open ? { ...inner, additionalProperties: false } : inner) as T;
}
