import { z } from 'zod';
import { REFUSALS } from '../../core/refusal.ts';

/** From the schemas that validate to the schemas that the OpenAPI document shows. */
export type JsonSchema = { [keyword: string]: unknown };

/** JSON Schema 2020-12; schemas that carry an id go to the components. */
export function schemaOf(
  schema: z.ZodType,
  io: 'input' | 'output',
  schemas: Record<string, JsonSchema>,
): JsonSchema {
  const {
    $schema: _,
    $defs,
    ...rest
  } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // An answer may grow fields; a client that refuses them would break on every addition.
      if (io === 'output' && jsonSchema.additionalProperties === false)
        delete jsonSchema.additionalProperties;
      // What a double can hold is no rule of ours.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  for (const [name, definition] of Object.entries($defs ?? {})) schemas[name] = toComponents(definition);
  return toComponents(rest);
}

function toComponents(schema: object): JsonSchema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonSchema;
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
