import type { SmtpPhase } from '../../mail/reply.ts';
import type { Encryption } from './encryption.ts';
import { type Offers, parseOffers } from './offers.ts';
import { insecure, type Outcome } from './outcome.ts';
import type { DeliveryJob, SessionRecord, TlsRecord } from './protocol.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import { SessionTrouble } from './trouble.ts';
import { openWire, type Wire, type WireNeeds } from './wire.ts';

/**
 * From nothing to a server that is ready for MAIL: connect, greeting, EHLO, STARTTLS, AUTH. It sends no
 * message and tries no second address: which one, and what next, is decided in attempt.ts.
 */
export interface Connection {
  readonly wire: Wire;
  /** The host's name, and the address it was reached at. */
  readonly host: string;
  readonly address: string;
  readonly offers: Offers;
  readonly tls: TlsRecord | null;
  /** Transactions begun on it. */
  transactions: number;
  /** A transaction was left unfinished: RSET comes first. */
  unfinished: boolean;
}

/** What a job asks of a connection. */
export type Terms = Pick<DeliveryJob, 'port' | 'tls' | 'auth' | 'egress'>;

export interface ConnectionNeeds extends WireNeeds {
  encryption: Encryption;
}

/**
 * Opens a connection to `record.host` at `record.address`, or says how it failed. Throws `SessionTrouble`.
 * `record` is filled in as things become known. No wait outlasts `dueAt` (deadlines' clock).
 */
export async function openConnection(
  record: SessionRecord,
  terms: Terms,
  dueAt: number,
  needs: ConnectionNeeds,
): Promise<Connection | Outcome> {
  const { limits } = needs;
  const localAddress = localAddressFor(record.address, terms.egress);
  const { host, address, port } = record;
  const wire = await openWire(
    { host: address, port, ...(localAddress ? { localAddress } : {}) },
    dueAt,
    needs,
  );
  record.localAddress = wire.localAddress;
  const refused = (outcome: Outcome) => {
    wire.quit();
    return outcome;
  };
  const ask = (stage: SmtpPhase, command: string) => {
    wire.write(`${command}\r\n`);
    return wire.next(stage, limits.command);
  };

  const greeting = await wire.next('greeting', limits.greeting);
  if (!isOk(greeting)) return refused(answered('greeting', greeting));
  let hello = await sayHello(ask, terms.egress.hostname);
  if (!isOk(hello)) return refused(answered('ehlo', hello));
  let offers = parseOffers(hello.lines);

  if (terms.tls !== 'none') {
    const go = offers.startTls ? await ask('starttls', 'STARTTLS') : null;
    if (go && isOk(go)) {
      record.tls = await needs.encryption.begin(wire, host, port, terms.tls);
      // RFC 3207 §4.2: nothing that was said before counts.
      hello = await sayHello(ask, terms.egress.hostname);
      if (!isOk(hello)) return refused(answered('ehlo', hello));
      offers = parseOffers(hello.lines);
    } else if (terms.tls !== 'opportunistic') {
      const why = go ? `refuses STARTTLS: ${go.code} ${replyOf(go).text}` : 'does not offer STARTTLS';
      return refused(insecure('starttls', `${host} ${why}`));
    }
  }

  if (terms.auth) {
    const unfit = whyNoPassword(record, terms.auth);
    if (unfit !== null) return refused(insecure('auth', `no password is sent to ${host}: ${unfit}`));
    const login = await logIn(ask, offers, terms.auth);
    if (login.code !== 235) return refused(answered('auth', login));
  }
  return { wire, host, address, offers, tls: record.tls, transactions: 0, unfinished: false };
}

type Ask = (stage: SmtpPhase, command: string) => Promise<WireReply>;

/** EHLO, and HELO where EHLO is not known (RFC 5321 §3.2). */
async function sayHello(ask: Ask, hostname: string): Promise<WireReply> {
  const hello = await ask('ehlo', `EHLO ${hostname}`);
  if (hello.code < 500) return hello;
  const plain = await ask('ehlo', `HELO ${hostname}`);
  // HELO's reply lists nothing, whatever it says (§4.1.1.1).
  return isOk(plain) ? { code: plain.code, lines: plain.lines.slice(0, 1) } : plain;
}

/** Why a password must not be sent over this connection; null when it may be. */
function whyNoPassword(
  { address, tls }: Pick<SessionRecord, 'address' | 'tls'>,
  { allowUnverified }: Auth,
): string | null {
  if (tls === null) return allowUnverified && isLoopback(address) ? null : 'the connection is not encrypted';
  return tls.verified || allowUnverified ? null : 'its certificate was not verified';
}

type Auth = NonNullable<Terms['auth']>;

/** RFC 4954 with PLAIN (RFC 4616), else LOGIN, which has no RFC but many servers. */
async function logIn(ask: Ask, offers: Offers, { user, password }: Auth): Promise<WireReply> {
  const plain = base64(`\0${user}\0${password}`);
  // Replies are read as latin1.
  const raw = Buffer.from(password).toString('latin1');
  const secrets = [plain, base64(password), raw].filter((secret) => secret !== '');
  if (offers.auth.includes('PLAIN')) return withoutSecrets(await ask('auth', `AUTH PLAIN ${plain}`), secrets);
  if (!offers.auth.includes('LOGIN'))
    throw new SessionTrouble('auth', 'server offers neither AUTH PLAIN nor LOGIN');
  let reply = await ask('auth', 'AUTH LOGIN');
  for (const answer of [user, password]) {
    if (reply.code === 334) reply = await ask('auth', base64(answer));
  }
  return withoutSecrets(reply, secrets);
}

/** Replies are kept on record for the account; some servers repeat the command that they refuse. */
function withoutSecrets({ code, lines }: WireReply, secrets: readonly string[]): WireReply {
  const hide = (line: string) => secrets.reduce((text, secret) => text.replaceAll(secret, '***'), line);
  return { code, lines: lines.map(hide) };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** IPv6 goes out from `address6` only; IPv4 from `address`, or wherever the system likes. */
function localAddressFor(address: string, egress: Terms['egress']): string | undefined {
  return address.includes(':') ? egress.address6 : egress.address;
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

export function isOk(reply: WireReply): boolean {
  return reply.code < 300;
}

function answered(stage: SmtpPhase, reply: WireReply): Outcome {
  if (reply.code < 400)
    throw new SessionTrouble(stage, `unexpected reply: ${reply.code} ${replyOf(reply).text}`);
  return { kind: 'answered', stage, reply: replyOf(reply) };
}
