import { createHash } from 'node:crypto';
import { escapeHtml } from '../../mail/html/escape.ts';
import { COMMON_HEADERS, type PublicResponse } from './response.ts';

/* The layout of the public pages: HTML without script and external resources that cannot be framed. */

/** HTML that is safe to insert into a page. */
export interface Html {
  readonly html: string;
}

/** Template tag: escapes inserted strings, inserts `Html` unchanged, and concatenates lists. */
export function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | Html | readonly Html[])[]
): Html {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += insertedText(value) + (strings[index + 1] ?? '');
  return { html: text };
}

function insertedText(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return escapeHtml(value);
  return 'html' in value ? value.html : value.map((each) => each.html).join('');
}

export const empty: Html = { html: '' };

/** The style of the public pages. Text and controls meet WCAG 2.2 AA in both schemes. */
const publicStyle = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#4d5866;--page:#f4f6f8;--card:#fff;--line:#76828f;--key:#0b5cad;--on-key:#fff;--ring:#0b5cad}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#b3bdc9;--page:#14181d;--card:#1d2329;--line:#8a96a3;--key:#8cc2f8;--on-key:#10161d;--ring:#8cc2f8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;color:var(--ink);background:var(--page);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:34rem;margin:0 auto;padding:1.5rem 1.25rem 2rem;background:var(--card);min-height:100vh}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}
p{margin:0 0 1rem}
p,legend,label,li{overflow-wrap:anywhere}
form{margin:0 0 1rem}
fieldset{border:0;margin:0 0 1rem;padding:0}
legend{padding:0;font-weight:600;margin-bottom:.25rem}
label{display:flex;gap:.75rem;align-items:flex-start;padding:.625rem 0;cursor:pointer}
input[type=radio]{flex:none;width:1.5rem;height:1.5rem;margin:0;accent-color:var(--key)}
label.field{display:block}
label.field input{display:block;font:inherit;width:100%;min-height:3rem;padding:.5rem;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:.375rem}
button{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.625rem 1.25rem;border-radius:.375rem;border:2px solid var(--key);background:var(--key);color:var(--on-key);cursor:pointer}
a{color:var(--key)}
button.second{background:none;color:var(--key)}
:focus-visible{outline:3px solid var(--ring);outline-offset:3px}
.soft{color:var(--soft);font-size:.875rem}
@media (min-width:36rem){main{margin:3rem auto;padding:2.5rem;min-height:0;border:1px solid var(--line);border-radius:.5rem}button{width:auto}}
@media print{button{display:none}}
`;

const STYLE_HASH = createHash('sha256').update(publicStyle).digest('base64');

const PAGE_HEADERS = {
  ...COMMON_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'X-Frame-Options': 'DENY',
};

/** A complete page; the title is also its heading. */
export function pageResponse(status: number, title: string, content: Html): PublicResponse {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${title}</title>
<style>${{ html: publicStyle }}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
  return { status, headers: PAGE_HEADERS, body: page.html };
}
