/** The fields of a form that have text, trimmed. */
export function filledFields(form: HTMLFormElement): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && value.trim() !== '') filled[name] = value.trim();
  return filled;
}
