import { MINUTE, SECOND } from '../../core/clock.ts';

/**
 * How long a peer may take, in ms. The minimum waits of RFC 5321 §4.5.3.2 are kept where that section names
 * one; `connect`, `greeting`, `handshake` and `message` are ours, so that a dead or dribbling peer cannot hold
 * a slot. A limit runs from the moment the wait begins: bytes that trickle in do not renew it.
 */
export interface Limits {
  /** TCP connection. */
  connect: number;
  /** The 220 (§4.5.3.2.1 says 5 min; a server that lets one wait longer than a minute is passed over). */
  greeting: number;
  /** TLS handshake after STARTTLS. */
  handshake: number;
  /** Reply to EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET (§4.5.3.2.2, §4.5.3.2.3). */
  command: number;
  /** The 354 (§4.5.3.2.4). */
  data: number;
  /** The peer's taking one block of the message (§4.5.3.2.5). */
  block: number;
  /** Reply after the final dot (§4.5.3.2.6); giving up early makes duplicates. */
  dot: number;
  /** Everything that is done for one message, all hosts together. */
  message: number;
  /** Replies that no longer matter: those behind a verdict, and the 221. */
  courtesy: number;
  /** How often the limits are looked at: the precision of all the others. */
  tick: number;
}

export const STANDARD_LIMITS: Limits = {
  connect: 30 * SECOND,
  greeting: MINUTE,
  handshake: MINUTE,
  command: 5 * MINUTE,
  data: 2 * MINUTE,
  block: 3 * MINUTE,
  dot: 10 * MINUTE,
  message: 15 * MINUTE,
  courtesy: 10 * SECOND,
  tick: SECOND,
};
