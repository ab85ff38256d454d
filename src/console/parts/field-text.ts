/** The text of a form's field without surrounding spaces; empty when the form has no such text field. */
export function fieldText(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** The choice of a form's field; undefined when it is none of these. */
export function fieldChoice<T extends string>(
  form: FormData,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = fieldText(form, name);
  return choices.find((choice) => choice === text);
}

/** The named fields of a form that have text, trimmed. */
export function filledTexts<N extends string>(form: FormData, ...names: N[]): { [K in N]?: string } {
  const filled: { [K in N]?: string } = {};
  for (const name of names) {
    const text = fieldText(form, name);
    if (text !== '') filled[name] = text;
  }
  return filled;
}
