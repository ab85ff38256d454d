import type { z } from 'zod';
import { REFUSALS } from '../../core/refusal.ts';
import { type Direction, type JsonSchema, jsonSchemaOf } from '../json-schema.ts';

/** The schema of the document; schemas with an id go to the components. */
export function schemaOf(
  schema: z.ZodType,
  direction: Direction,
  schemas: Record<string, JsonSchema>,
): JsonSchema {
  const { root, definitions } = jsonSchemaOf(schema, direction);
  for (const [name, definition] of Object.entries(definitions)) schemas[name] = toComponents(definition);
  return toComponents(root);
}

function toComponents(schema: JsonSchema): JsonSchema {
  const copy: JsonSchema = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'),
  );
  return copy;
}

/** The error envelope of `answers.ts`. */
export const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['success', 'error', 'message', 'reasonCode', 'requestId'],
  properties: {
    success: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { type: 'string', enum: Object.keys(REFUSALS) },
        message: { type: 'string', description: 'A sentence for a person.' },
        details: {
          type: 'array',
          items: {
            type: 'object',
            required: ['field', 'message'],
            properties: {
              field: { type: 'string', description: 'Path into the request: `attachments[2].content`.' },
              message: { type: 'string' },
              code: { type: 'string', enum: Object.keys(REFUSALS) },
              recipient: { type: 'string' },
              name: { type: 'string' },
              reason: { type: 'string' },
              since: { type: 'string', format: 'date-time' },
            },
          },
        },
      },
    },
    message: { type: 'string', description: 'Repeats `error.message`.' },
    reasonCode: { type: 'string', description: 'Repeats `error.code`.' },
    requestId: { type: 'string' },
    subscriptionStatus: {
      type: 'string',
      enum: ['not_subscribed', 'unsubscribed', 'bounced', 'complained', 'suppressed'],
      description: 'Consent refusals only.',
    },
  },
};
