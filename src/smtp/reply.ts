/**
 * A negative reply of one of our listeners. smtp-server takes an error and writes its code, then its text; it would derive
 * the enhanced code (RFC 3463) from the code alone, so both are passed as one.
 */
export class SmtpRejection extends Error {
  /** `550 5.7.1`. 421 is a number, for which smtp-server closes the connection; its enhanced code begins the message. */
  readonly responseCode: string | 421;

  constructor(code: number, enhanced: string, text: string) {
    super(code === 421 ? `${enhanced} ${text}` : text);
    this.responseCode = code === 421 ? 421 : `${code} ${enhanced}`;
  }
}

/** For a fault of this server: the client tries again later (RFC 5321 §4.2.1). */
export function tryLater(): SmtpRejection {
  return new SmtpRejection(451, '4.3.0', 'Local error in processing; please try again later');
}
