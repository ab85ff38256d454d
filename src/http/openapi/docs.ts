import { createHash } from 'node:crypto';
import type { OpenRoute } from '../route.ts';
import { staticPage } from '../static-page.ts';
import { docsStyle } from './docs-style.ts';
import type { OpenApiDocument } from './document.ts';
import {
  type ReferenceField,
  type ReferenceOperation,
  type ReferenceSection,
  referenceOf,
} from './reference.ts';

/**
 * `/docs`: the OpenAPI document as one HTML page with its own style. It has no script, loads nothing, and has an anchor
 * for every operation.
 */
export function docsRoute(document: OpenApiDocument): OpenRoute {
  return {
    path: '/docs',
    operationId: 'getDocs',
    tag: 'Operations',
    summary: 'Get the API reference as a page',
    responses: { 200: { description: 'The page.', contentType: 'text/html' } },
    handle: staticPage('text/html; charset=utf-8', docsPage(document), {
      'Content-Security-Policy': policy(docsStyle),
      'Referrer-Policy': 'no-referrer',
    }),
  };
}

function policy(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

export function docsPage(document: OpenApiDocument): string {
  const sections = referenceOf(document);
  const title = `${document.info.title} ${document.info.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escape(title)}: API reference</title>
<style>${docsStyle}</style>
</head>
<body>
<nav aria-label="Operations">
<p class="brand"><a href="#top">${escape(title)}</a></p>
${sections.map(navSection).join('\n')}
</nav>
<main id="top">
<h1>${escape(document.info.title)} API reference</h1>
<p>${prose(document.info.description)}</p>
<p>The machine-readable form is <a href="/openapi.json">/openapi.json</a>. The examples take the address, the key and the account id from the shell:</p>
<pre><code>BASE=http://127.0.0.1:8080
KEY=pr_…
ID=acct_…</code></pre>
${sections.map(sectionHtml).join('\n')}
</main>
</body>
</html>
`;
}

function navSection({ name, operations }: ReferenceSection): string {
  const links = operations.map(
    ({ id, method, path }) =>
      `<li><a href="#${escape(id)}"><span class="m">${method}</span> ${escape(path)}</a></li>`,
  );
  return `<h2><a href="#${slug(name)}">${escape(name)}</a></h2>\n<ul>\n${links.join('\n')}\n</ul>`;
}

function sectionHtml({ name, description, operations }: ReferenceSection): string {
  return `<section id="${slug(name)}">
<h2>${escape(name)}</h2>
${description === '' ? '' : `<p>${prose(description)}</p>`}
${operations.map(operationHtml).join('\n')}
</section>`;
}

function operationHtml(operation: ReferenceOperation): string {
  const { scope, description, parameters } = operation;
  return `<article id="${escape(operation.id)}">
<h3><span class="m">${operation.method}</span> <code>${escape(operation.path)}</code></h3>
<p>${prose(operation.summary)}.${scope === null ? ' No key required.' : ` Key scope: <code>${escape(scope)}</code>.`}</p>
${description === '' ? '' : paragraphs(description)}
${table(
  'Parameters',
  ['Name', 'In', 'Required', 'Description'],
  parameters.map(
    ({ path, place, required, type, description }) =>
      `<tr><th scope="row"><code>${escape(path)}</code></th><td>${place}</td><td>${yesNo(required)}</td><td>${[type, description].filter(Boolean).map(prose).join('. ')}</td></tr>`,
  ),
)}
${fieldTable('Request body', operation.body)}
<h4>Example</h4>
<pre><code>${escape(operation.request)}</code></pre>
${operation.successes.map(successHtml).join('\n')}
${errorsHtml(operation.errors)}
</article>`;
}

function successHtml({
  status,
  description,
  data,
  example,
}: ReferenceOperation['successes'][number]): string {
  return `<h4>${status}</h4>
<p>${prose(description)}</p>
${fieldTable('data', data)}
${example === null ? '' : `<pre><code>${escape(example)}</code></pre>`}`;
}

/** All errors together in a closed element: most are the same for every operation. */
function errorsHtml(errors: ReferenceOperation['errors']): string {
  if (errors.length === 0) return '';
  const rows = errors.map(
    ({ status, codes }) => `<tr><th scope="row">${status}</th><td>${codes.map(prose).join('<br>')}</td></tr>`,
  );
  return `<details><summary>Errors</summary>${table('Errors', ['Status', 'Codes'], rows)}</details>`;
}

function fieldTable(caption: string, fields: readonly ReferenceField[]): string {
  const rows = fields.map(
    ({ path, type, required, description }) =>
      `<tr><th scope="row"><code>${escape(path)}</code></th><td>${prose(type)}</td><td>${yesNo(required)}</td><td>${prose(description)}</td></tr>`,
  );
  return table(caption, ['Field', 'Type', 'Required', 'Description'], rows);
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

function table(caption: string, heads: string[], rows: string[]): string {
  if (rows.length === 0) return '';
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

function slug(name: string): string {
  return `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
}

function escape(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character);
}
