/** The text of a form's field without surrounding spaces; empty when the form has no such text field. */
export function fieldText(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}
