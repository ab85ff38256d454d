import type { Choice, OptOutPart, Standing } from '../../suppression/unsubscribe.ts';
import type { PublicAnswer } from './answer.ts';
import { type Html, html, nothing, pageAnswer } from './layout.ts';

/**
 * Data of the unsubscribe page, which has one button, states what was done and offers to undo it. Fields of its forms:
 * `choice` (list, all) and `undo` (the parts to resume).
 */
export interface UnsubscribeView {
  /** Name of the company or the account. */
  sender: string;
  /** Masked address of the recipient; null when it is no longer stored. */
  recipient: string | null;
  stream: 'tx' | 'mk';
  standing: Standing;
}

export function askPage(view: UnsubscribeView, status = 200): PublicAnswer {
  return pageAnswer(
    status,
    'Unsubscribe',
    html`<p>This is about mail from <bdi>${view.sender}</bdi> to ${recipientOf(view)}.</p>
${askForm(view)}`,
  );
}

/** The recipient's opt-outs that stop mail like this one. */
export function effectiveOptOuts({ stream, standing: { stopped } }: UnsubscribeView): OptOutPart[] {
  return stopped.filter((part) => stream === 'mk' || part === 'tx');
}

/** `parts`: the opt-outs that can be undone, whether new or existing. */
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
    html`<p role="status">${when === 'now' ? 'Done.' : 'You were unsubscribed already.'} <bdi>${view.sender}</bdi> will no longer send the following to ${recipientOf(view)}:</p>
<ul>${parts.map((part) => html`<li>${stoppedName(view, part)}</li>`)}</ul>
${undoForm(parts)}
${more ? allForm(view) : nothing}
<p class="soft">A mail that is already on its way may still arrive.</p>`,
  );
}

export function resubscribedPage(view: UnsubscribeView): PublicAnswer {
  return pageAnswer(
    200,
    'You are subscribed again',
    html`<p role="status">Undone: <bdi>${view.sender}</bdi> may send mail to ${recipientOf(view)} as before.</p>
${askForm(view, 'secondary')}`,
  );
}

function askForm(view: UnsubscribeView, style: 'primary' | 'secondary' = 'primary'): Html {
  return html`<form method="post">
${choiceOf(view)}
<button type="submit"${style === 'secondary' ? html` class="second"` : nothing}>Unsubscribe</button>
</form>`;
}

function choiceOf(view: UnsubscribeView): Html {
  const { list, all } = view.standing.choices;
  if (list.join() === all.join()) {
    return html`<p>You will no longer receive ${onlyThis(view)}.</p>
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

function recipientOf({ recipient }: UnsubscribeView): Html {
  return recipient === null ? html`you` : html`<bdi>${recipient}</bdi>`;
}
