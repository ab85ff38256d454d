import type { SmtpReply } from '../../mail/reply.ts';

/**
 * An SMTP reply as received (RFC 5321 §4.2). Lines, number of lines and total size are bounded, so that no server can fill
 * the memory of a worker.
 */
export interface WireReply {
  code: number;
  /** Without the code and its separator; at least one line. */
  lines: string[];
}

/** The received bytes are not an SMTP reply; the connection is unusable. */
export class MalformedReply extends Error {}

/** §4.5.3.1.5 allows 512 bytes per line; some servers send longer ones. */
const MAX_LINE_LENGTH = 8 * 1024;
const MAX_LINES = 128;
const MAX_REPLY_LENGTH = 64 * 1024;

/** A bare LF also ends a line: a strict reader would only lose mail. */
export function createReplyReader() {
  let rest = '';
  let lines: string[] = [];
  /** Lines and characters of the reply so far, those that are ignored among them. */
  let count = 0;
  let total = 0;

  const clear = () => {
    lines = [];
    count = 0;
    total = 0;
  };

  const takeLine = (line: string): WireReply | null => {
    const code = codeOf(line);
    if (code === null && count === 0)
      throw new MalformedReply(`not an SMTP reply: ${printable(line).slice(0, 100)}`);
    count++;
    total += line.length;
    if (count > MAX_LINES) throw new MalformedReply(`a reply of more than ${MAX_LINES} lines`);
    if (total > MAX_REPLY_LENGTH) throw new MalformedReply(`a reply of more than ${MAX_REPLY_LENGTH} bytes`);
    // A line without a code within a reply is ignored, as in Postfix: some servers list extensions so.
    if (code === null) return null;
    lines.push(line.slice(4));
    if (line[3] === '-') return null;
    // If the codes of the lines differ, the last one counts, as in other clients.
    const reply = { code, lines };
    clear();
    return reply;
  };

  return {
    /** Adds received bytes (as Latin-1) and passes the replies that they complete to `take`. Throws `MalformedReply`. */
    push: (chunk: string, take: (reply: WireReply) => void): void => {
      rest = rest === '' ? chunk : rest + chunk;
      let start = 0;
      for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n', start)) {
        const line = rest.slice(start, rest[end - 1] === '\r' && end > start ? end - 1 : end);
        if (line.length > MAX_LINE_LENGTH)
          throw new MalformedReply(`a reply line of more than ${MAX_LINE_LENGTH} bytes`);
        start = end + 1;
        const reply = takeLine(line);
        if (reply) take(reply);
      }
      rest = rest.slice(start);
      if (rest.length > MAX_LINE_LENGTH)
        throw new MalformedReply(`a reply line of more than ${MAX_LINE_LENGTH} bytes`);
    },
    /** Drops an incomplete reply. */
    clear: (): void => {
      rest = '';
      clear();
    },
  };
}

function codeOf(line: string): number | null {
  const code = /^[2-5][0-9]{2}(?=[ -]|$)/.exec(line)?.[0];
  return code === undefined ? null : Number(code);
}

/** RFC 3463 §2; some appliances add `#` before it or a colon after it. */
const ENHANCED = /^#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[\s:,]+|$)/;
const MAX_TEXT_LENGTH = 2000;

/**
 * The reply as one text. The enhanced code is that of the first line that has one whose class agrees with the code
 * (RFC 2034 §4); servers repeat it on each line, and it is removed from each.
 */
export function replyOf({ code, lines }: WireReply): SmtpReply {
  let enhanced: string | null = null;
  const texts = lines.map((line) => {
    const found = ENHANCED.exec(line);
    if (found?.[1] === undefined || Number(found[1][0]) !== Math.trunc(code / 100)) return line.trim();
    enhanced ??= found[1];
    return found[1] === enhanced ? line.slice(found[0].length).trim() : line.trim();
  });
  return { code, enhanced, text: printable(texts.join(' ')).trim().slice(0, MAX_TEXT_LENGTH) };
}

/** Latin-1 bytes as text: decoded as UTF-8 (RFC 6531 §3.7.4.3), without control characters. */
function printable(bytes: string): string {
  const text = /[\u0080-\u00ff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
  return text.replace(/\p{Cc}+/gu, ' ');
}
