import type { PublicAnswer } from './answer.ts';
import { html, pageAnswer } from './layout.ts';

/** Pages for whoever comes without a link that works. They say what can be done, and nothing of the inside. */

export function homePage(): PublicAnswer {
  return pageAnswer(
    200,
    'A mail service',
    html`<p>Mail that somebody sent you leads to this address. To stop such mail, or to report it, use the links in the mail itself.</p>`,
  );
}

export function unknownLinkPage(): PublicAnswer {
  return pageAnswer(
    404,
    'This link does not work',
    html`<p>It may be cut off or changed on its way. Please open it once more from the mail, or copy the whole of it.</p>
<p>If you want no more mail from the sender and no link works, answer the mail and say so.</p>`,
  );
}

export function methodPage(allow: string): PublicAnswer {
  const page = pageAnswer(405, 'This cannot be done here', html`<p>Please open the link from the mail.</p>`);
  return { ...page, headers: { ...page.headers, Allow: allow } };
}

export function tooLargePage(): PublicAnswer {
  return pageAnswer(413, 'That was too much', html`<p>Please open the link from the mail once more.</p>`);
}

export function tooOftenPage(retryAfterSeconds: number): PublicAnswer {
  const page = pageAnswer(
    429,
    'Please try again later',
    html`<p>This was changed many times within an hour. Nothing was changed now.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}

export function faultPage(): PublicAnswer {
  const page = pageAnswer(
    503,
    'Something went wrong here',
    html`<p>Nothing was changed. Please try again in a few minutes.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': '60' } };
}
