/**
 * What a spreadsheet would evaluate as a formula: at the start of a cell, and after a semicolon, which separates cells where
 * the comma is the decimal separator. Phone numbers must remain numbers, and `;-)` is none.
 */
const FORMULA = /(?<=^|;)(?=[=@＝＠＋－\t\r\n]|[+-](?!\d+$|\)))/g;

/** A quoted field (RFC 4180). An apostrophe keeps spreadsheets from evaluating the value as a formula. */
export function csvField(value: string | number | object | null | undefined): string {
  const given = value ?? '';
  const text = typeof given === 'object' ? JSON.stringify(given) : String(given);
  return `"${text.replaceAll(FORMULA, "'").replaceAll('"', '""')}"`;
}
