import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Context } from '../../store/context.ts';
import type { Stream } from '../../store/domains/domains.ts';
import type {
  Choice,
  OptOutPart,
  OptOutSource,
  OptOutState,
  Unsubscribing,
} from '../../suppression/unsubscribe.ts';
import { empty, type Html, html } from './html.ts';
import { pageResponse } from './layout.ts';
import { plainLook } from './look.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { type Parties, partiesOf } from './parties.ts';
import { tooOftenPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';

/*
 * `/u/<token>`. GET shows the choices and changes nothing, because scanners follow links. POST takes effect immediately,
 * whether a mailbox provider sends it for its user (RFC 8058) or the form of the page. It uses no cookie and no redirect,
 * and repeating it changes nothing. The page has a form with one button, or the result with an undo button; the fields are
 * `choice` (list, all) and `undo` (the parts to resubscribe to). A link leads to the preference page, which has the same token.
 */

/**
 * Rate of undoing opt-outs, for each recipient of an account. An opt-out itself is not limited (RFC 8058 §3.1): once
 * everything is stopped, further ones change nothing until an undo, so events and consent records are bounded as well.
 */
const UNDO_RATE: Rate = { burst: 10, perSecond: 10 / 3600 };
const MAX_RECIPIENTS = 20_000;

/**
 * Keeps the undo rates of up to 20,000 recipients in memory. A valid POST is one unit of work, and the page follows
 * when it is durable.
 */
export function unsubscribeRoute(
  { clock, tables, writer }: Pick<Context, 'clock' | 'tables' | 'writer'>,
  {
    tokens,
    hosts,
    unsubscribing,
  }: { tokens: Pick<Tokens, 'unsubscribeUrl'>; hosts: PageHosts; unsubscribing: Unsubscribing },
): PublicRoute {
  const undos = createTokenBuckets(clock, UNDO_RATE, MAX_RECIPIENTS);

  const viewOf = (mail: SentMail, { acceptLanguage, token }: PublicRequest): UnsubscribeView => ({
    ...partiesOf(tables, mail, acceptLanguage),
    stream: mail.stream,
    state: unsubscribing.state(tables, mail),
    preferences: `/p/${token}`,
  });

  function show(mail: SentMail, request: PublicRequest): PublicResponse {
    const view = viewOf(mail, request);
    const stopped = stoppedParts(view);
    return stopped.length > 0 ? stoppedPage(view, stopped, 'before') : askPage(view);
  }

  async function stop(
    mail: SentMail,
    choice: Choice,
    source: OptOutSource,
    request: PublicRequest,
  ): Promise<PublicResponse> {
    const stopped = await writer.run((tx) => unsubscribing.optOut(tx, mail, choice, source), mail.accountId);
    const view = viewOf(mail, request);
    // Simulated mail has no opt-outs.
    if (mail.simulated) return askPage(view);
    return stoppedPage(view, stopped.length > 0 ? stopped : stoppedParts(view), 'now');
  }

  async function undo(
    mail: SentMail,
    parts: readonly OptOutPart[],
    source: OptOutSource,
    request: PublicRequest,
  ): Promise<PublicResponse> {
    const { allowed, retryAfterSeconds } = undos.of(`${mail.accountId} ${mail.recipientHash}`).take();
    if (!allowed)
      return tooOftenPage(partiesOf(tables, mail, request.acceptLanguage).look, retryAfterSeconds);
    await writer.run((tx) => unsubscribing.undo(tx, mail, parts, source), mail.accountId);
    return resubscribedPage(viewOf(mail, request));
  }

  return {
    name: 'u',
    methods: ['GET', 'POST'],
    handle: (request) => {
      const { method, host, token, visitor, fields, acceptLanguage } = request;
      const mail = tokens.unsubscribeUrl(token);
      if (mail === null) return unknownLinkPage(plainLook(acceptLanguage));
      const isOneClick = /^one-click$/i.test(fields.get('list-unsubscribe') ?? '');
      // A mailbox provider sends one-click to the address in the mail, shows no page and follows no redirect.
      if (!isOneClick && !isOwnHost(hosts, host, mail.accountId))
        return method === 'GET'
          ? redirectToPlatform(hosts, `/u/${token}`)
          : unknownLinkPage(plainLook(acceptLanguage));
      if (method === 'GET') return show(mail, request);
      const source = (how: OptOutSource['method']): OptOutSource => ({
        method: how,
        ip: visitor.ip,
        userAgent: visitor.userAgent,
      });
      if (isOneClick) return stop(mail, 'list', source('one_click'), request);
      const parts = (fields.get('undo') ?? '').split(' ').filter(isPart);
      if (parts.length > 0) return undo(mail, parts, source('page'), request);
      const choice = fields.get('choice');
      if (choice === 'list' || choice === 'all') return stop(mail, choice, source('page'), request);
      return askPage(viewOf(mail, request), 400);
    },
  };
}

function isPart(text: string): text is OptOutPart {
  return text === 'group' || text === 'mk' || text === 'tx';
}

/** What the page shows. */
interface UnsubscribeView extends Parties {
  stream: Stream;
  state: OptOutState;
  /** Path of the preference page. */
  preferences: string;
}

/** The form with its choices; `status` is 400 after a POST without a valid choice. */
function askPage(view: UnsubscribeView, status = 200): PublicResponse {
  const { look, sender, recipient } = view;
  const about =
    recipient === null
      ? look.text('unsubscribe.aboutYou', { sender })
      : look.text('unsubscribe.about', { sender, recipient });
  return pageResponse(
    look,
    status,
    'unsubscribe.title',
    html`<p>${about}</p>
${askForm(view)}
${preferencesLink(view)}`,
  );
}

/** The opt-outs of the recipient that block mail like this. */
function stoppedParts({ stream, state: { stopped } }: UnsubscribeView): OptOutPart[] {
  return stopped.filter((part) => stream === 'mk' || part === 'tx');
}

/** `parts`: what was stopped, now or before. Undo applies to these only. */
function stoppedPage(
  view: UnsubscribeView,
  parts: readonly OptOutPart[],
  when: 'now' | 'before',
): PublicResponse {
  const { look, sender, recipient, stream } = view;
  const { stopped, choices } = view.state;
  const more = choices.all.some((part) => !stopped.includes(part));
  const list =
    recipient === null
      ? look.text('unsubscribed.listYou', { sender })
      : look.text('unsubscribed.list', { sender, recipient });
  const stopAll = stream === 'tx' ? 'unsubscribed.stopMail' : 'unsubscribed.stopMarketing';
  const allForm = html`<form method="post">
<input type="hidden" name="choice" value="all">
<button type="submit" class="second">${look.text(stopAll, { sender })}</button>
</form>`;
  return pageResponse(
    look,
    200,
    'unsubscribed.title',
    html`<p role="status">${look.text(`unsubscribed.${when}`)} ${list}</p>
<ul>${parts.map((part) => html`<li>${stoppedName(view, part)}</li>`)}</ul>
<form method="post">
<input type="hidden" name="undo" value="${parts.join(' ')}">
<button type="submit" class="second">${look.text('unsubscribed.undo')}</button>
</form>
${more ? allForm : empty}
${preferencesLink(view)}
<p class="soft">${look.text('unsubscribed.later')}</p>`,
  );
}

/** 200 after an undo, with the form to unsubscribe again. */
function resubscribedPage(view: UnsubscribeView): PublicResponse {
  const { look, sender, recipient } = view;
  const done =
    recipient === null
      ? look.text('resubscribed.textYou', { sender })
      : look.text('resubscribed.text', { sender, recipient });
  return pageResponse(
    look,
    200,
    'resubscribed.title',
    html`<p role="status">${done}</p>
${askForm(view, 'second')}
${preferencesLink(view)}`,
  );
}

function askForm(view: UnsubscribeView, style: 'first' | 'second' = 'first'): Html {
  return html`<form method="post">
${choiceOf(view)}
<button type="submit"${style === 'second' ? html` class="second"` : empty}>${view.look.text('unsubscribe.send')}</button>
</form>`;
}

/** One button where the list is all that can be stopped; otherwise a choice. */
function choiceOf({ look, sender, stream, state: { groupName, choices } }: UnsubscribeView): Html {
  if (choices.list.join() === choices.all.join()) {
    const ends = stream === 'tx' ? 'unsubscribe.endsTransactional' : 'unsubscribe.endsMarketing';
    const text =
      groupName === null || stream === 'tx'
        ? look.text(ends)
        : look.text('unsubscribe.endsGroup', { group: groupName });
    return html`<p>${text}</p>
<input type="hidden" name="choice" value="list">`;
  }
  const option = (choice: Choice, label: Html, checked: boolean) =>
    html`<label><input type="radio" name="choice" value="${choice}"${checked ? html` checked` : empty}><span>${label}</span></label>
`;
  const only =
    stream === 'tx'
      ? look.text('unsubscribe.onlyTransactional')
      : look.text('unsubscribe.onlyGroup', { group: groupName ?? '' });
  const all = look.text(stream === 'tx' ? 'unsubscribe.allMail' : 'unsubscribe.allMarketing', { sender });
  return html`<fieldset>
<legend>${look.text('unsubscribe.question')}</legend>
${option('list', only, true)}${option('all', all, false)}</fieldset>`;
}

function stoppedName({ look, state: { groupName } }: UnsubscribeView, part: OptOutPart): Html {
  if (part === 'group') return look.text('unsubscribed.group', { group: groupName ?? '' });
  return look.text(part === 'mk' ? 'unsubscribed.marketing' : 'unsubscribed.transactional');
}

function preferencesLink({ look, isContact, preferences }: UnsubscribeView): Html {
  if (!isContact) return empty;
  return html`<p><a href="${preferences}">${look.text('unsubscribe.preferences')}</a></p>`;
}
