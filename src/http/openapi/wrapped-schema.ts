import { z } from 'zod';

/** The schema inside one that only wraps it (optional, default, pipe and the like), undefined for any other. */
export function wrappedSchema(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe) return schema.def.in;
  if (schema instanceof z.ZodLazy) return schema.def.getter();
  return schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodCatch ||
    schema instanceof z.ZodReadonly
    ? schema.def.innerType
    : undefined;
}
