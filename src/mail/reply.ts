/** An SMTP reply (RFC 5321 §4.2). Code and enhanced code are one value: they are parsed and classified together. */
export interface SmtpReply {
  /** 200 to 599. */
  code: number;
  /** `5.1.1` (RFC 3463), null when the server sent none. */
  enhanced: string | null;
  /** All lines, without codes, joined by a space; at most 2,000 characters. */
  text: string;
}

/** The phase of a delivery attempt that a reply or an error belongs to; from `mail` on, the command. */
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
