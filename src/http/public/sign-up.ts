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
import { field } from './field.ts';
import type { FormFields } from './form-body.ts';
import { empty, html } from './html.ts';
import { pageResponse } from './layout.ts';
import { accountLook, type Look, plainLook } from './look.ts';
import { unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';
import type { Visitor } from './visitor.ts';

/*
 * The sign-up forms of groups, `/j/<group id>`, and the confirmation, `/k/<token>`. Nothing is stored before the
 * confirmation: the token has the sign-up. GET changes nothing, because scanners follow links. Own forms on other sites
 * send their fields to the same address: `email`, `firstName`, `lastName`, `language` (of the page and of the
 * confirmation mail; default: that of the browser) and `website`, which people leave empty.
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
/** Of a field that is shown again. */
const MAX_ENTERED = 400;
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

  /** `language`: of the sign-up; null: not known yet. */
  function find(groupId: string, language: string | null, acceptLanguage: string): OpenForm | null {
    const group = tables.subscriptionGroups.ofForm(groupId);
    const form = group === null ? null : signUpFormOf(group);
    const account = group === null ? null : tables.accounts.get(group.account_id);
    if (group === null || form === null || account?.status !== 'active') return null;
    const { name, description } = group;
    const look = accountLook(tables, account.account_id, language, acceptLanguage);
    return {
      group,
      form,
      account,
      view: { look, sender: look.brand?.name ?? account.name, group: name, description },
    };
  }

  /** Handles a form that was submitted: sends the confirmation mail, within the rates. */
  async function submit(open: OpenForm, { fields, visitor }: PublicRequest): Promise<PublicResponse> {
    const { group, view } = open;
    // Programs fill in every field.
    if ((fields.get('website') ?? '') !== '') return sentPage(view);
    const email = readEmail((fields.get('email') ?? '').slice(0, 400));
    if ('fault' in email) return signUpForm(view, { isInvalid: true, fields });
    for (const bucket of [byClient.of(callerBlock(visitor.ip)), byGroup.of(group.subscription_group_id)]) {
      const { allowed, retryAfterSeconds } = bucket.take();
      if (!allowed) return signUpUnavailablePage(view.look, retryAfterSeconds, 429);
    }
    if (!byAddress.of(mailboxOf(email.value)).take().allowed) return sentPage(view);
    const refusal = await sendConfirmation(open, {
      groupId: group.subscription_group_id,
      email: email.value,
      firstName: nameIn(fields.get('firstname')),
      lastName: nameIn(fields.get('lastname')),
      at: clock.now(),
      language: view.look.language,
    });
    if (refusal === null || refusal.code === 'RECIPIENT_SUPPRESSED') return sentPage(view);
    log.warn({ groupId: group.subscription_group_id, code: refusal.code }, 'confirmation mail not accepted');
    return signUpUnavailablePage(view.look, RETRY_SECONDS, 503);
  }

  async function sendConfirmation(
    { account, form, group, view: { look } }: OpenForm,
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
        html: '<div lang="{{language}}"><p>{{intro}}</p><p><a href="{{link}}">{{link}}</a></p><p>{{outro}}</p></div>',
        text: '{{intro}}\n\n{{link}}\n\n{{outro}}\n',
        essential: true,
        enableOpenTracking: false,
        enableClickTracking: false,
        templateVariables: {
          subject: form.subject ?? look.plain('mail.subject', { group: group.name }),
          intro: form.intro ?? look.plain('mail.intro', { group: group.name }),
          link: `${services.publicUrl()}/k/${tokens.of(account.account_id).signUp(signUp)}`,
          outro: look.plain('mail.outro'),
          language: look.language,
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
    const { look } = open.view;
    if (!allowed) return signUpUnavailablePage(look, retryAfterSeconds, 429);
    if (services.storageRefusal(open.account.account_id) !== null)
      return signUpUnavailablePage(look, RETRY_SECONDS, 503);
    const state = await signUps.confirm(open.account.account_id, signUp, {
      by: 'recipient',
      ipAddress: visitor.ip,
      userAgent: visitor.userAgent === '' ? null : visitor.userAgent,
    });
    if (!isRefusal(state)) return pageOf(open, signUp, state);
    log.warn({ groupId: signUp.groupId, code: state.code }, 'sign-up not recorded');
    return signUpUnavailablePage(look, RETRY_SECONDS, 503);
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
        const { host, token, acceptLanguage, fields } = request;
        const chosen = fields.get('language') ?? null;
        const open = isCustomerHost(host) ? null : find(token, chosen, acceptLanguage);
        if (open === null) return unknownLinkPage(plainLook(acceptLanguage));
        return request.method === 'GET' ? signUpForm(open.view) : submit(open, request);
      },
    },
    {
      name: 'k',
      methods: ['GET', 'POST'],
      handle: ({ method, host, token, visitor, acceptLanguage }) => {
        const signUp = isCustomerHost(host) ? null : tokens.signUp(token);
        const open = signUp === null ? null : find(signUp.groupId, signUp.language, acceptLanguage);
        if (signUp === null || open === null || !signUp.isOf(open.account.account_id))
          return unknownLinkPage(plainLook(acceptLanguage));
        if (clock.now() - signUp.at > SIGN_UP_LIFETIME_MS) return expiredPage(open.view);
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
  look: Look;
  sender: string;
  group: string;
  description: string | null;
}

/** What was sent with an address that is not valid. */
interface InvalidForm {
  isInvalid: true;
  fields: FormFields;
}

/** 200 with the form; 400 with what was entered, when the address is not valid. */
function signUpForm(view: SignUpView, invalid: InvalidForm | null = null): PublicResponse {
  const { look, sender, group, description } = view;
  const about = description === null ? empty : html`<p>${description}</p>`;
  const entered = (name: string) => (invalid?.fields.get(name) ?? '').slice(0, MAX_ENTERED);
  const fault = invalid === null ? null : look.text('signUp.invalid');
  return pageResponse(
    look,
    invalid === null ? 200 : 400,
    'signUp.title',
    html`${about}<p>${look.text('signUp.about', { sender })}</p>
<form method="post">
<input type="hidden" name="language" value="${look.language}">
${field('email', look.text('signUp.email'), html` type="email" autocomplete="email" required value="${entered('email')}"`, fault)}
${field('firstName', look.text('signUp.firstName'), html` type="text" autocomplete="given-name" maxlength="100" value="${entered('firstname')}"`)}
${field('lastName', look.text('signUp.lastName'), html` type="text" autocomplete="family-name" maxlength="100" value="${entered('lastname')}"`)}
<p hidden><label>${look.text('signUp.trap')} <input name="website" tabindex="-1" autocomplete="off"></label></p>
<button type="submit">${look.text('signUp.send')}</button>
</form>`,
    { group },
  );
}

/** The page after a valid form. It is equal for every address, so that it does not show who is a member. */
function sentPage({ look, sender, group }: SignUpView): PublicResponse {
  return pageResponse(
    look,
    200,
    'signUp.sentTitle',
    html`<p role="status">${look.text('signUp.sent', { sender, group })}</p>
<p class="soft">${look.text('signUp.sentHint')}</p>`,
  );
}

/**
 * 200 for GET of a link that can be confirmed: a button, because scanners follow links. `recipient`: in full, as it was in
 * the mail.
 */
function confirmPage({ look, sender, group }: SignUpView, recipient: string): PublicResponse {
  return pageResponse(
    look,
    200,
    'signUp.confirmTitle',
    html`<p>${look.text('signUp.confirm', { sender, recipient })}</p>
<form method="post"><button type="submit">${look.text('signUp.confirmSend')}</button></form>
<p class="soft">${look.text('signUp.confirmHint')}</p>`,
    { group },
  );
}

/** 200 after a confirmation, by this request or an earlier one. */
function confirmedPage({ look, sender, group }: SignUpView, recipient: string): PublicResponse {
  return pageResponse(
    look,
    200,
    'signUp.confirmedTitle',
    html`<p role="status">${look.text('signUp.confirmed', { recipient, group, sender })}</p>`,
  );
}

/** 410 for a link older than SIGN_UP_LIFETIME_MS, seven days. */
function expiredPage({ look }: SignUpView): PublicResponse {
  return pageResponse(look, 410, 'signUp.expiredTitle', html`<p>${look.text('signUp.expired')}</p>`);
}

/** `form`: the address of the form. */
function endedPage({ look, sender, group }: SignUpView, form: string): PublicResponse {
  return pageResponse(
    look,
    410,
    'signUp.endedTitle',
    html`<p>${look.text('signUp.ended')}</p>
<p>${look.text('signUp.again', { group, sender })}</p>
<p><a href="${form}">${look.text('signUp.againLink')}</a></p>`,
  );
}

/** 429 above a rate; 503 when the mail or the confirmation was not accepted. With Retry-After. */
function signUpUnavailablePage(look: Look, retryAfterSeconds: number, status: 429 | 503): PublicResponse {
  const page = pageResponse(look, status, 'signUp.laterTitle', html`<p>${look.text('signUp.later')}</p>`);
  return { ...page, headers: { ...page.headers, 'Retry-After': String(retryAfterSeconds) } };
}
