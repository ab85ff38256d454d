import { createHash } from 'node:crypto';
import { isRefusalCode, REFUSALS, refuse, statusOf } from '../../core/refusal.ts';
import { escapeHtml } from '../../mail/html/escape.ts';
import { alternativesOf, isRecord, type JsonSchema } from '../json-schema.ts';
import type { OpenRoute } from '../route.ts';
import { staticPage } from '../static-page.ts';
import {
  examplesOf,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiResponse,
  resolveParameters,
  resolveResponse,
} from './document.ts';

/*
 * The OpenAPI document as HTML pages, with their own style: an overview, and one page for each subject, with an anchor for
 * every operation. They have no script and load nothing. Texts of the document are plain text with `code` in backticks.
 */

/** `/docs` and `/docs/{subject}`. `document` returns the document that the pages are written from. */
export function docsRoutes(document: () => Promise<OpenApiDocument>): OpenRoute[] {
  const common = {
    tag: 'Operations',
    responses: { 200: { description: 'The page.', contentType: 'text/html' } },
  };
  const pageOf = (write: (from: OpenApiDocument) => string) =>
    staticPage('text/html; charset=utf-8', async () => write(await document()), {
      'Content-Security-Policy': policy(docsStyle),
      'Referrer-Policy': 'no-referrer',
    });
  const pages = new Map<string, ReturnType<typeof pageOf>>();
  return [
    {
      ...common,
      path: '/docs',
      operationId: 'getDocs',
      summary: 'Get the API reference as a page',
      handle: pageOf(overviewPage),
    },
    {
      ...common,
      path: '/docs/{subject}',
      operationId: 'getDocsOfSubject',
      summary: 'Get the API reference of one subject as a page',
      params: { subject: 'A subject of `/docs`, such as `campaigns`.' },
      refusals: ['NOT_FOUND'],
      handle: async (request) => {
        const subject = request.params['subject'] ?? '';
        const { tags } = await document();
        const tag = tags.find(({ name }) => slug(name) === subject);
        if (tag === undefined) return refuse('NOT_FOUND', `The API reference has no subject ${subject}`);
        const page = pages.get(subject) ?? pageOf((from) => subjectPage(from, tag));
        pages.set(subject, page);
        return page(request);
      },
    },
  ];
}

function policy(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

type Tag = OpenApiDocument['tags'][number];

interface Operation {
  path: string;
  /** In upper case. */
  method: string;
  operation: OpenApiOperation;
}

function operationsOf({ paths }: OpenApiDocument, tag: Tag): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.includes(tag.name))
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

/** The subjects with their operations, and what all operations have in common. */
export function overviewPage(document: OpenApiDocument): string {
  const { info, tags } = document;
  const keyed = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .find(({ security }) => security === undefined);
  const common = keyed?.responses['default'];
  return page(
    document,
    null,
    `<h1>${escapeHtml(info.title)} API reference</h1>
<p>${prose(info.description)}</p>
<p>The machine-readable form is <a href="/openapi.json">/openapi.json</a>. The examples take the address, the key and the account id from the shell:</p>
<pre><code>BASE=http://127.0.0.1:8080
KEY=pr_…
ID=acct_…</code></pre>
<p><code>-H "Authorization: Bearer $KEY"</code> may replace both header fields of an example.</p>
<p>Guides for each subject are in <code>/usr/share/doc/postrider/docs</code> of the package, beginning with <code>README.md</code>, and in <code>docs/</code> of the source; <code>npm run docs</code> builds a site of them with search.</p>
${tags.map((tag) => overviewOf(document, tag)).join('\n')}
<h2 id="errors">Errors of every operation</h2>
<p>Operations that require a key may return these errors in addition to those that they list.</p>
${common === undefined ? '' : errorTable([resolveResponse(document, common)])}`,
  );
}

function overviewOf(document: OpenApiDocument, tag: Tag): string {
  const rows = operationsOf(document, tag).map(
    ({ path, method, operation }) =>
      `<tr><th scope="row"><a href="/docs/${slug(tag.name)}#${escapeHtml(operation.operationId)}">${prose(operation.summary)}</a></th><td><span class="m">${method}</span> <code>${escapeHtml(path)}</code></td></tr>`,
  );
  return `<section id="${slug(tag.name)}">
<h2><a href="/docs/${slug(tag.name)}">${escapeHtml(tag.name)}</a></h2>
${descriptionOf(tag)}
${table('Operations', ['Operation', 'Request'], rows)}
</section>`;
}

/** The operations of one subject. Throws an Error when a reference of the document has no target. */
export function subjectPage(document: OpenApiDocument, tag: Tag): string {
  const operations = operationsOf(document, tag);
  return page(
    document,
    tag,
    `<h1>${escapeHtml(tag.name)}</h1>
${descriptionOf(tag)}
${operations.map((operation) => operationHtml(operation, document)).join('\n')}`,
  );
}

function descriptionOf({ description }: Tag): string {
  return description === undefined ? '' : `<p>${prose(description)}</p>`;
}

/** `tag`: the subject of the page; null: it is the overview. */
function page(document: OpenApiDocument, tag: Tag | null, content: string): string {
  const title = `${document.info.title} ${document.info.version}`;
  const subjects = document.tags.map((other) => {
    const link = `<h2><a href="/docs/${slug(other.name)}">${escapeHtml(other.name)}</a></h2>`;
    if (other.name !== tag?.name) return link;
    const links = operationsOf(document, other).map(
      ({ method, path, operation: { operationId } }) =>
        `<li><a href="#${escapeHtml(operationId)}"><span class="m">${method}</span> ${escapeHtml(path)}</a></li>`,
    );
    return `${link}\n<ul>\n${links.join('\n')}\n</ul>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(tag === null ? title : `${tag.name}: ${title}`)}: API reference</title>
<style>${docsStyle}</style>
</head>
<body>
<nav aria-label="Subjects">
<p class="brand"><a href="/docs">${escapeHtml(title)}</a></p>
${subjects.join('\n')}
</nav>
<main>
${content}
</main>
</body>
</html>
`;
}

function operationHtml({ path, method, operation }: Operation, document: OpenApiDocument): string {
  const { operationId, summary, description = '', requestBody } = operation;
  const { schemas } = document.components;
  const scope = operation['x-scope'];
  const body = requestBody?.content['application/json'];
  const responses = Object.entries(operation.responses);
  const isSuccess = (status: string) => Number(status) < 400;
  const errors = responses.filter(([status]) => !isSuccess(status) && status !== 'default');
  return `<article id="${escapeHtml(operationId)}">
<h3><span class="m">${method}</span> <code>${escapeHtml(path)}</code></h3>
<p>${prose(summary)}.${scope === undefined ? ' No key required.' : ` Key scope: <code>${escapeHtml(scope)}</code>.`}</p>
${description === '' ? '' : paragraphs(description)}
${parameterTable(operation, document)}
${fieldTable('Request body', body === undefined ? [] : fieldsOf(body.schema, '', schemas, 0))}
<h4>Example</h4>
<pre><code>${escapeHtml(curl(path, method, operation))}</code></pre>
${responses
  .filter(([status]) => isSuccess(status))
  .map(([status, response]) => successHtml(status, resolveResponse(document, response), document))
  .join('\n')}
<details><summary>Errors</summary>
${errorTable(errors.map(([, response]) => resolveResponse(document, response)))}
${scope === undefined ? '' : '<p>Also the <a href="/docs#errors">errors of every operation</a>.</p>'}</details>
</article>`;
}

function parameterTable(operation: OpenApiOperation, document: OpenApiDocument): string {
  const { schemas } = document.components;
  const rows = resolveParameters(document, operation).map(
    ({ name, in: place, required, description, schema }) => {
      const text = withDefault(description ?? resolve(schema, schemas)['description'], schema);
      return `<tr><th scope="row"><code>${escapeHtml(name)}</code></th><td>${place}</td><td>${yesNo(required)}</td><td>${[typeOf(schema, schemas), text].filter(Boolean).map(prose).join('. ')}</td></tr>`;
    },
  );
  return table('Parameters', ['Name', 'In', 'Required', 'Description'], rows);
}

function successHtml(
  status: string,
  { description, content = {} }: OpenApiResponse,
  document: OpenApiDocument,
): string {
  const [first] = Object.values(content);
  const properties = first?.schema['properties'];
  const data = isRecord(properties) && isRecord(properties['data']) ? properties['data'] : {};
  const [example] = first === undefined ? [] : Object.values(examplesOf(document, first));
  const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2);
  return `<h4>${status}</h4>
<p>${prose(description)}</p>
${fieldTable('data', fieldsOf(data, '', document.components.schemas, 0))}
${example === undefined ? '' : `<pre><code>${escapeHtml(text)}</code></pre>`}`;
}

/** The error codes of responses with their descriptions, by status. */
function errorTable(responses: readonly OpenApiResponse[]): string {
  const contents = responses.flatMap(({ content = {} }) => Object.values(content));
  const codes = new Set(contents.flatMap(({ examples = {} }) => Object.keys(examples)).filter(isRefusalCode));
  const statuses = [...new Set([...codes].map(statusOf))].toSorted((a, b) => a - b);
  const rows = statuses.map((status) => {
    const texts = [...codes]
      .filter((code) => statusOf(code) === status)
      .map((code) => prose(`\`${code}\`: ${REFUSALS[code][1]}`));
    return `<tr><th scope="row">${status}</th><td>${texts.join('<br>')}</td></tr>`;
  });
  return table('Errors', ['Status', 'Codes'], rows);
}

interface Field {
  /** `attachments[].content`. */
  path: string;
  type: string;
  required: boolean;
  description: string;
}

function fieldTable(caption: string, fields: readonly Field[]): string {
  const rows = fields.map(
    ({ path, type, required, description }) =>
      `<tr><th scope="row"><code>${escapeHtml(path)}</code></th><td>${prose(type)}</td><td>${yesNo(required)}</td><td>${prose(description)}</td></tr>`,
  );
  return table(caption, ['Field', 'Type', 'Required', 'Description'], rows);
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

function table(caption: string, heads: string[], rows: string[]): string {
  if (rows.length === 0) return '';
  const head = heads.map((text) => `<th scope="col">${text}</th>`).join('');
  return `<div class="scroll"><table><caption>${escapeHtml(caption)}</caption><thead><tr>${head}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table></div>`;
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
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

/** Levels of nesting that a table of fields shows. */
const MAX_DEPTH = 5;

type Schemas = OpenApiDocument['components']['schemas'];

/** All fields of an object and of the objects inside it. */
function fieldsOf(schema: JsonSchema, prefix: string, schemas: Schemas, depth: number): Field[] {
  if (depth > MAX_DEPTH) return [];
  const resolved = resolve(schema, schemas);
  const { properties, items, required, allOf } = resolved;
  if (isRecord(items)) return fieldsOf(items, `${prefix}[]`, schemas, depth + 1);
  const parts = [...alternativesOf(resolved), ...(Array.isArray(allOf) ? allOf.filter(isRecord) : [])];
  if (parts.length > 0) {
    const fields = parts.flatMap((part) => fieldsOf(part, prefix, schemas, depth + 1));
    return fields.filter((field, index) => fields.findIndex(({ path }) => path === field.path) === index);
  }
  if (!isRecord(properties)) return [];
  const names = Array.isArray(required) ? required : [];
  return Object.entries(properties).flatMap(([name, property]) => {
    const inner = isRecord(property) ? resolve(property, schemas) : {};
    const path = prefix === '' ? name : `${prefix}.${name}`;
    return [
      {
        path,
        type: typeOf(inner, schemas),
        required: names.includes(name),
        description: withDefault(inner['description'], inner),
      },
      ...fieldsOf(inner, path, schemas, depth + 1),
    ];
  });
}

/** Follows a reference; keywords next to it, such as the description of a field, take precedence. */
function resolve(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const { $ref, ...rest } = schema;
  if (typeof $ref !== 'string') return schema;
  const target = schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
  if (target === undefined) throw new Error(`${$ref} is not in the document`);
  return { ...target, ...rest };
}

/** `string, 1 to 200 characters`, `array of string`, `"tx" or "mk"`. */
function typeOf(schema: JsonSchema, schemas: Schemas): string {
  const resolved = resolve(schema, schemas);
  const { type, items, format, minLength, maxLength, minimum, maximum, maxItems, maxProperties } = resolved;
  if ('const' in resolved) return code(resolved['const']);
  if (Array.isArray(resolved['enum'])) return resolved['enum'].map(code).join(', ');
  const alternatives = alternativesOf(resolved);
  if (alternatives.length > 0)
    return [...new Set(alternatives.map((alternative) => typeOf(alternative, schemas)))].join(' or ');
  if (type === 'array') {
    const element = isRecord(items) ? ` of ${typeOf(items, schemas)}` : '';
    return `array${element}${bounds(undefined, maxItems, 'entries')}`;
  }
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...resolved, type: one }, schemas)).join(' or ');
  const name = typeof type === 'string' ? type : 'allOf' in resolved ? 'object' : 'any';
  const suffix = typeof format === 'string' ? ` (${format})` : '';
  return `${name}${suffix}${bounds(minLength, maxLength, 'characters')}${bounds(minimum, maximum, '')}${bounds(undefined, maxProperties, 'entries')}`;
}

function bounds(low: unknown, high: unknown, unit: string): string {
  const min = typeof low === 'number' && low > 0 ? low : null;
  const max = typeof high === 'number' ? high : null;
  if (min === null && max === null) return '';
  const range = max === null ? `at least ${min}` : min === null ? `at most ${max}` : `${min} to ${max}`;
  return `, ${range}${unit === '' ? '' : ` ${unit}`}`;
}

function withDefault(description: unknown, schema: JsonSchema): string {
  const text = typeof description === 'string' ? description : '';
  if (!('default' in schema)) return text;
  return `${text === '' ? '' : `${text} `}Default: ${code(schema['default'])}.`;
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function curl(path: string, method: string, operation: OpenApiOperation): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}"$BASE${path}"`];
  if (operation.security === undefined) lines.push('-H "X-Api-Key: $KEY" -H "X-Id: $ID"');
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

/** The style of the documentation page. Colors meet WCAG AA in both schemes. */
const docsStyle = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#55606e;--line:#d8dde3;--page:#fff;--box:#f4f6f8;--link:#0b5cad}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#a5afbc;--line:#37404b;--page:#14181d;--box:#1d2329;--link:#7db8f5}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;color:var(--ink);background:var(--page);font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:19rem minmax(0,1fr)}
a{color:var(--link)}
nav{border-right:1px solid var(--line);padding:1rem;height:100vh;overflow:auto;position:sticky;top:0;font-size:.875rem}
nav h2{font-size:.9rem;margin:1.2rem 0 .3rem}
nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.15rem 0;text-decoration:none;overflow-wrap:anywhere}
nav li a:hover,nav li a:focus{text-decoration:underline}
.brand{font-weight:700;margin:0}
main{padding:1.5rem 2rem 6rem;max-width:62rem}
h1{line-height:1.2}
article{border-top:1px solid var(--line);padding:1rem 0 1.5rem}
h3{overflow-wrap:anywhere}
h4{margin:1.2rem 0 .3rem}
code,pre{font:.875em/1.5 ui-monospace,monospace}
code{background:var(--box);padding:.1em .25em;border-radius:3px}
pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;overflow:auto}
pre code{background:none;padding:0}
.m{font:700 .75em/1 ui-monospace,monospace;color:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.8rem 0}
summary{cursor:pointer;font-weight:700;padding:.3rem 0}
details caption{display:none}
caption{text-align:left;font-weight:700;padding:.2rem 0}
th,td{border-bottom:1px solid var(--line);padding:.35rem .8rem .35rem 0;text-align:left;vertical-align:top}
thead th{color:var(--soft);font-weight:600}
tbody th{font-weight:400}
@media (max-width:50rem){body{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}}
@media print{nav{display:none}body{display:block}}
`;
