/**
 * An mbox file may hold several mails. Mail that came over SMTP is never one; files given to `bounce parse`
 * may be.
 */

/** The mails of a file that begins with an mbox separator line; any other file is one mail. */
export function splitMbox(file: Buffer, most: number): Buffer[] {
  if (file.subarray(0, 5).toString('latin1') !== 'From ') return [file];
  const mails: Buffer[] = [];
  let from = 0;
  for (
    let at = file.indexOf(SEPARATOR, 1);
    at >= 0 && mails.length < most - 1;
    at = file.indexOf(SEPARATOR, at + 1)
  ) {
    if (!isSeparator(file, at + 1)) continue;
    mails.push(file.subarray(from, at + 1));
    from = at + 1;
  }
  return [...mails, file.subarray(from)];
}

const SEPARATOR = '\nFrom ';

/** `From a@example.com Thu Apr 29 23:34:45 2015`: ends in the time and the year. */
function isSeparator(file: Buffer, at: number): boolean {
  const end = file.indexOf(0x0a, at);
  const line = file.subarray(at, Math.min(end < 0 ? file.length : end, at + 400)).toString('latin1');
  return /\d\d:\d\d:\d\d (?:[+-]\d{4} |[A-Z]{3,4} )?\d{4}\s*$/.test(line);
}
