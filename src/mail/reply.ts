/** One SMTP reply (RFC 5321 §4.2). Code and enhanced code are one value: they are read and judged together. */
export interface SmtpReply {
  /** 200 to 599. */
  code: number;
  /** `5.1.1` (RFC 3463), null when the server gave none. */
  enhanced: string | null;
  /** All lines, without codes, joined by a blank; at most 2,000 characters. */
  text: string;
}

/** Where in a session something happened. */
export type SmtpPhase =
  | 'dns'
  | 'connect'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'dot';
