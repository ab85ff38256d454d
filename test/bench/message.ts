export const SUBJECT = 'Your order was shipped';

/** The HTML of an order confirmation with the compliance variables; ASCII, `bytes` long. */
export function htmlOf(bytes: number): string {
  const foot =
    '</table>\n<p>{{company_address_html}}</p>\n<p>{{unsubscribe_email_html}}</p>\n</body></html>\n';
  return HEAD + fill(row, bytes - HEAD.length - foot.length) + foot;
}

/** The load generator replaces it by the number of the message. */
export const NUMBER_MARK = '@number@@';

/** The values of `templateOf` for one message. */
export const TEMPLATE_VARIABLES = { name: 'Ada Lovelace', order: NUMBER_MARK };

/** `htmlOf` with two variables, as most programs send it: the same template for all messages. */
export function templateOf(bytes: number): string {
  return htmlOf(bytes).replace(GREETING, 'Dear {{name}}, order {{order}} will reach you in 3 days.');
}

/** `htmlOf` that differs in each message, as a program sends it that renders its mail. */
export function distinctHtmlOf(bytes: number): string {
  return htmlOf(bytes).replace(GREETING, `Dear Ada Lovelace, order ${NUMBER_MARK} will reach you soon.`);
}

/** A message with a text and an HTML part of about `bytes` on the wire; lines end in LF. */
export function relayableMessage(bytes: number): string {
  const head = [
    'From: Shop <news@sender.example>',
    'To: Reader <reader@recipient.example>',
    `Subject: ${SUBJECT}`,
    'Date: Tue, 06 Jan 2026 10:00:00 +0000',
    'Message-ID: <benchmark@sender.example>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary="part"\n\n',
  ].join('\n');
  const text = `--part\nContent-Type: text/plain\n\n${fill(line, bytes / 8)}`;
  const start = `${head}${text}\n--part\nContent-Type: text/html\n\n${HEAD}`;
  const end = '</table></body></html>\n--part--\n';
  const rest = bytes - start.length - end.length - linesIn(start + end);
  // On the wire each line has an additional CR.
  const rows = fill(row, rest);
  return start + fill(row, rest - linesIn(rows)) + end;
}

const STYLE = 'padding:8px 0;font-family:Helvetica,Arial,sans-serif;font-size:14px;color:#333333';
const GREETING = 'It will reach you within three days.';
const HEAD = `<!doctype html>
<html><body style="margin:0">
<h1 style="${STYLE}">${SUBJECT}</h1>
<p style="${STYLE}">${GREETING}
<a href="https://shop.example/orders/4711" style="${STYLE}">Track your parcel</a>.</p>
<table width="600" cellpadding="0" cellspacing="0" role="presentation">
`;

function row(number: number): string {
  return `<tr>
<td style="${STYLE};text-align:left">Article ${number}, blue, one piece</td>
<td style="${STYLE};text-align:right"><b>${number}.90</b></td>
</tr>
`;
}

function line(number: number): string {
  return `Article ${number}, blue, one piece ${number}.90\n`;
}

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}

/** As many pieces as fit, padded with spaces to `length`. */
function fill(piece: (number: number) => string, length: number): string {
  let text = '';
  for (let number = 1; ; number++) {
    const next = piece(number);
    if (text.length + next.length > length) return `${text.padEnd(Math.floor(length) - 1)}\n`;
    text += next;
  }
}
