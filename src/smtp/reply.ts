/**
 * A negative SMTP reply. The package behind the listeners takes an error, and writes its code, then its text; it
 * would choose the enhanced code by the code alone, so both are given as one.
 */
export class SmtpReply extends Error {
  /** `550 5.7.1`. 421 as a number, by which the package knows to hang up; its enhanced code begins the message. */
  readonly responseCode: string | 421;

  constructor(code: number, enhanced: string, text: string) {
    super(code === 421 ? `${enhanced} ${text}` : text);
    this.responseCode = code === 421 ? 421 : `${code} ${enhanced}`;
  }
}

/** For whatever went wrong on our side: the client is to come again (RFC 5321 §4.2.1). */
export function tryLater(): SmtpReply {
  return new SmtpReply(451, '4.3.0', 'This server has trouble of its own; please try again later');
}
