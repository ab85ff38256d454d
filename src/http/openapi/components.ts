import { isDeepStrictEqual } from 'node:util';
import { REFUSALS, type RefusalCode } from '../../core/refusal.ts';
import { ERROR_DESCRIPTIONS } from './descriptions.ts';
import type { OpenApiOperation, OpenApiParameter, OpenApiReference, OpenApiResponse } from './document.ts';
import { referenceTo, type SchemaRegistry } from './schemas.ts';

/** Components that are collected while operations are described. */
export interface Components {
  registry: SchemaRegistry;
  parameters: Record<string, OpenApiParameter>;
  responses: Record<string, OpenApiResponse>;
  examples: Record<string, { value: object }>;
}

/** Errors of the key. Operations without another 4XX response list them, because linters require one. */
const FORBIDDEN_ERRORS: RefusalCode[] = ['KEY_NOT_ALLOWED', 'ACCOUNT_DISABLED', 'INSUFFICIENT_SCOPE'];
/** Errors that come before an operation or end any: the response `default` describes them once. */
export const COMMON_ERRORS = {
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

/** A response with at most this number of codes is named after them, and its description has their descriptions. */
const MAX_CODES_IN_NAME = 2;

/** One response for each status, with an example of each code, and `default` for `COMMON_ERRORS`. */
export function errorResponses(
  operationId: string,
  codes: readonly RefusalCode[],
  kind: keyof typeof COMMON_ERRORS,
  components: Components,
): Record<string, OpenApiReference> {
  const common: readonly RefusalCode[] = COMMON_ERRORS[kind];
  const byStatus = new Map<number, RefusalCode[]>();
  const listsForbidden = kind === 'keyed' && !codes.some((code) => REFUSALS[code] < 500);
  const listed = listsForbidden ? [...codes, ...FORBIDDEN_ERRORS] : codes;
  const statuses = new Set(listed.map((code) => REFUSALS[code]));
  const ofListedStatus = common.filter((code) => statuses.has(REFUSALS[code]));
  for (const code of common) components.examples[code] = { value: errorExample(code) };
  for (const code of new Set([...listed, ...ofListedStatus])) {
    components.examples[code] = { value: errorExample(code) };
    const status = REFUSALS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return {
    ...Object.fromEntries(
      [...byStatus].map(([status, ofStatus]) => [
        String(status),
        errorResponse(`${pascalCase(operationId)}${status}`, ofStatus, components),
      ]),
    ),
    default: errorResponse(kind === 'keyed' ? 'CommonErrors' : 'OpenErrors', common, components),
  };
}

/** Moves responses that are the same for several operations, such as PUT and PATCH, to the components. */
export function shareResponses(operations: readonly OpenApiOperation[], { responses }: Components): void {
  const uses = new Map<
    string,
    { operation: OpenApiOperation; status: string; response: OpenApiResponse }[]
  >();
  for (const operation of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      if ('$ref' in response) continue;
      const text = JSON.stringify(response);
      uses.set(text, [...(uses.get(text) ?? []), { operation, status, response }]);
    }
  }
  for (const [first, ...others] of uses.values()) {
    if (first === undefined || others.length === 0) continue;
    const name = `${pascalCase(first.operation.operationId)}${first.status}`;
    responses[name] = first.response;
    for (const { operation, status } of [first, ...others])
      operation.responses[status] = { $ref: `#/components/responses/${name}` };
  }
}

/** `name` is that of a response with many codes, unless an earlier operation has the same. */
function errorResponse(
  name: string,
  codes: readonly RefusalCode[],
  { responses }: Components,
): OpenApiReference {
  const response = {
    description:
      codes.length > MAX_CODES_IN_NAME
        ? 'One of the codes in the examples.'
        : codes.map((code) => `\`${code}\`: ${ERROR_DESCRIPTIONS[code]}`).join('\n'),
    content: {
      'application/json': {
        schema: referenceTo('Error'),
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
  const shared =
    (codes.join() === FORBIDDEN_ERRORS.join() ? 'Forbidden' : null) ??
    Object.keys(responses).find((key) => isDeepStrictEqual(responses[key], response)) ??
    (codes.length > MAX_CODES_IN_NAME
      ? name
      : codes.map((code) => pascalCase(code.toLowerCase())).join('Or'));
  responses[shared] = response;
  return { $ref: `#/components/responses/${shared}` };
}

function errorExample(code: RefusalCode) {
  const [message] = ERROR_DESCRIPTIONS[code].split(/[;:.]/, 1);
  return {
    success: false,
    error: { code, message },
    message,
    reasonCode: code,
    requestId: 'order-10042',
  };
}

/** `createCampaign` and `campaign_not_found` become `CreateCampaign` and `CampaignNotFound`. */
export function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
