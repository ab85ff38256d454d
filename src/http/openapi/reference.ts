import type { Work } from '../../core/concurrency/slices.ts';
import { isRefusalCode, REFUSALS } from '../../core/refusal.ts';
import { alternativesOf, isRecord, type JsonSchema } from '../json-schema.ts';
import { ERROR_DESCRIPTIONS } from './descriptions.ts';
import {
  examplesOf,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiResponse,
  resolveParameters,
  resolveResponse,
} from './document.ts';

/*
 * The OpenAPI document arranged for people: sections, operations and tables of fields. The page `/docs` and the Markdown
 * reference render it. Texts are plain text with `code` in backticks.
 */

/** The operations of a tag. */
export interface ReferenceSection {
  name: string;
  description: string;
  operations: ReferenceOperation[];
}

export interface ReferenceOperation {
  id: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  /** Null: no key is required. */
  scope: string | null;
  parameters: ReferenceParameter[];
  body: ReferenceField[];
  /** A request with curl. */
  request: string;
  successes: { status: string; description: string; data: ReferenceField[]; example: string | null }[];
  errors: { status: string; codes: string[] }[];
}

export interface ReferenceField {
  /** `attachments[].content`. */
  path: string;
  type: string;
  required: boolean;
  description: string;
}

export interface ReferenceParameter extends ReferenceField {
  place: 'path' | 'query' | 'header';
}

/** Levels of nesting that a table of fields shows. */
const MAX_DEPTH = 5;

/**
 * In steps of one operation, in the order of the document's tags; an operation with several tags is in each section.
 * Pure; throws an Error when a reference of the document has no target.
 */
export function* buildingReference(document: OpenApiDocument): Work<ReferenceSection[]> {
  const operations: { tags: string[]; described: ReferenceOperation }[] = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      operations.push({
        tags: operation.tags,
        described: operationOf(path, method.toUpperCase(), operation, document),
      });
      yield;
    }
  }
  return document.tags.map(({ name, description = '' }) => ({
    name,
    description,
    operations: operations.filter(({ tags }) => tags.includes(name)).map(({ described }) => described),
  }));
}

function operationOf(
  path: string,
  method: string,
  operation: OpenApiOperation,
  document: OpenApiDocument,
): ReferenceOperation {
  const { schemas } = document.components;
  const body = operation.requestBody?.content['application/json'];
  const responses = Object.entries(operation.responses).map(([status, response]) => ({
    status,
    response: resolveResponse(document, response),
  }));
  return {
    id: operation.operationId,
    method,
    path,
    summary: operation.summary,
    description: operation.description ?? '',
    scope: operation['x-scope'] ?? null,
    parameters: resolveParameters(document, operation).map(
      ({ name, in: place, required, description, schema }) => ({
        path: name,
        place,
        required,
        type: typeOf(schema, schemas),
        description: withDefault(description ?? resolve(schema, schemas)['description'], schema),
      }),
    ),
    body: body === undefined ? [] : fieldsOf(body.schema, '', schemas, 0),
    request: curl(path, method, operation),
    successes: responses
      .filter(({ status }) => Number(status) < 400)
      .map(({ status, response }) => {
        const [content] = Object.values(response.content ?? {});
        const properties = content?.schema['properties'];
        const data = isRecord(properties) && isRecord(properties['data']) ? properties['data'] : null;
        return {
          status,
          description: response.description,
          data: data === null ? [] : fieldsOf(data, '', schemas, 0),
          example: exampleText(content === undefined ? [] : Object.values(examplesOf(document, content))),
        };
      }),
    errors: errorsOf(
      responses.filter(({ status }) => !(Number(status) < 400)).map(({ response }) => response),
    ),
  };
}

/** The error codes of the responses with their descriptions, by status. */
function errorsOf(responses: readonly OpenApiResponse[]): ReferenceOperation['errors'] {
  const contents = responses.flatMap(({ content = {} }) => Object.values(content));
  const codes = new Set(contents.flatMap(({ examples = {} }) => Object.keys(examples)).filter(isRefusalCode));
  const statuses = [...new Set([...codes].map((code) => REFUSALS[code]))].toSorted((a, b) => a - b);
  return statuses.map((status) => ({
    status: String(status),
    codes: [...codes]
      .filter((code) => REFUSALS[code] === status)
      .map((code) => `\`${code}\`: ${ERROR_DESCRIPTIONS[code]}`),
  }));
}

type Schemas = OpenApiDocument['components']['schemas'];

/** All fields of an object and of the objects inside it. */
function fieldsOf(schema: JsonSchema, prefix: string, schemas: Schemas, depth: number): ReferenceField[] {
  if (depth > MAX_DEPTH) return [];
  const resolved = resolve(schema, schemas);
  const { properties, items, required, allOf } = resolved;
  if (isRecord(items)) return fieldsOf(items, `${prefix}[]`, schemas, depth + 1);
  const parts = [...alternativesOf(resolved), ...(Array.isArray(allOf) ? allOf.filter(isRecord) : [])];
  if (parts.length > 0) {
    const fields = parts.flatMap((part) => fieldsOf(part, prefix, schemas, depth + 1));
    return fields.filter((field, index) => fields.findIndex(({ path }) => path === field.path) === index);
  }
  if (!isRecord(properties)) return [];
  const names = Array.isArray(required) ? required : [];
  return Object.entries(properties).flatMap(([name, property]) => {
    const inner = isRecord(property) ? resolve(property, schemas) : {};
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [
      {
        path,
        type: typeOf(inner, schemas),
        required: names.includes(name),
        description: withDefault(inner['description'], inner),
      },
      ...fieldsOf(inner, path, schemas, depth + 1),
    ];
  });
}

/** Follows a reference; keywords next to it, such as the description of a field, take precedence. */
function resolve(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const { $ref, ...rest } = schema;
  if (typeof $ref !== 'string') return schema;
  const target = schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
  if (target === undefined) throw new Error(`${$ref} is not in the document`);
  return { ...target, ...rest };
}

/** `string, 1 to 200 characters`, `array of string`, `"tx" or "mk"`. */
function typeOf(schema: JsonSchema, schemas: Schemas): string {
  const resolved = resolve(schema, schemas);
  const { type, items, format, minLength, maxLength, minimum, maximum, maxItems, maxProperties } = resolved;
  if ('const' in resolved) return code(resolved['const']);
  if (Array.isArray(resolved['enum'])) return resolved['enum'].map(code).join(', ');
  const alternatives = alternativesOf(resolved);
  if (alternatives.length > 0)
    return [...new Set(alternatives.map((alternative) => typeOf(alternative, schemas)))].join(' or ');
  if (type === 'array') {
    const element = isRecord(items) ? ` of ${typeOf(items, schemas)}` : '';
    return `array${element}${bounds(undefined, maxItems, 'entries')}`;
  }
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...resolved, type: one }, schemas)).join(' or ');
  const name = typeof type === 'string' ? type : 'allOf' in resolved ? 'object' : 'any';
  const suffix = typeof format === 'string' ? ` (${format})` : '';
  return `${name}${suffix}${bounds(minLength, maxLength, 'characters')}${bounds(minimum, maximum, '')}${bounds(undefined, maxProperties, 'entries')}`;
}

function bounds(low: unknown, high: unknown, unit: string): string {
  const min = typeof low === 'number' && low > 0 ? low : null;
  const max = typeof high === 'number' ? high : null;
  if (min === null && max === null) return '';
  const range = max === null ? `at least ${min}` : min === null ? `at most ${max}` : `${min} to ${max}`;
  return `, ${range}${unit === '' ? '' : ` ${unit}`}`;
}

function withDefault(description: unknown, schema: JsonSchema): string {
  const text = typeof description === 'string' ? description : '';
  if (!('default' in schema)) return text;
  return `${text === '' ? '' : `${text} `}Default: ${code(schema['default'])}.`;
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

/** The first example. */
function exampleText([example]: unknown[]): string | null {
  if (example === undefined) return null;
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2);
}

function curl(path: string, method: string, operation: OpenApiOperation): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}"$BASE${path}"`];
  if (operation.security === undefined) lines.push('-H "X-Api-Key: $KEY" -H "X-Id: $ID"');
  const body = operation.requestBody?.content['application/json'];
  const [upload] = Object.keys(operation.requestBody?.content ?? {});
  if (body === undefined && upload !== undefined)
    lines.push(`-H 'Content-Type: ${upload}'`, '--data-binary @FILE');
  if (body !== undefined) {
    const json = JSON.stringify(body.example ?? {}, null, 2).replaceAll("'", `'\\''`);
    lines.push(`-H 'Content-Type: application/json'`, `-d '${json}'`);
  }
  return lines.join(' \\\n  ');
}
