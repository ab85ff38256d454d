/* How the sink reads lines and message data. */

export function decoded(base64 = ''): string {
  return Buffer.from(base64, 'base64').toString();
}

/** The first word in upper case; of a line that is not a command, at most 10 characters. */
export function verbOf(line: string): string {
  return (line.split(' ', 1)[0] ?? '').slice(0, 10).toUpperCase();
}

/** `MAIL FROM:<a@b> SIZE=1` → `a@b`. */
export function pathOf(line: string): string {
  return Buffer.from(line.slice(line.indexOf('<') + 1, line.lastIndexOf('>')), 'latin1').toString();
}

/** Without the final dot, and with doubled dots replaced by one (RFC 5321 §4.5.2). */
export function unstuffed(data: string): string {
  const message = data.slice(0, -3);
  return (message.startsWith('.') ? message.slice(1) : message).replaceAll('\r\n.', '\r\n');
}
