import { createHash } from 'node:crypto';
import type { OpenRoute } from '../route.ts';
import { staticPage } from '../static-page.ts';
import { docsStyle } from './docs-style.ts';
import type { OpenApiDocument, OpenApiOperation, OpenApiResponse } from './openapi.ts';
import type { JsonSchema } from './openapi-schemas.ts';

/**
 * `/docs`: the OpenAPI document as a page for people. One file with its own style, no script, nothing from
 * elsewhere; every operation has an anchor.
 */
export function docsRoute(document: OpenApiDocument): OpenRoute {
  return {
    path: '/docs',
    operationId: 'getDocs',
    tag: 'Operations',
    summary: 'This page',
    answers: { 200: { description: 'The page.', contentType: 'text/html' } },
    visit: staticPage('text/html; charset=utf-8', docsPage(document), {
      'Content-Security-Policy': policy(docsStyle),
      'Referrer-Policy': 'no-referrer',
    }),
  };
}

function policy(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

interface Entry {
  path: string;
  method: string;
  operation: OpenApiOperation;
}

/** Nesting that a table still shows. */
const MAX_DEPTH = 5;

export function docsPage(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Entry => ({ path, method, operation })),
  );
  const groups = document.tags.map(({ name }) => ({
    name,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const title = `${document.info.title} ${document.info.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escape(title)}: interface</title>
<style>${docsStyle}</style>
</head>
<body>
<nav aria-label="Operations">
<p class="brand"><a href="#top">${escape(title)}</a></p>
${groups.map(navGroup).join('\n')}
</nav>
<main id="top">
<h1>The interface of ${escape(document.info.title)}</h1>
<p>${prose(document.info.description)}</p>
<p>The same as a machine-readable document: <a href="/openapi.json">/openapi.json</a>. The examples take the address, key and account id from the shell:</p>
<pre><code>BASE=http://127.0.0.1:8080
KEY=pr_…
ID=acct_…</code></pre>
${groups.map((group) => section(group, document)).join('\n')}
</main>
</body>
</html>
`;
}

function navGroup(group: { name: string; entries: Entry[] }): string {
  const links = group.entries.map(
    ({ path, method, operation }) =>
      `<li><a href="#${escape(operation.operationId)}"><span class="m ${method}">${method.toUpperCase()}</span> ${escape(path)}</a></li>`,
  );
  return `<h2><a href="#${slug(group.name)}">${escape(group.name)}</a></h2>\n<ul>\n${links.join('\n')}\n</ul>`;
}

function section(group: { name: string; entries: Entry[] }, document: OpenApiDocument): string {
  return `<section id="${slug(group.name)}">
<h2>${escape(group.name)}</h2>
${group.entries.map((entry) => operationHtml(entry, document)).join('\n')}
</section>`;
}

function operationHtml({ path, method, operation }: Entry, document: OpenApiDocument): string {
  const body = operation.requestBody?.content['application/json'];
  const scope = operation['x-scope'];
  const responses = Object.entries(operation.responses);
  return `<article id="${escape(operation.operationId)}">
<h3><span class="m ${method}">${method.toUpperCase()}</span> <code>${escape(path)}</code></h3>
<p>${prose(operation.summary)}.${scope === undefined ? ' No key needed.' : ` Key scope: <code>${escape(scope)}</code>.`}</p>
${operation.description === undefined ? '' : paragraphs(operation.description)}
${parameterTable(operation)}
${body === undefined ? '' : fieldTable('Request body', body.schema, document)}
<h4>Example</h4>
<pre><code>${escape(curl(path, method, operation))}</code></pre>
${responses
  .filter(([status]) => Number(status) < 400)
  .map(([status, response]) => successHtml(status, response, document))
  .join('\n')}
${refusalsHtml(responses.filter(([status]) => Number(status) >= 400))}
</article>`;
}

function parameterTable({ parameters }: OpenApiOperation): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(
    ({ name, in: place, required, description, schema }) =>
      `<tr><th scope="row"><code>${escape(name)}</code></th><td>${place}</td><td>${required ? 'yes' : 'no'}</td><td>${[typeText(schema), prose(description ?? '')].filter(Boolean).join('. ')}</td></tr>`,
  );
  return table('Parameters', ['Name', 'In', 'Required', 'Meaning'], rows);
}

function successHtml(status: string, response: OpenApiResponse, document: OpenApiDocument): string {
  const [content] = Object.values(response.content ?? {});
  const properties = content?.schema['properties'];
  const data = isRecord(properties) && isRecord(properties['data']) ? properties['data'] : null;
  return `<h4>${status}</h4>
<p>${prose(response.description)}</p>
${data === null ? '' : fieldTable('data', data, document)}
${content?.example === undefined ? '' : `<pre><code>${escape(JSON.stringify(content.example, null, 2))}</code></pre>`}`;
}

/** All refusals together and folded away: most are the same everywhere. */
function refusalsHtml(refusals: [status: string, response: OpenApiResponse][]): string {
  if (refusals.length === 0) return '';
  const rows = refusals.map(
    ([status, { description }]) =>
      `<tr><th scope="row">${status}</th><td>${description.split('\n').map(prose).join('<br>')}</td></tr>`,
  );
  return `<details><summary>Refusals</summary>${table('Refusals', ['Status', 'Codes'], rows)}</details>`;
}

interface Field {
  path: string;
  required: boolean;
  schema: JsonSchema;
}

function fieldTable(caption: string, schema: JsonSchema, document: OpenApiDocument): string {
  const fields = fieldsOf(resolve(schema, document), '', document, 0);
  if (fields.length === 0) return '';
  const rows = fields.map(
    ({ path, required, schema }) =>
      `<tr><th scope="row"><code>${escape(path)}</code></th><td>${typeText(schema)}</td><td>${required ? 'yes' : 'no'}</td><td>${prose(descriptionOf(schema))}</td></tr>`,
  );
  return table(caption, ['Field', 'Type', 'Required', 'Meaning'], rows);
}

/** All fields of an object and of what is inside it, with their paths: `attachments[].content`. */
function fieldsOf(schema: JsonSchema, prefix: string, document: OpenApiDocument, depth: number): Field[] {
  if (depth > MAX_DEPTH) return [];
  const { properties, items, required } = schema;
  if (isRecord(items)) return fieldsOf(resolve(items, document), `${prefix}[]`, document, depth + 1);
  const variants = alternatives(schema);
  if (variants.length > 0) {
    return mergedFields(variants.map((one) => fieldsOf(resolve(one, document), prefix, document, depth + 1)));
  }
  if (!isRecord(properties)) return [];
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties).flatMap(([name, raw]) => {
    const inner = isRecord(raw) ? resolve(raw, document) : {};
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [
      { path, required: needed.includes(name), schema: inner },
      ...fieldsOf(inner, path, document, depth + 1),
    ];
  });
}

/** One field for each path: required where every variant requires it; constants of the variants are an enumeration. */
function mergedFields(variants: Field[][]): Field[] {
  const all = variants.flat();
  return [...new Set(all.map(({ path }) => path))].map((path) => {
    const fields = all.filter((field) => field.path === path);
    const constants = fields.flatMap(({ schema }) => ('const' in schema ? [schema['const']] : []));
    return {
      path,
      required: fields.length === variants.length && fields.every(({ required }) => required),
      schema: constants.length > 1 ? { enum: constants } : (fields[0]?.schema ?? {}),
    };
  });
}

function alternatives(schema: JsonSchema): JsonSchema[] {
  const { anyOf, oneOf, allOf } = schema;
  return [anyOf, oneOf, allOf].filter(Array.isArray).flat().filter(isRecord);
}

function resolve(schema: JsonSchema, document: OpenApiDocument): JsonSchema {
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  return document.components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {};
}

/** `text, 1 to 200 characters`, `array of text`, `"tx" or "mk"`. */
function typeText(schema: JsonSchema): string {
  const { type, items, format, minLength, maxLength, minimum, maximum, maxItems } = schema;
  if ('const' in schema) return code(schema['const']);
  if (Array.isArray(schema['enum'])) return schema['enum'].map(code).join(', ');
  const variants = alternatives(schema);
  if (variants.length > 0) return [...new Set(variants.map(typeText))].join(' or ');
  if (type === 'array') {
    const of = isRecord(items) ? ` of ${typeText(items)}` : '';
    return `array${of}${bounds(undefined, maxItems, 'entries')}`;
  }
  if (Array.isArray(type)) return type.map((one) => typeText({ ...schema, type: one })).join(' or ');
  const name = typeof type === 'string' ? (type === 'string' ? 'text' : type) : 'anything';
  const form = typeof format === 'string' ? ` (${escape(format)})` : '';
  return `${escape(name)}${form}${bounds(minLength, maxLength, 'characters')}${bounds(minimum, maximum, '')}`;
}

function bounds(low: unknown, high: unknown, unit: string): string {
  const least = typeof low === 'number' && low > 0 ? low : null;
  const most = typeof high === 'number' ? high : null;
  if (least === null && most === null) return '';
  const range =
    most === null ? `at least ${least}` : least === null ? `at most ${most}` : `${least} to ${most}`;
  return `, ${range}${unit === '' ? '' : ` ${unit}`}`;
}

function descriptionOf(schema: JsonSchema): string {
  const parts = [schema['description']].filter((text) => typeof text === 'string');
  if ('default' in schema) parts.push(`Default: \`${JSON.stringify(schema['default'])}\`.`);
  return parts.join(' ');
}

function curl(path: string, method: string, operation: OpenApiOperation): string {
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$BASE${path}"`];
  if (operation.security.length > 0) lines.push('-H "X-Api-Key: $KEY" -H "X-Id: $ID"');
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

function table(caption: string, heads: string[], rows: string[]): string {
  const head = heads.map((text) => `<th scope="col">${text}</th>`).join('');
  return `<div class="scroll"><table><caption>${escape(caption)}</caption><thead><tr>${head}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table></div>`;
}

/** Paragraphs and lists of Markdown. */
function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .map((block) => {
      if (!block.startsWith('- ')) return `<p>${prose(block)}</p>`;
      const items = block.split('\n').map((line) => `<li>${prose(line.slice(2))}</li>`);
      return `<ul>${items.join('')}</ul>`;
    })
    .join('\n');
}

/** Escaped, with `code` between backticks. */
function prose(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

function code(value: unknown): string {
  return `<code>${escape(JSON.stringify(value) ?? '')}</code>`;
}

function slug(name: string): string {
  return `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
}

function escape(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character);
}

function isRecord(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
