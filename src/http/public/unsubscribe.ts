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
import { empty, type Html, html, pageResponse } from './layout.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { partiesOf } from './parties.ts';
import { tooOftenPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicResponse, PublicRoute } from './response.ts';

/*
 * `/u/<token>`. GET shows the choices and changes nothing, because scanners follow links. POST takes effect immediately,
 * whether a mailbox provider sends it for its user (RFC 8058) or the form of the page. It uses no cookie and no redirect,
 * and repeating it changes nothing. The page has a form with one button, or the result with an undo button; the fields are
 * `choice` (list, all) and `undo` (the parts to resubscribe to).
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

  const viewOf = (mail: SentMail): UnsubscribeView => ({
    ...partiesOf(tables, mail),
    stream: mail.stream,
    state: unsubscribing.state(tables, mail),
  });

  function show(mail: SentMail): PublicResponse {
    const view = viewOf(mail);
    const stopped = stoppedParts(view);
    return stopped.length > 0 ? stoppedPage(view, stopped, 'before') : askPage(view);
  }

  async function stop(mail: SentMail, choice: Choice, source: OptOutSource): Promise<PublicResponse> {
    const stopped = await writer.run((tx) => unsubscribing.optOut(tx, mail, choice, source), mail.accountId);
    const view = viewOf(mail);
    // Simulated mail has no opt-outs.
    if (mail.simulated) return askPage(view);
    return stoppedPage(view, stopped.length > 0 ? stopped : stoppedParts(view), 'now');
  }

  async function undo(
    mail: SentMail,
    parts: readonly OptOutPart[],
    source: OptOutSource,
  ): Promise<PublicResponse> {
    const { allowed, retryAfterSeconds } = undos.of(`${mail.accountId} ${mail.recipientHash}`).take();
    if (!allowed) return tooOftenPage(retryAfterSeconds);
    await writer.run((tx) => unsubscribing.undo(tx, mail, parts, source), mail.accountId);
    return resubscribedPage(viewOf(mail));
  }

  return {
    name: 'u',
    methods: ['GET', 'POST'],
    handle: ({ method, host, token, visitor, fields }) => {
      const mail = tokens.unsubscribeUrl(token);
      if (mail === null) return unknownLinkPage();
      const isOneClick = /^one-click$/i.test(fields.get('list-unsubscribe') ?? '');
      // A mailbox provider sends one-click to the address in the mail, shows no page and follows no redirect.
      if (!isOneClick && !isOwnHost(hosts, host, mail.accountId))
        return method === 'GET' ? redirectToPlatform(hosts, `/u/${token}`) : unknownLinkPage();
      if (method === 'GET') return show(mail);
      const source = (how: OptOutSource['method']): OptOutSource => ({
        method: how,
        ip: visitor.ip,
        userAgent: visitor.userAgent,
      });
      if (isOneClick) return stop(mail, 'list', source('one_click'));
      const parts = (fields.get('undo') ?? '').split(' ').filter(isPart);
      if (parts.length > 0) return undo(mail, parts, source('page'));
      const choice = fields.get('choice');
      if (choice === 'list' || choice === 'all') return stop(mail, choice, source('page'));
      return askPage(viewOf(mail), 400);
    },
  };
}

function isPart(text: string): text is OptOutPart {
  return text === 'group' || text === 'mk' || text === 'tx';
}

/** What the page shows. */
interface UnsubscribeView {
  /** The company, else the name of the account. */
  sender: string;
  /** The masked address of the recipient; null after the message was deleted. */
  recipient: string | null;
  stream: Stream;
  state: OptOutState;
}

/** The form with its choices; `status` is 400 after a POST without a valid choice. */
function askPage(view: UnsubscribeView, status = 200): PublicResponse {
  return pageResponse(
    status,
    'Unsubscribe',
    html`<p>This is about mail from <bdi>${view.sender}</bdi> to ${recipientOf(view)}.</p>
${askForm(view)}`,
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
  const { stopped, choices } = view.state;
  const more = choices.all.some((part) => !stopped.includes(part));
  return pageResponse(
    200,
    'You are unsubscribed',
    html`<p role="status">${when === 'now' ? 'Done.' : 'You have already unsubscribed.'} <bdi>${view.sender}</bdi> will no longer send the following to ${recipientOf(view)}:</p>
<ul>${parts.map((part) => html`<li>${stoppedName(view, part)}</li>`)}</ul>
${undoForm(parts)}
${more ? allForm(view) : empty}
<p class="soft">Mail that was already sent may still arrive.</p>`,
  );
}

/** 200 after an undo, with the form to unsubscribe again. */
function resubscribedPage(view: UnsubscribeView): PublicResponse {
  return pageResponse(
    200,
    'You are subscribed again',
    html`<p role="status">Your unsubscription was undone: <bdi>${view.sender}</bdi> may send mail to ${recipientOf(view)} as before.</p>
${askForm(view, 'second')}`,
  );
}

function askForm(view: UnsubscribeView, style: 'first' | 'second' = 'first'): Html {
  return html`<form method="post">
${choiceOf(view)}
<button type="submit"${style === 'second' ? html` class="second"` : empty}>Unsubscribe</button>
</form>`;
}

function choiceOf(view: UnsubscribeView): Html {
  const { list, all } = view.state.choices;
  if (list.join() === all.join()) {
    return html`<p>You will no longer get ${onlyThis(view)}.</p>
<input type="hidden" name="choice" value="list">`;
  }
  const option = (choice: Choice, label: Html, checked: boolean) =>
    html`<label><input type="radio" name="choice" value="${choice}"${checked ? html` checked` : empty}><span>${label}</span></label>
`;
  return html`<fieldset>
<legend>What do you want to stop?</legend>
${option('list', html`Only ${onlyThis(view)}`, true)}${option('all', everything(view), false)}</fieldset>`;
}

function onlyThis({ stream, state: { groupName } }: UnsubscribeView): Html {
  if (stream === 'tx') return html`messages like this one, such as those about orders and accounts`;
  return groupName === null ? html`marketing mail` : html`this list: <b><bdi>${groupName}</bdi></b>`;
}

function everything({ stream, sender }: UnsubscribeView): Html {
  return stream === 'tx'
    ? html`All mail from <bdi>${sender}</bdi>`
    : html`All marketing mail from <bdi>${sender}</bdi>`;
}

function stoppedName({ state: { groupName } }: UnsubscribeView, part: OptOutPart): Html {
  if (part === 'group') return html`the list <b><bdi>${groupName ?? ''}</bdi></b>`;
  return part === 'mk'
    ? html`marketing mail of any kind`
    : html`messages such as those about orders and accounts`;
}

function undoForm(stopped: readonly OptOutPart[]): Html {
  return html`<form method="post">
<input type="hidden" name="undo" value="${stopped.join(' ')}">
<button type="submit" class="second">Undo</button>
</form>`;
}

function allForm(view: UnsubscribeView): Html {
  return html`<form method="post">
<input type="hidden" name="choice" value="all">
<button type="submit" class="second">Stop ${view.stream === 'tx' ? 'all mail' : 'all marketing mail'} from <bdi>${view.sender}</bdi></button>
</form>`;
}

function recipientOf({ recipient }: UnsubscribeView): Html {
  return recipient === null ? html`you` : html`<bdi>${recipient}</bdi>`;
}
