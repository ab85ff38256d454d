/*
 * Recognizes exports of suppressions by their columns, without case and separators: an import as contacts would make
 * recipients of people who cannot or do not want to be reached.
 */

export const SERVICE_NAMES = {
  sendgrid: 'SendGrid',
  mailgun: 'Mailgun',
  postmark: 'Postmark',
  ses: 'Amazon SES',
};
export type ServiceName = keyof typeof SERVICE_NAMES;

/** Columns with the address, as `foldedColumn` writes them. */
export const ADDRESS_COLUMNS = ['email', 'emailaddress', 'address', 'recipient'];

/** The service whose export of suppressions has these columns; null: it is not one. */
export function suppressionExport(names: readonly string[]): ServiceName | null {
  const columns = new Set(names.map(foldedColumn));
  const has = (...all: string[]) => all.every((name) => columns.has(name));
  if (!ADDRESS_COLUMNS.some((name) => columns.has(name))) return null;
  if (has('suppressionreason') || has('bouncedat') || has('reason', 'origin'))
    return has('lastupdatetime') ? 'ses' : 'postmark';
  if (has('type', 'typecode') || has('type', 'messageid', 'inactive')) return 'postmark';
  if (has('lastupdatetime') || has('reason', 'lastupdated') || has('reason', 'lastupdatedtime')) return 'ses';
  if (has('address') && (has('createdat') || has('code', 'error'))) return 'mailgun';
  if (has('reason', 'created') || has('ip', 'created') || has('status', 'reason')) return 'sendgrid';
  if (has('created') && columns.size === 2) return 'sendgrid';
  return null;
}

/** A name of a column without case and separators. */
export function foldedColumn(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_.\-()/"*:]/g, '');
}
