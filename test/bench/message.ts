/** The message of the benchmark: an ordinary letter in HTML of a given size, and the like of it ready to relay. */

/** HTML of so many bytes, ASCII, with what the service asks of a transactional mail. */
export function htmlOf(bytes: number): string {
  const head = '<!doctype html>\n<html><body>\n';
  const foot = '<p>{{company_address_html}}</p>\n<p>{{unsubscribe_email_html}}</p>\n</body></html>\n';
  return head + filled(paragraph, bytes - head.length - foot.length) + foot;
}

/** A message of about so many octets on the wire, lines ended by LF: parts of text and HTML, as ours have. */
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
  const parts = [
    '--part\nContent-Type: text/plain\n\n',
    '\n--part\nContent-Type: text/html\n\n',
    '\n--part--\n',
  ];
  const rest = octets - head.length - parts.join('').length;
  // The CR of every line end is yet to come.
  const size = (share: number) => Math.floor(rest * share * (1 - 1 / AVERAGE_LINE));
  return `${head}${parts[0]}${filled(sentence, size(0.4))}${parts[1]}${filled(paragraph, size(0.6))}${parts[2]}`;
}

const AVERAGE_LINE = 75;
const SENTENCE = 'Your order has left our house today and will reach you within three days, number';

function sentence(number: number): string {
  return `${SENTENCE} ${number}\n`;
}

function paragraph(number: number): string {
  return `<p class="line">${SENTENCE}\n<a href="https://shop.example/orders/${number}">${number}</a>.</p>\n`;
}

/** Whole pieces, and words up to exactly `length`. */
function filled(piece: (number: number) => string, length: number): string {
  let text = '';
  for (let number = 1; ; number++) {
    const next = piece(number);
    if (text.length + next.length > length)
      return `${text}${'and so on\n'.repeat(20).slice(text.length - length)}`;
    text += next;
  }
}
