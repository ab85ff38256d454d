import { empty, type Html, html, pageResponse } from './layout.ts';
import type { PublicResponse } from './response.ts';

/*
 * The pages of a group's sign-up form. The fields of the form are `email`, `firstName`, `lastName` and `website`, which
 * people leave empty.
 */

/** What the form shows. */
export interface SignUpView {
  sender: string;
  group: string;
  description: string | null;
}

/** 200 with the form; with `fault`, what is wrong with the address, 400. */
export function signUpForm(view: SignUpView, fault: string | null = null): PublicResponse {
  const about = view.description === null ? empty : html`<p>${view.description}</p>`;
  const wrong = fault === null ? empty : html`<p role="alert">The address ${fault}.</p>`;
  return pageResponse(
    fault === null ? 200 : 400,
    `Subscribe to ${view.group}`,
    html`${about}<p>Mail from <bdi>${view.sender}</bdi>. You get a mail with a link that confirms your address.</p>
${wrong}<form method="post">
${field('email', 'Email address', html` type="email" autocomplete="email" required`)}
${field('firstName', 'First name (optional)', html` type="text" autocomplete="given-name" maxlength="100"`)}
${field('lastName', 'Last name (optional)', html` type="text" autocomplete="family-name" maxlength="100"`)}
<p hidden><label>Leave this empty <input name="website" tabindex="-1" autocomplete="off"></label></p>
<button type="submit">Subscribe</button>
</form>`,
  );
}

function field(name: string, label: string, attributes: Html): Html {
  return html`<label class="field">${label} <input name="${name}"${attributes}></label>`;
}

/** The page after a valid form. It is equal for every address, so that it does not show who is a member. */
export function sentPage(view: SignUpView): PublicResponse {
  return pageResponse(
    200,
    'Please confirm your address',
    html`<p role="status">If this address can get mail from <bdi>${view.sender}</bdi>, a mail with a link is on its way. Open the link to subscribe to <bdi>${view.group}</bdi>.</p>
<p class="soft">No mail after a few minutes? Look into the spam folder, or try again tomorrow.</p>`,
  );
}

/**
 * 200 for GET of a link that can be confirmed: a button, because scanners follow links. `email`: in full, as it was in
 * the mail.
 */
export function confirmPage(view: SignUpView, email: string): PublicResponse {
  return pageResponse(
    200,
    `Subscribe to ${view.group}?`,
    html`<p>Mail from <bdi>${view.sender}</bdi> will be sent to <bdi>${email}</bdi>. Every mail has a link to unsubscribe.</p>
<form method="post"><button type="submit">Yes, subscribe</button></form>
<p class="soft">If you did not ask for it, close this page: nothing will be sent.</p>`,
  );
}

/** 200 after a confirmation, by this request or an earlier one. */
export function confirmedPage(view: SignUpView, email: string): PublicResponse {
  return pageResponse(
    200,
    'You are subscribed',
    html`<p role="status"><bdi>${email}</bdi> is subscribed to <bdi>${view.group}</bdi> of <bdi>${view.sender}</bdi>.</p>`,
  );
}

/** 410 for a link older than SIGN_UP_LIFETIME_MS, seven days. */
export function expiredPage(): PublicResponse {
  return pageResponse(
    410,
    'This link has expired',
    html`<p>It was valid for seven days. Please fill in the form again to get a new one.</p>`,
  );
}

/** `form`: the address of the form. */
export function endedPage(view: SignUpView, form: string): PublicResponse {
  return pageResponse(
    410,
    'This link is no longer valid',
    html`<p>It was used already, or it is older than your last request to unsubscribe or to delete your data. Nothing was changed.</p>
<p>To subscribe to <bdi>${view.group}</bdi> of <bdi>${view.sender}</bdi>, <a href="${form}">fill in the form again</a>: you get a mail with a new link.</p>`,
  );
}

/** 429 above a rate; 503 when the mail or the confirmation was not accepted. With Retry-After. */
export function signUpUnavailablePage(retryAfterSeconds: number, status: 429 | 503): PublicResponse {
  const page = pageResponse(
    status,
    'Please try again later',
    html`<p>Your request was not processed. Please try again later.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}
