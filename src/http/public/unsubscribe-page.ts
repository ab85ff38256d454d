import type { Stream } from '../../store/domains/domains.ts';
import type { Choice, OptOutPart, OptOutState } from '../../suppression/unsubscribe.ts';
import { empty, type Html, html, pageResponse } from './layout.ts';
import type { PublicResponse } from './response.ts';

/*
 * The unsubscribe page: a form with one button, the result, and an undo button. The fields of its forms are `choice`
 * (list, all) and `undo` (the parts to resubscribe to).
 */

/** What the page shows. */
export interface UnsubscribeView {
  /** The company, else the name of the account. */
  sender: string;
  /** The masked address of the recipient; null after the message was deleted. */
  recipient: string | null;
  stream: Stream;
  state: OptOutState;
}

/** The form with its choices; `status` is 400 after a POST without a valid choice. */
export function askPage(view: UnsubscribeView, status = 200): PublicResponse {
  return pageResponse(
    status,
    'Unsubscribe',
    html`<p>This is about mail from <bdi>${view.sender}</bdi> to ${recipientOf(view)}.</p>
${askForm(view)}`,
  );
}

/** The opt-outs of the recipient that block mail like this. */
export function stoppedParts({ stream, state: { stopped } }: UnsubscribeView): OptOutPart[] {
  return stopped.filter((part) => stream === 'mk' || part === 'tx');
}

/** `parts`: what was stopped, now or before. Undo applies to these only. */
export function stoppedPage(
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
export function resubscribedPage(view: UnsubscribeView): PublicResponse {
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
