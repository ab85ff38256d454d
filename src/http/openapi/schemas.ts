import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import { REFUSALS } from '../../core/refusal.ts';
import { type Direction, type JsonSchema, jsonSchemaOf } from '../json-schema.ts';

/** The named schemas of the document: those with an id (`.meta({ id: 'Webhook' })`), errors and results. */
export interface SchemaRegistry {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /** A reference to the named schema, or the schema itself when it has no id. */
  schemaOf(schema: z.ZodType, direction: Direction): JsonSchema;
  /** Stores a schema under a name and returns a reference to it. Throws when the name belongs to another schema. */
  add(name: string, schema: JsonSchema): JsonSchema;
}

/**
 * Begins with the common schemas: errors and warnings. `schemas` is filled by later calls, and complete when all
 * operations are described.
 */
export function createSchemaRegistry(): SchemaRegistry {
  const schemas: Record<string, JsonSchema> = {};

  function add(name: string, schema: JsonSchema): JsonSchema {
    const other = schemas[name];
    if (other !== undefined && !isDeepStrictEqual(other, schema))
      throw new Error(
        `two schemas have the name ${name}, or requests and responses have different forms of it`,
      );
    schemas[name] = schema;
    return referenceTo(name);
  }

  for (const [name, schema] of Object.entries(COMMON_SCHEMAS)) add(name, schema);
  return {
    schemas,
    add,
    schemaOf: (schema, direction) => {
      const { root, definitions } = jsonSchemaOf(schema, direction);
      for (const [name, definition] of Object.entries(definitions)) add(name, inDocument(definition));
      return inDocument(root);
    },
  };
}

/** A reference into `components.schemas` of the document; whether the schema exists is not checked. */
export function referenceTo(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** References of a converted schema point to its own definitions. */
function inDocument(schema: JsonSchema): JsonSchema {
  const copy: JsonSchema = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'),
  );
  return copy;
}

const CODE: JsonSchema = { $ref: '#/components/schemas/ErrorCode' };

/** The error envelope of `responses.ts`, and warnings. */
const COMMON_SCHEMAS: Record<string, JsonSchema> = {
  ErrorCode: { type: 'string', enum: Object.keys(REFUSALS) },
  ErrorDetail: {
    type: 'object',
    required: ['field', 'message'],
    properties: {
      field: { type: 'string', description: 'Path into the request, such as `attachments[2].content`.' },
      message: { type: 'string' },
      code: CODE,
      recipient: { type: 'string' },
      name: { type: 'string' },
      reason: { type: 'string' },
      since: { type: 'string', format: 'date-time' },
    },
  },
  Error: {
    type: 'object',
    required: ['success', 'error', 'message', 'reasonCode', 'requestId'],
    properties: {
      success: { type: 'boolean', const: false },
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: {
          code: CODE,
          message: { type: 'string', description: 'A sentence for a person.' },
          details: { type: 'array', items: referenceTo('ErrorDetail') },
        },
      },
      message: { type: 'string', description: 'Repeats `error.message`.' },
      reasonCode: { description: 'Repeats `error.code`.', ...CODE },
      requestId: { type: 'string' },
      subscriptionStatus: {
        type: 'string',
        enum: ['not_subscribed', 'unsubscribed', 'bounced', 'complained', 'suppressed'],
        description: 'Of errors about consent only.',
      },
    },
  },
  WarningList: {
    type: 'array',
    items: { type: 'string' },
    description: 'What was ignored in the request; absent when nothing was.',
  },
  Warnings: { type: 'object', properties: { warnings: referenceTo('WarningList') } },
};
