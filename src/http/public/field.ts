import { empty, type Html, html } from './html.ts';

/** A text field with its label and, if its value was refused, the reason. */
export function field(name: string, label: Html, attributes: Html, fault: Html | null = null): Html {
  const faultId = `${name}-fault`;
  const invalid = fault === null ? empty : html` aria-invalid="true" aria-describedby="${faultId}"`;
  const reason = fault === null ? empty : html`<p class="fault" id="${faultId}" role="alert">${fault}</p>`;
  return html`<div class="field"><label>${label}<input name="${name}"${attributes}${invalid}></label>${reason}</div>`;
}
