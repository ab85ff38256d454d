import { html } from './html.ts';
import { pageResponse } from './layout.ts';
import type { Look } from './look.ts';
import type { PublicResponse } from './response.ts';

/* Pages for requests without a valid link, and for errors. */

/** 200 for `/`, for people who open the host of a link. */
export function homePage(look: Look): PublicResponse {
  return pageResponse(look, 200, 'home.title', html`<p>${look.text('home.text')}</p>`);
}

/** 404 for a path without a route, and for a token that is not valid or has no target. */
export function unknownLinkPage(look: Look): PublicResponse {
  return pageResponse(
    look,
    404,
    'unknown.title',
    html`<p>${look.text('unknown.text')}</p>
<p>${look.text('unknown.reply')}</p>`,
  );
}

/** 405; `allow`: the value of the field Allow (RFC 9110 §15.5.6). */
export function methodPage(look: Look, allow: string): PublicResponse {
  const page = pageResponse(look, 405, 'method.title', html`<p>${look.text('method.text')}</p>`);
  return { ...page, headers: { ...page.headers, Allow: allow } };
}

/** 413 for a form that exceeds the limit of `readFormFields`, and for too many header fields. */
export function tooLargePage(look: Look): PublicResponse {
  return pageResponse(look, 413, 'tooLarge.title', html`<p>${look.text('tooLarge.text')}</p>`);
}

/** 429 with Retry-After, for undoing an opt-out above its rate; opting out is never limited. */
export function tooOftenPage(look: Look, retryAfterSeconds: number): PublicResponse {
  const page = pageResponse(look, 429, 'tooOften.title', html`<p>${look.text('tooOften.text')}</p>`);
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}

/** 503 with `Retry-After: 60`, after an error that the server has logged. */
export function faultPage(look: Look): PublicResponse {
  const page = pageResponse(look, 503, 'fault.title', html`<p>${look.text('fault.text')}</p>`);
  return { ...page, headers: { ...page.headers, 'Retry-After': '60' } };
}
