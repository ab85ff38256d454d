import type { JsonSchema } from '../json-schema.ts';

/** The parts of an OpenAPI 3.1 document that the API has. */
export interface OpenApiDocument {
  openapi: '3.1.0';
  info: {
    title: string;
    version: string;
    description: string;
    license: { name: string; identifier: string };
  };
  servers: { url: string }[];
  /** Security requirements of all operations that do not set their own. */
  security: Record<string, string[]>[];
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    parameters: Record<string, OpenApiParameter>;
    responses: Record<string, OpenApiResponse>;
    examples: Record<string, { value: object }>;
    securitySchemes: Record<string, JsonSchema>;
  };
}

export interface OpenApiOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  /** Empty: no key is required. Absent: the security of the document applies. */
  security?: Record<string, string[]>[];
  /** Scope that the key must have. */
  'x-scope'?: string;
  parameters: (OpenApiParameter | OpenApiReference)[];
  requestBody?: {
    required: boolean;
    content: Record<string, { schema: JsonSchema; example?: object | string }>;
  };
  responses: Record<string, OpenApiResponse | OpenApiReference>;
}

export interface OpenApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

export interface OpenApiResponse {
  description: string;
  content?: Record<string, OpenApiContent>;
}

export interface OpenApiContent {
  schema: JsonSchema;
  example?: unknown;
  /** References to examples in the components. */
  examples?: Record<string, OpenApiReference>;
}

export interface OpenApiReference {
  $ref: string;
}

/** The response itself, or the component that it refers to. */
export function resolveResponse(
  { components }: OpenApiDocument,
  response: OpenApiResponse | OpenApiReference,
): OpenApiResponse {
  return '$ref' in response ? componentAt(components.responses, response) : response;
}

/** The parameters of an operation, with references resolved. */
export function resolveParameters(
  { components }: OpenApiDocument,
  { parameters }: OpenApiOperation,
): OpenApiParameter[] {
  return parameters.map((parameter) =>
    '$ref' in parameter ? componentAt(components.parameters, parameter) : parameter,
  );
}

/** All examples of a content, by name; one without a name has the name ''. */
export function examplesOf(
  { components }: OpenApiDocument,
  { example, examples = {} }: OpenApiContent,
): Record<string, unknown> {
  const named = Object.entries(examples).map(([name, reference]) => [
    name,
    componentAt(components.examples, reference).value,
  ]);
  return { ...Object.fromEntries(named), ...(example === undefined ? {} : { '': example }) };
}

function componentAt<Component>(
  components: Record<string, Component>,
  { $ref }: OpenApiReference,
): Component {
  const component = components[$ref.slice($ref.lastIndexOf('/') + 1)];
  if (component === undefined) throw new Error(`${$ref} is not in the document`);
  return component;
}
