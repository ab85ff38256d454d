/**
 * A quoted field (RFC 4180). An apostrophe keeps spreadsheets from evaluating the value as a formula, except before a phone
 * number, which must remain one.
 */
export function csvField(value: string | number | object | null): string {
  const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  const safe = /^[=@\t\r]|^[+-](?!\d+$)/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
