/** The message of the benchmark: an order confirmation in HTML, of a given size, and the like of it to relay. */

/** HTML of so many bytes, ASCII, with what the service asks of a transactional mail. */
export function htmlOf(bytes: number): string {
  const foot =
    '</table>\n<p>{{company_address_html}}</p>\n<p>{{unsubscribe_email_html}}</p>\n</body></html>\n';
  return HEAD + filled(row, bytes - HEAD.length - foot.length) + foot;
}

/** A message of about so many octets on the wire, its lines ended by LF: parts of text and HTML, as ours have. */
export function relayableMessage(octets: number): string {
  const head = [
    'From: Shop <news@sender.example>',
    'To: Reader <reader@there.example>',
    'Subject: Your order has left our house',
    'Date: Tue, 06 Jan 2026 10:00:00 +0000',
    'Message-ID: <benchmark@sender.example>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary="part"\n\n',
  ].join('\n');
  const text = `--part\nContent-Type: text/plain\n\n${filled(line, octets / 8)}`;
  const start = `${head}${text}\n--part\nContent-Type: text/html\n\n${HEAD}`;
  const end = '</table></body></html>\n--part--\n';
  const rest = octets - start.length - end.length - linesIn(start + end);
  // What a line end needs besides on the wire, rows first.
  const rows = filled(row, rest);
  return start + filled(row, rest - linesIn(rows)) + end;
}

const STYLE = 'padding:8px 0;font-family:Helvetica,Arial,sans-serif;font-size:14px;color:#333333';
const HEAD = `<!doctype html>
<html><body style="margin:0">
<h1 style="${STYLE}">Your order has left our house</h1>
<p style="${STYLE}">It will reach you within three days.
<a href="https://shop.example/orders/4711" style="${STYLE}">See where it is</a>.</p>
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

/** Whole pieces, then blanks up to `length`. */
function filled(piece: (number: number) => string, length: number): string {
  let text = '';
  for (let number = 1; ; number++) {
    const next = piece(number);
    if (text.length + next.length > length) return `${text.padEnd(Math.floor(length) - 1)}\n`;
    text += next;
  }
}
