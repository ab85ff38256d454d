import { createHash } from 'node:crypto';
import type { PageTextKey } from '../../accounts/page-texts.ts';
import { readableColor } from './colors.ts';
import { empty, type Html, html } from './html.ts';
import type { Brand, Look, TextValues } from './look.ts';
import { COMMON_HEADERS, type PublicResponse } from './response.ts';

/* The layout of the public pages: HTML without script and external resources, except the logo, that cannot be framed. */

/** The style of the public pages. Text and controls meet WCAG 2.2 AA in both schemes. */
const publicStyle = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#4d5866;--page:#f4f6f8;--card:#fff;--line:#76828f;--rule:#dde2e8;--key:#0b5cad;--on-key:#fff;--note:#eef1f4;--fault:#a3171f;--on-fault:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#b3bdc9;--page:#14181d;--card:#1d2329;--line:#8a96a3;--rule:#38414b;--key:#8cc2f8;--on-key:#10161d;--note:#2b343e;--fault:#ff9d96;--on-fault:#10161d}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;color:var(--ink);background:var(--page);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK JP",sans-serif}
main{max-width:34rem;margin:0 auto;padding:1.5rem 1.25rem 2rem;background:var(--card);border-top:.25rem solid var(--key);min-height:100vh}
header{margin:0 0 1.25rem;color:var(--soft);font-weight:600;overflow-wrap:anywhere}
header img{display:block;max-width:min(100%,14rem);max-height:3rem;width:auto;height:auto}
h1{font-size:1.5rem;line-height:1.25;letter-spacing:-.01em;margin:0 0 1rem;overflow-wrap:anywhere;hyphens:auto;text-wrap:balance}
h2{font-size:1.0625rem;line-height:1.35;margin:0 0 .5rem;overflow-wrap:anywhere}
p{margin:0 0 1rem}
p,legend,label,li,button{overflow-wrap:anywhere}
.whole{display:inline-block;max-width:100%;overflow-wrap:anywhere;vertical-align:bottom}
:lang(ja){word-break:normal;line-break:strict;letter-spacing:normal}
ul{margin:0 0 1rem;padding-inline-start:1.25rem}
ul.archive{list-style:none;padding:0}
.archive li{padding:.875rem 0;border-top:1px solid var(--rule)}
.archive a{font-weight:600}
.archive time{display:block;color:var(--soft);font-size:.875rem}
form{margin:0 0 1rem}
section{border-top:1px solid var(--rule);padding-top:1.5rem;margin-top:1.5rem}
section>:last-child,main>:last-child{margin-bottom:0}
fieldset{border:0;margin:0 0 1.5rem;padding:0;min-width:0}
fieldset+fieldset{margin-top:2rem}
legend{padding:0;font-size:1.0625rem;line-height:1.35;font-weight:600;margin-bottom:.75rem}
label{display:flex;gap:.75rem;align-items:flex-start;padding:.625rem 0;cursor:pointer}
label small{display:block;color:var(--soft);font-size:.875rem}
input[type=radio],input[type=checkbox]{flex:none;width:1.5rem;height:1.5rem;margin:0;accent-color:var(--key)}
label.switch{justify-content:space-between;gap:1.25rem;border-top:1px solid var(--rule);padding:.875rem 0}
label.switch:first-of-type{border-top:0}
input[role=switch]{appearance:none;position:relative;width:2.75rem;height:1.5rem;border:2px solid var(--line);border-radius:.75rem;background:var(--card);cursor:pointer}
input[role=switch]::before{content:"";position:absolute;inset:.1875rem auto .1875rem .1875rem;aspect-ratio:1;border-radius:50%;background:var(--line)}
input[role=switch]:checked{border-color:var(--key);background:var(--key)}
input[role=switch]:checked::before{inset-inline-start:auto;inset-inline-end:.1875rem;background:var(--on-key)}
.field{margin:0 0 1rem}
.field label{display:block;padding:0}
.field input,.field select{display:block;margin-top:.25rem;font:inherit;width:100%;min-height:3rem;padding:.5rem .75rem;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:.375rem}
.field select{appearance:auto;text-overflow:ellipsis}
label+button{margin-top:.75rem}
legend+.soft{margin:-.25rem 0 .25rem}
[aria-invalid=true]{border:2px solid var(--fault)!important}
.fault{color:var(--fault);font-weight:600}
.field .fault{margin:.25rem 0 0;font-size:.875rem}
.note{padding:.75rem 1rem;border-inline-start:.25rem solid var(--key);border-radius:.25rem;background:var(--note)}
.note.fault{border-color:var(--fault)}
button{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.625rem 1.25rem;border-radius:.375rem;border:2px solid var(--key);background:var(--key);color:var(--on-key);cursor:pointer}
.buttons{display:flex;flex-wrap:wrap;gap:.75rem}
a{color:var(--key)}
button.second{background:none;color:var(--key)}
button.danger{background:none;border-color:var(--fault);color:var(--fault)}
:focus-visible{outline:3px solid var(--key);outline-offset:3px}
.soft{color:var(--soft);font-size:.875rem}
@media (min-width:36rem){main{margin:3rem auto;padding:2.25rem 2.5rem 2.5rem;min-height:0;border:1px solid var(--rule);border-top:.25rem solid var(--key);border-radius:.5rem;box-shadow:0 1px 3px #0000001a}h1{font-size:1.625rem}button{width:auto}}
@media (forced-colors:active){input[role=switch]{appearance:auto;width:1.5rem}input[role=switch]::before{display:none}}
@media print{button{display:none}}
`;

const STYLE_SOURCE = sourceOf(publicStyle);

function sourceOf(style: string): string {
  return `'sha256-${createHash('sha256').update(style).digest('base64')}'`;
}

/** The variables of the style that the colors of an account change; '' for none. */
function brandStyle({ colors: { accent, background } }: Brand): string {
  const light = [
    ...(accent === null ? [] : [`--key:${readableColor(accent, 'light')}`]),
    ...(background === null ? [] : [`--page:${background}`]),
  ];
  if (light.length === 0) return '';
  const dark =
    accent === null
      ? ''
      : `@media (prefers-color-scheme:dark){:root{--key:${readableColor(accent, 'dark')}}}`;
  return `@media not (prefers-color-scheme:dark){:root{${light.join(';')}}}${dark}`;
}

function headersOf(style: string, logoUrl: string | null): Record<string, string> {
  const styles = style === '' ? STYLE_SOURCE : `${STYLE_SOURCE} ${sourceOf(style)}`;
  const images = logoUrl === null ? '' : ` img-src ${new URL(logoUrl).origin};`;
  return {
    ...COMMON_HEADERS,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; style-src ${styles};${images} form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    'X-Frame-Options': 'DENY',
    Vary: 'Accept-Language',
  };
}

/** A complete page; the title is also its heading. */
export function pageResponse(
  look: Look,
  status: number,
  title: PageTextKey,
  content: Html,
  values: TextValues = {},
): PublicResponse {
  const { brand, language } = look;
  const style = brand === null ? '' : brandStyle(brand);
  const page = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${look.plain(title, values)}</title>
<style>${{ html: publicStyle }}</style>${style === '' ? empty : html`<style>${{ html: style }}</style>`}
</head>
<body>
<main>
${brand === null ? empty : headerOf(brand)}
<h1>${look.text(title, values)}</h1>
${content}
</main>
</body>
</html>
`;
  return { status, headers: headersOf(style, brand?.logoUrl ?? null), body: page.html };
}

function headerOf({ name, logoUrl }: Brand): Html {
  return logoUrl === null
    ? html`<header><bdi>${name}</bdi></header>`
    : html`<header><img src="${logoUrl}" alt="${name}"></header>`;
}
