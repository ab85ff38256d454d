import { expect, it } from 'vitest';
import * as z from 'zod';
import { readProgramFile } from '../../../src/config/program-file.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { marketingBody, transactionalBody } from '../../../src/http/api/sending/send-schemas.ts';
import { misnamedFields } from '../../../src/http/validation/misnamed-fields.ts';
import { unknownFields } from '../../../src/http/validation/unknown-fields.ts';

const names = z.record(z.string(), z.array(z.string())).parse(readProgramFile('field-names.toml'));
/** The only field that single messages do not have. */
const { perHour, ...ofMessages } = names;

/** The fields of which a request with one unknown field is said to mean. */
function meant(schema: z.ZodType, body: object): string | undefined {
  const unknown = unknownFields(schema, body, 'body');
  return isRefusal(unknown) ? unknown.message : misnamedFields(unknown)?.message;
}

it.each(
  Object.entries(ofMessages).flatMap(([field, others]) => others.map((other) => [other, field] as const)),
)('%s is meant for %s', (other, field) => {
  const [list, inner] = field.split('.');
  const body = inner === undefined ? { [other]: 'x' } : { [list ?? '']: [{ [other]: 'x' }] };
  const expected = inner === undefined ? `"${field}"` : `"${list}[0].${inner}"`;
  const fields = field === 'essential' ? { [other]: true } : body;
  expect(meant(transactionalBody, fields)).toContain(`did you mean ${expected}`);
});

it('names of fields that the schema does not have mean nothing', () => {
  expect(perHour).toContain('throttle');
  expect(meant(transactionalBody, { throttle: 5 })).toBeUndefined();
  expect(meant(marketingBody, { attachments: [{ cid: 'x' }] })).toBeUndefined();
});

it('a switch is meant for an option only', () => {
  expect(meant(transactionalBody, { template: true })).toBeUndefined();
  expect(meant(transactionalBody, { isEssential: true })).toContain('did you mean "essential"');
});
