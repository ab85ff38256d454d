import type { OpenApiDocument, OpenApiOperation, OpenApiParameter } from '../../../http/openapi/document.ts';
import { curlArguments, quoted } from '../../parts/curl.ts';

/** An operation of the API, as the page shows it. */
export interface ApiOperation {
  id: string;
  method: string;
  /** Path with parameters in braces. */
  path: string;
  summary: string;
  description: string;
  tag: string;
  parameters: OpenApiParameter[];
  /** What the body may be, with an example of each; empty: there is none. */
  bodies: { type: string; example: string }[];
}

export type Values = Readonly<Record<string, string>>;

/** The operations that need a key and that `may` permits, in the order of the document. */
export function operationsOf(document: OpenApiDocument, may: (id: string) => boolean): ApiOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security, operationId }]) => security?.length !== 0 && may(operationId))
      .map(([method, operation]) => ({
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        summary: operation.summary,
        description: operation.description ?? '',
        tag: operation.tags[0] ?? '',
        parameters: parametersOf(document, operation),
        bodies: bodiesOf(operation),
      })),
  );
}

/** References are to `#/components/parameters/…`. */
function parametersOf({ components }: OpenApiDocument, { parameters }: OpenApiOperation): OpenApiParameter[] {
  return parameters.flatMap((parameter) => {
    if (!('$ref' in parameter)) return parameter;
    return components.parameters[parameter.$ref.slice(parameter.$ref.lastIndexOf('/') + 1)] ?? [];
  });
}

function bodiesOf({ requestBody }: OpenApiOperation): ApiOperation['bodies'] {
  return Object.entries(requestBody?.content ?? {}).map(([type, { example }]) => ({
    type,
    example: typeof example === 'string' ? example : JSON.stringify(example ?? {}, null, 2),
  }));
}

/** The operations whose name, path or summary has all words of `filter`. */
export function matching(operations: readonly ApiOperation[], filter: string): ApiOperation[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return operations.filter(({ id, method, path, summary, tag }) => {
    const text = `${id} ${method} ${path} ${summary} ${tag}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/**
 * The path of a request: parameters without a value are left out of the query. Throws for `.` and `..` in the path, which
 * browsers remove with the segment before them: the request would be one of another operation.
 */
export function requestPath({ path, parameters }: ApiOperation, values: Values): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    if (value === '.' || value === '..') throw new Error(`${name}: ${value}`);
    return encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const { name, in: place } of parameters) {
    const value = values[name];
    if (place === 'query' && value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? filled : `${filled}?${query}`;
}

/** The header fields among the parameters that have a value. */
export function requestHeaders({ parameters }: ApiOperation, values: Values): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { name, in: place } of parameters) {
    const value = values[name];
    if (place === 'header' && value !== undefined) headers[name] = value;
  }
  return headers;
}

/** A request as a command of a POSIX shell. */
export function curlCommand(request: {
  method: string;
  apiUrl: string;
  path: string;
  accountId: string;
  headers: Readonly<Record<string, string>>;
  body: { type: string; text: string } | null;
}): string {
  const { method, headers, body } = request;
  const lines = [
    ...curlArguments(request),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
  ];
  if (body !== null)
    lines.push(`-H ${quoted(`Content-Type: ${body.type}`)}`, `--data-binary ${quoted(body.text)}`);
  return `curl -sS ${method === 'GET' ? '' : `-X ${method} `}${lines.join(' \\\n  ')}`;
}
