import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';

/** JSON Schema 2020-12 of the schemas that validate: the documentation and the checks of the API read this form. */
export type JsonSchema = { [keyword: string]: unknown };

export interface ConvertedSchema {
  root: JsonSchema;
  /** Schemas with an id (`.meta({ id })`) and recursive ones, by the name in `#/components/schemas/NAME`. */
  definitions: Record<string, JsonSchema>;
}

/** `input`: the value as a caller sends it; `output`: as the schema returns it. */
export type Direction = 'input' | 'output';

const converted: Record<Direction, WeakMap<z.ZodType, ConvertedSchema>> = {
  input: new WeakMap(),
  output: new WeakMap(),
};

/** Converts a schema once for each direction. The result is shared: do not modify it. */
export function jsonSchemaOf(schema: z.ZodType, direction: Direction): ConvertedSchema {
  const known = converted[direction].get(schema);
  if (known !== undefined) return known;
  const {
    $schema: _,
    $defs = {},
    ...root
  } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: direction,
    unrepresentable: 'any',
    override: ({ jsonSchema, path }) => {
      // Responses may grow: a client must not reject a field that it does not know.
      if (direction === 'output' && jsonSchema.additionalProperties === false)
        delete jsonSchema.additionalProperties;
      // The format states it; the patterns for times have 300 characters.
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      // A constant has only one type.
      if (jsonSchema.const !== undefined) delete jsonSchema.type;
      // The names in a JSON object are always strings.
      if (isDeepStrictEqual(jsonSchema.propertyNames, { type: 'string' })) delete jsonSchema.propertyNames;
      // Generators of clients make properties with this keyword required.
      if (direction === 'input' && path.length > 0 && jsonSchema.default !== undefined) {
        const { description = '', default: value } = jsonSchema;
        jsonSchema.description = `${description} Default: \`${JSON.stringify(value)}\`.`.trim();
        delete jsonSchema.default;
      }
      // Bounds of the number type, not of the API.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  const result = { root: plain(root), definitions: plain($defs) as Record<string, JsonSchema> };
  converted[direction].set(schema, result);
  return result;
}

/** Drops what is not JSON: zod attaches functions to its result. References are those of an OpenAPI document. */
function plain(schema: object): JsonSchema {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  const copy: JsonSchema = JSON.parse(text);
  return copy;
}

/** The schemas of `anyOf` and `oneOf`. */
export function alternativesOf({ anyOf, oneOf }: JsonSchema): JsonSchema[] {
  return [anyOf, oneOf].filter(Array.isArray).flat().filter(isRecord);
}

/** False for null, arrays and everything that is not an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
