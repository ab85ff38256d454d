/** What a server says it can do: the keywords of its reply to EHLO (RFC 5321 §4.1.1.1). */
export interface Offers {
  /** RFC 2920. */
  pipelining: boolean;
  /** RFC 1870. */
  size: boolean;
  /** Largest message in octets; `Infinity` when it names none. */
  maxSize: number;
  /** RFC 3207. */
  startTls: boolean;
  /** RFC 6152. */
  eightBitMime: boolean;
  /** RFC 6531. */
  smtpUtf8: boolean;
  /** Mechanisms, upper case (RFC 4954). */
  auth: string[];
}

/** `lines` of the reply, the first of which is the greeting and no keyword. HELO's reply has none. */
export function parseOffers(lines: readonly string[]): Offers {
  const keywords = new Map<string, string>();
  for (const line of lines.slice(1)) {
    // `AUTH=PLAIN` is what some clients of the nineties needed; servers still say it.
    const [keyword = '', ...parameters] = line.trim().toUpperCase().split(/[ =]+/);
    keywords.set(keyword, `${keywords.get(keyword) ?? ''} ${parameters.join(' ')}`.trim());
  }
  const maxSize = Number(keywords.get('SIZE') ?? 0);
  return {
    pipelining: keywords.has('PIPELINING'),
    size: keywords.has('SIZE'),
    maxSize: maxSize > 0 ? maxSize : Number.POSITIVE_INFINITY,
    startTls: keywords.has('STARTTLS'),
    eightBitMime: keywords.has('8BITMIME'),
    smtpUtf8: keywords.has('SMTPUTF8'),
    auth: keywords.get('AUTH')?.split(' ') ?? [],
  };
}
