import type { Choice, OptOutPart, OptOutState } from '../../suppression/unsubscribe.ts';
import type { PublicAnswer } from './answer.ts';
import { type Html, html, nothing, pageAnswer } from './layout.ts';

/**
 * What the unsubscribe page says. It asks with one button, tells what was done, and offers to take it back. The
 * fields of its forms: `choice` (list, all) and `undo` (the parts to take up again).
 */
export interface UnsubscribeView {
  /** The company, or whatever the account is called. */
  sender: string;
  /** Whom the mail was to, not in full; null when that is not on record any more. */
  recipient: string | null;
  stream: 'tx' | 'mk';
  standing: OptOutState;
}

export function askPage(view: UnsubscribeView, status = 200): PublicAnswer {
  return pageAnswer(
    status,
    'Unsubscribe',
    html`<p>This is about mail from <bdi>${view.sender}</bdi> to ${whom(view)}.</p>
${askForm(view)}`,
  );
}

/** What the person stopped that keeps mail like this from coming. */
export function inTheWay({ stream, standing: { stopped } }: UnsubscribeView): OptOutPart[] {
  return stopped.filter((part) => stream === 'mk' || part === 'tx');
}

/** `parts`: what was stopped, now or some time before; only that is offered to be taken back. */
export function stoppedPage(
  view: UnsubscribeView,
  parts: readonly OptOutPart[],
  when: 'now' | 'before',
): PublicAnswer {
  const { stopped, choices } = view.standing;
  const more = choices.all.some((part) => !stopped.includes(part));
  return pageAnswer(
    200,
    'You are unsubscribed',
    html`<p role="status">${when === 'now' ? 'Done.' : 'It was done before.'} <bdi>${view.sender}</bdi> will no longer send the following to ${whom(view)}:</p>
<ul>${parts.map((part) => html`<li>${stoppedName(view, part)}</li>`)}</ul>
${undoForm(parts)}
${more ? allForm(view) : nothing}
<p class="soft">A mail that is already on its way may still arrive.</p>`,
  );
}

export function takenBackPage(view: UnsubscribeView): PublicAnswer {
  return pageAnswer(
    200,
    'You are subscribed again',
    html`<p role="status">That was taken back: <bdi>${view.sender}</bdi> may write to ${whom(view)} as before.</p>
${askForm(view, 'second')}`,
  );
}

function askForm(view: UnsubscribeView, look: 'first' | 'second' = 'first'): Html {
  return html`<form method="post">
${choiceOf(view)}
<button type="submit"${look === 'second' ? html` class="second"` : nothing}>Unsubscribe</button>
</form>`;
}

function choiceOf(view: UnsubscribeView): Html {
  const { list, all } = view.standing.choices;
  if (list.join() === all.join()) {
    return html`<p>You will get ${onlyThis(view)} no more.</p>
<input type="hidden" name="choice" value="list">`;
  }
  const option = (choice: Choice, label: Html, checked: boolean) =>
    html`<label><input type="radio" name="choice" value="${choice}"${checked ? html` checked` : nothing}><span>${label}</span></label>
`;
  return html`<fieldset>
<legend>What do you want to stop?</legend>
${option('list', html`Only ${onlyThis(view)}`, true)}${option('all', everything(view), false)}</fieldset>`;
}

function onlyThis({ stream, standing: { groupName } }: UnsubscribeView): Html {
  if (stream === 'tx') return html`messages like this one, about orders, accounts and the like`;
  return groupName === null ? html`marketing mail` : html`this list: <b><bdi>${groupName}</bdi></b>`;
}

function everything({ stream, sender }: UnsubscribeView): Html {
  return stream === 'tx'
    ? html`All mail from <bdi>${sender}</bdi>`
    : html`All marketing mail from <bdi>${sender}</bdi>`;
}

function stoppedName({ standing: { groupName } }: UnsubscribeView, part: OptOutPart): Html {
  if (part === 'group') return html`the list <b><bdi>${groupName ?? ''}</bdi></b>`;
  return part === 'mk'
    ? html`marketing mail of any kind`
    : html`messages about orders, accounts and the like`;
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

function whom({ recipient }: UnsubscribeView): Html {
  return recipient === null ? html`you` : html`<bdi>${recipient}</bdi>`;
}
