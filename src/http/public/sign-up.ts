import { callerBlock } from '../../accounts/caller-addresses.ts';
import { type SignUpForm, signUpFormOf } from '../../audience/groups.ts';
import { readEmail, readName } from '../../audience/profile.ts';
import type { Audience } from '../../audience/service.ts';
import type { SignUpState } from '../../audience/sign-ups.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import { emailIdentifier } from '../../mail/identifier.ts';
import type { SignUp, Tokens } from '../../mail/tokens.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { AccountRow } from '../../store/accounts.ts';
import { SIGN_UP_LIFETIME_MS } from '../../store/contacts/closed-sign-ups.ts';
import type { SubscriptionGroupRow } from '../../store/contacts/subscription-groups.ts';
import type { Context } from '../../store/context.ts';
import { empty, type Html, html, pageResponse } from './layout.ts';
import { unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';
import type { Visitor } from './visitor.ts';

/*
 * The sign-up forms of groups, `/j/<group id>`, and the confirmation, `/k/<token>`. Nothing is stored before the
 * confirmation: the token has the sign-up. GET changes nothing, because scanners follow links. Own forms on other sites
 * send their fields to the same address: `email`, `firstName`, `lastName` and `website`, which people leave empty.
 */

/** What takes sign-ups. */
export interface SignUpServices {
  tokens: Pick<Tokens, 'of' | 'signUp'>;
  audience: Pick<Audience, 'signUps'>;
  /** Sends the confirmation mail; null: the send path is not ready. */
  accept: () => Acceptance['accept'] | null;
  /** Why nothing more is stored for an account; null: it is. */
  storageRefusal(accountId: string): Refusal | null;
  /** Whether a host is the link host of a customer: a form of another account must not appear under its name. */
  isCustomerHost(host: string): boolean;
  /** Base of the link in the mail. */
  publicUrl: () => string;
}

/** Anyone can enter the address of another person: that person gets few mails, from all forms together. */
const MAILS_PER_ADDRESS: Rate = { burst: 2, perSecond: (2 * SECOND) / DAY };
const FORMS_PER_CLIENT: Rate = { burst: 10, perSecond: (20 * SECOND) / HOUR };
const FORMS_PER_GROUP: Rate = { burst: 500, perSecond: (1000 * SECOND) / HOUR };
/** Confirmations of one address in a group: a person needs one. */
const CONFIRMATIONS: Rate = { burst: 10, perSecond: SECOND / MINUTE };
const MAX_ADDRESSES = 100_000;
const MAX_CLIENTS = 20_000;
const MAX_GROUPS = 5000;
const MAX_NAME_LENGTH = 100;
const RETRY_SECONDS = 300;

/** A form whose account may send. */
interface OpenForm {
  group: SubscriptionGroupRow;
  form: SignUpForm;
  account: AccountRow;
  view: SignUpView;
}

/**
 * Keeps the rates of up to 100,000 addresses, 20,000 blocks of clients and 5000 groups in memory. Above the rate of an
 * address no mail is sent, and the page is the same.
 */
export function signUpRoutes(
  { clock, log, tables }: Pick<Context, 'clock' | 'log' | 'tables'>,
  services: SignUpServices,
): PublicRoute[] {
  const { tokens, isCustomerHost } = services;
  const { signUps } = services.audience;
  const byAddress = createTokenBuckets(clock, MAILS_PER_ADDRESS, MAX_ADDRESSES);
  const byClient = createTokenBuckets(clock, FORMS_PER_CLIENT, MAX_CLIENTS);
  const confirmations = createTokenBuckets(clock, CONFIRMATIONS, MAX_ADDRESSES);
  const byGroup = createTokenBuckets(clock, FORMS_PER_GROUP, MAX_GROUPS);

  function find(groupId: string): OpenForm | null {
    const group = tables.subscriptionGroups.ofForm(groupId);
    const form = group === null ? null : signUpFormOf(group);
    const account = group === null ? null : tables.accounts.get(group.account_id);
    if (group === null || form === null || account?.status !== 'active') return null;
    const { name, description } = group;
    return {
      group,
      form,
      account,
      view: { sender: account.company_name ?? account.name, group: name, description },
    };
  }

  /** Handles a form that was submitted: sends the confirmation mail, within the rates. */
  async function submit(open: OpenForm, { fields, visitor }: PublicRequest): Promise<PublicResponse> {
    const { group, view } = open;
    // Programs fill in every field.
    if ((fields.get('website') ?? '') !== '') return sentPage(view);
    const email = readEmail((fields.get('email') ?? '').slice(0, 400));
    if ('fault' in email) return signUpForm(view, email.fault);
    for (const bucket of [byClient.of(callerBlock(visitor.ip)), byGroup.of(group.subscription_group_id)]) {
      const { allowed, retryAfterSeconds } = bucket.take();
      if (!allowed) return signUpUnavailablePage(retryAfterSeconds, 429);
    }
    if (!byAddress.of(mailboxOf(email.value)).take().allowed) return sentPage(view);
    const refusal = await sendConfirmation(open, {
      groupId: group.subscription_group_id,
      email: email.value,
      firstName: nameIn(fields.get('firstname')),
      lastName: nameIn(fields.get('lastname')),
      at: clock.now(),
    });
    if (refusal === null || refusal.code === 'RECIPIENT_SUPPRESSED') return sentPage(view);
    log.warn({ groupId: group.subscription_group_id, code: refusal.code }, 'confirmation mail not accepted');
    return signUpUnavailablePage(RETRY_SECONDS, 503);
  }

  async function sendConfirmation(
    { account, form, group }: OpenForm,
    signUp: SignUp,
  ): Promise<Pick<Refusal, 'code'> | null> {
    const accept = services.accept();
    if (accept === null) return { code: 'UNAVAILABLE' };
    const accepted = await accept({
      sender: { account, useCase: 'tx', allowFrom: [], allowEssential: true },
      body: {
        from: form.from,
        to: signUp.email,
        subject: '{{subject}}',
        html: '<p>{{intro}}</p><p><a href="{{link}}">{{link}}</a></p><p>{{outro}}</p>',
        text: '{{intro}}\n\n{{link}}\n\n{{outro}}\n',
        essential: true,
        templateVariables: {
          subject: form.subject ?? `Confirm your subscription to ${group.name}`,
          intro: form.intro ?? `Please confirm that you want to subscribe to ${group.name}:`,
          link: `${services.publicUrl()}/k/${tokens.of(account.account_id).signUp(signUp)}`,
          outro: 'If you did not ask for it, ignore this mail: you will get no further ones.',
        },
      },
      idempotency: null,
      appendFooter: true,
      envelope: () => '',
    });
    return isRefusal(accepted) ? accepted : null;
  }

  async function confirm(open: OpenForm, signUp: SignUp, visitor: Visitor): Promise<PublicResponse> {
    const { allowed, retryAfterSeconds } = confirmations
      .of(`${signUp.groupId} ${emailIdentifier(signUp.email)}`)
      .take();
    if (!allowed) return signUpUnavailablePage(retryAfterSeconds, 429);
    if (services.storageRefusal(open.account.account_id) !== null)
      return signUpUnavailablePage(RETRY_SECONDS, 503);
    const state = await signUps.confirm(open.account.account_id, signUp, {
      by: 'recipient',
      ipAddress: visitor.ip,
      userAgent: visitor.userAgent === '' ? null : visitor.userAgent,
    });
    if (!isRefusal(state)) return pageOf(open, signUp, state);
    log.warn({ groupId: signUp.groupId, code: state.code }, 'sign-up not recorded');
    return signUpUnavailablePage(RETRY_SECONDS, 503);
  }

  function pageOf({ view }: OpenForm, { email, groupId }: SignUp, state: SignUpState): PublicResponse {
    if (state === 'ended') return endedPage(view, `/j/${groupId}`);
    return state === 'open' ? confirmPage(view, email) : confirmedPage(view, email);
  }

  return [
    {
      name: 'j',
      methods: ['GET', 'POST'],
      handle: (request) => {
        const open = isCustomerHost(request.host) ? null : find(request.token);
        if (open === null) return unknownLinkPage();
        return request.method === 'GET' ? signUpForm(open.view) : submit(open, request);
      },
    },
    {
      name: 'k',
      methods: ['GET', 'POST'],
      handle: ({ method, host, token, visitor }) => {
        const signUp = isCustomerHost(host) ? null : tokens.signUp(token);
        const open = signUp === null ? null : find(signUp.groupId);
        if (signUp === null || open === null || !signUp.isOf(open.account.account_id))
          return unknownLinkPage();
        if (clock.now() - signUp.at > SIGN_UP_LIFETIME_MS) return expiredPage();
        return method === 'GET'
          ? pageOf(open, signUp, signUps.state(open.account.account_id, signUp))
          : confirm(open, signUp, visitor);
      },
    },
  ];
}

/** The mailbox of an address, without a subaddress (RFC 5233), which would be a further address of the same person. */
function mailboxOf(email: string): string {
  // Not linear: an address has at most 254 characters.
  return emailIdentifier(email.replace(/\+[^@]*@/, '@'));
}

/** A name as the form has it; '' if it is not a name. */
function nameIn(text = ''): string {
  const read = readName(text.slice(0, MAX_NAME_LENGTH));
  return 'value' in read ? read.value : '';
}

/** What the form shows. */
interface SignUpView {
  sender: string;
  group: string;
  description: string | null;
}

/** 200 with the form; with `fault`, what is wrong with the address, 400. */
function signUpForm(view: SignUpView, fault: string | null = null): PublicResponse {
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
function sentPage(view: SignUpView): PublicResponse {
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
function confirmPage(view: SignUpView, email: string): PublicResponse {
  return pageResponse(
    200,
    `Subscribe to ${view.group}?`,
    html`<p>Mail from <bdi>${view.sender}</bdi> will be sent to <bdi>${email}</bdi>. Every mail has a link to unsubscribe.</p>
<form method="post"><button type="submit">Yes, subscribe</button></form>
<p class="soft">If you did not ask for it, close this page: nothing will be sent.</p>`,
  );
}

/** 200 after a confirmation, by this request or an earlier one. */
function confirmedPage(view: SignUpView, email: string): PublicResponse {
  return pageResponse(
    200,
    'You are subscribed',
    html`<p role="status"><bdi>${email}</bdi> is subscribed to <bdi>${view.group}</bdi> of <bdi>${view.sender}</bdi>.</p>`,
  );
}

/** 410 for a link older than SIGN_UP_LIFETIME_MS, seven days. */
function expiredPage(): PublicResponse {
  return pageResponse(
    410,
    'This link has expired',
    html`<p>It was valid for seven days. Please fill in the form again to get a new one.</p>`,
  );
}

/** `form`: the address of the form. */
function endedPage(view: SignUpView, form: string): PublicResponse {
  return pageResponse(
    410,
    'This link is no longer valid',
    html`<p>It was used already, or it is older than your last request to unsubscribe or to delete your data. Nothing was changed.</p>
<p>To subscribe to <bdi>${view.group}</bdi> of <bdi>${view.sender}</bdi>, <a href="${form}">fill in the form again</a>: you get a mail with a new link.</p>`,
  );
}

/** 429 above a rate; 503 when the mail or the confirmation was not accepted. With Retry-After. */
function signUpUnavailablePage(retryAfterSeconds: number, status: 429 | 503): PublicResponse {
  const page = pageResponse(
    status,
    'Please try again later',
    html`<p>Your request was not processed. Please try again later.</p>`,
  );
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}
