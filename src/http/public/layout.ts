import { createHash } from 'node:crypto';
import { escapeHtml } from '../../mail/template.ts';
import { COMMON_HEADERS, type PublicResponse } from './response.ts';
import { publicStyle } from './style.ts';

/** The layout of the public pages: HTML without script and external resources that cannot be framed. */

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
