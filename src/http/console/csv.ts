/**
 * What a spreadsheet would evaluate as a formula: at the start of a cell, and after a semicolon, which separates cells where
 * the comma is the decimal separator. Phone numbers must remain numbers, and `;-)` is none.
 */
const FORMULA = /(?<=^|;)(?=[=@＝＠＋－\t\r\n]|[+-](?!\d+$|\)))/g;

/** A quoted field (RFC 4180). An apostrophe keeps spreadsheets from evaluating the value as a formula. */
export function csvField(value: string | number | object | null | undefined): string {
  const text =
    value === null || value === undefined
      ? ''
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
  return `"${text.replaceAll(FORMULA, "'").replaceAll('"', '""')}"`;
}
