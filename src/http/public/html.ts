import { escapeHtml } from '../../mail/html/escape.ts';

/** HTML that is safe to insert into a page. */
export interface Html {
  readonly html: string;
}

/** Template tag: escapes inserted strings, inserts `Html` unchanged, and concatenates lists. */
export function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | Html | readonly Html[])[]
): Html {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += insertedText(value) + (strings[index + 1] ?? '');
  return { html: text };
}

function insertedText(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return escapeHtml(value);
  return 'html' in value ? value.html : value.map((each) => each.html).join('');
}

export const empty: Html = { html: '' };
