import { html, pageResponse } from './layout.ts';
import type { PublicResponse } from './response.ts';

/* Pages for requests without a valid link, and for errors. */

/** 200 for `/`, for people who open the host of a link. */
export function homePage(): PublicResponse {
  return pageResponse(
    200,
    'A mail service',
    html`<p>A link in a mail that you received points to this address. To stop such mail, or to report it, use the links in the mail.</p>`,
  );
}

/** 404 for a path without a route, and for a token that is not valid or has no target. */
export function unknownLinkPage(): PublicResponse {
  return pageResponse(
    404,
    'This link does not work',
    html`<p>It may have been cut off or changed. Please open it again from the mail, or copy the complete link.</p>
<p>If you want no more mail from the sender and no link works, reply to the mail.</p>`,
  );
}

/** 405; `allow`: the value of the field Allow (RFC 9110 §15.5.6). */
export function methodPage(allow: string): PublicResponse {
  const page = pageResponse(
    405,
    'This request is not supported',
    html`<p>Please open the link from the mail.</p>`,
  );
  return { ...page, headers: { ...page.headers, Allow: allow } };
}

/** 413 for a form that exceeds the limit of `readFormFields`, and for too many header fields. */
export function tooLargePage(): PublicResponse {
  return pageResponse(
    413,
    'The request is too large',
    html`<p>Please open the link from the mail again.</p>`,
  );
}

/** 429 with Retry-After, for undoing an opt-out above its rate; opting out is never limited. */
export function tooOftenPage(retryAfterSeconds: number): PublicResponse {
  const page = pageResponse(
    429,
    'Please try again later',
    html`<p>The subscription was changed many times within an hour. This request changed nothing.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}

/** 503 with `Retry-After: 60`, after an error that the server has logged. */
export function faultPage(): PublicResponse {
  const page = pageResponse(
    503,
    'Something went wrong',
    html`<p>Nothing was changed. Please try again in a few minutes.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': '60' } };
}
