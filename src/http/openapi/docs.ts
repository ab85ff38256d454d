import { createHash } from 'node:crypto';
import { inSlices, type Work } from '../../core/concurrency/slices.ts';
import { escapeHtml } from '../../mail/html/escape.ts';
import type { OpenRoute } from '../route.ts';
import { staticPage } from '../static-page.ts';
import type { OpenApiDocument } from './document.ts';
import {
  buildingReference,
  type ReferenceField,
  type ReferenceOperation,
  type ReferenceSection,
} from './reference.ts';

/**
 * `/docs`: the OpenAPI document as one HTML page with its own style. It has no script, loads nothing, and has an anchor
 * for every operation. `document` returns the document that the page is written from, in turns of `account`.
 */
export function docsRoute(document: () => Promise<OpenApiDocument>, account: string): OpenRoute {
  return {
    path: '/docs',
    operationId: 'getDocs',
    tag: 'Operations',
    summary: 'Get the API reference as a page',
    responses: { 200: { description: 'The page.', contentType: 'text/html' } },
    handle: staticPage(
      'text/html; charset=utf-8',
      async () => inSlices(writingDocs(await document()), account),
      {
        'Content-Security-Policy': policy(docsStyle),
        'Referrer-Policy': 'no-referrer',
      },
    ),
  };
}

function policy(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/**
 * The complete page as HTML, in steps of one section. Pure; throws an Error when a reference of the document has no
 * target.
 */
export function* writingDocs(document: OpenApiDocument): Work<string> {
  const sections = yield* buildingReference(document);
  const written: string[] = [];
  for (const section of sections) {
    written.push(sectionHtml(section));
    yield;
  }
  const title = `${document.info.title} ${document.info.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}: API reference</title>
<style>${docsStyle}</style>
</head>
<body>
<nav aria-label="Operations">
<p class="brand"><a href="#top">${escapeHtml(title)}</a></p>
${sections.map(navSection).join('\n')}
</nav>
<main id="top">
<h1>${escapeHtml(document.info.title)} API reference</h1>
<p>${prose(document.info.description)}</p>
<p>The machine-readable form is <a href="/openapi.json">/openapi.json</a>. The examples take the address, the key and the account id from the shell:</p>
<pre><code>BASE=http://127.0.0.1:8080
KEY=pr_…
ID=acct_…</code></pre>
${written.join('\n')}
</main>
</body>
</html>
`;
}

function navSection({ name, operations }: ReferenceSection): string {
  const links = operations.map(
    ({ id, method, path }) =>
      `<li><a href="#${escapeHtml(id)}"><span class="m">${method}</span> ${escapeHtml(path)}</a></li>`,
  );
  return `<h2><a href="#${slug(name)}">${escapeHtml(name)}</a></h2>\n<ul>\n${links.join('\n')}\n</ul>`;
}

function sectionHtml({ name, description, operations }: ReferenceSection): string {
  return `<section id="${slug(name)}">
<h2>${escapeHtml(name)}</h2>
${description === '' ? '' : `<p>${prose(description)}</p>`}
${operations.map(operationHtml).join('\n')}
</section>`;
}

function operationHtml(operation: ReferenceOperation): string {
  const { scope, description, parameters } = operation;
  return `<article id="${escapeHtml(operation.id)}">
<h3><span class="m">${operation.method}</span> <code>${escapeHtml(operation.path)}</code></h3>
<p>${prose(operation.summary)}.${scope === null ? ' No key required.' : ` Key scope: <code>${escapeHtml(scope)}</code>.`}</p>
${description === '' ? '' : paragraphs(description)}
${table(
  'Parameters',
  ['Name', 'In', 'Required', 'Description'],
  parameters.map(
    ({ path, place, required, type, description }) =>
      `<tr><th scope="row"><code>${escapeHtml(path)}</code></th><td>${place}</td><td>${yesNo(required)}</td><td>${[type, description].filter(Boolean).map(prose).join('. ')}</td></tr>`,
  ),
)}
${fieldTable('Request body', operation.body)}
<h4>Example</h4>
<pre><code>${escapeHtml(operation.request)}</code></pre>
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
${example === null ? '' : `<pre><code>${escapeHtml(example)}</code></pre>`}`;
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
  return `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
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
