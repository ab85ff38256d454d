import type { SmtpPhase } from '../../mail/reply.ts';
import { SmtpSessionError } from './errors.ts';
import type { ConnectionTerms, SessionRecord, TlsRecord, TlsResult } from './protocol.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import { insecure, type SessionResult } from './session-result.ts';
import { openWire, type Wire, type WireClient } from './socket.ts';
import {
  type Encrypt,
  type Encrypted,
  failureTypeOf,
  isOutdated,
  requiredByText,
  type TlsRequirement,
  TrustAnchorFound,
} from './tls.ts';

/** A connection whose server is ready for MAIL. */
export interface Connection {
  readonly wire: Wire;
  /** The host's name, and the address that the connection leads to. */
  readonly host: string;
  readonly address: string;
  /** `chunking` only if the job permits it. */
  readonly extensions: ServerExtensions;
  readonly tls: TlsRecord | null;
  /** What was required when it was opened. */
  readonly requirement: TlsRequirement;
  /** Transactions begun so far. */
  transactions: number;
  /** The last transaction has not ended, or not at every server: RSET must precede the next. */
  unfinished: boolean;
  /** When the server accepted the message of the last transaction (clock of the deadlines); null: it did not. */
  acceptedAt: number | null;
}

/** The record of a session that begins at `now` (epoch ms). */
export function newRecord(host: string, address: string, port: number, now: number): SessionRecord {
  return {
    host,
    address,
    port,
    localAddress: null,
    tls: null,
    phase: 'connect',
    reply: null,
    error: null,
    startedAt: now,
    endedAt: now,
  };
}

/** What a job requires of a new connection. `plain`: TLS is not tried, as the handshake failed before and plain text is permitted. */
export type NewConnection = ConnectionTerms & { requirement: TlsRequirement; plain: boolean };

/** What a connection needs of the client. */
interface ConnectionClient extends WireClient {
  encrypt: Encrypt;
}

/**
 * Opens a connection to `record.host` at `record.address` up to the point where MAIL can be sent: greeting, EHLO,
 * STARTTLS, AUTH. Returns the result when the server or this side refuses; throws `SmtpSessionError`. Updates `record`.
 * No wait ends after `dueAt` (clock of the deadlines).
 */
export async function openSmtpConnection(
  ...args: Parameters<typeof openOnce>
): Promise<Connection | SessionResult> {
  try {
    return await openOnce(...args);
  } catch (error) {
    if (!(error instanceof TrustAnchorFound)) throw error;
    try {
      return await openOnce(...args);
    } catch (again) {
      // The server changes its anchor with each connection.
      if (again instanceof TrustAnchorFound)
        throw new SmtpSessionError(
          'starttls',
          'the server presents a certificate of another issuer on each connection',
        );
      throw again;
    }
  }
}

async function openOnce(
  record: SessionRecord,
  terms: NewConnection,
  dueAt: number,
  client: ConnectionClient,
): Promise<Connection | SessionResult> {
  const { address: host, port } = record;
  const { proxy } = terms.egress;
  const localAddress = localAddressFor(host, terms.egress);
  const wire = await openWire({ host, port, localAddress, proxy }, dueAt, client);
  record.localAddress = wire.localAddress;
  try {
    return await negotiate(wire, record, terms, client);
  } catch (error) {
    wire.close('the session could not begin');
    throw error;
  }
}

/** The commands up to the point where MAIL can be sent. When it throws, the caller closes the wire. */
async function negotiate(
  wire: Wire,
  record: SessionRecord,
  terms: NewConnection,
  client: ConnectionClient,
): Promise<Connection | SessionResult> {
  const { timeouts } = client;
  const { requirement } = terms;
  const { host, address, port } = record;
  const refused = (outcome: SessionResult) => {
    wire.quit();
    return outcome;
  };
  const command: SendCommand = (phase: SmtpPhase, line) => {
    wire.write(`${line}\r\n`);
    return wire.next(phase, timeouts.command);
  };

  const greeting = await wire.next('greeting', timeouts.greeting);
  if (!isOk(greeting)) return refused(answered('greeting', greeting));
  let hello = await sendEhlo(command, terms.egress.hostname);
  if (!isOk(hello)) return refused(answered('ehlo', hello));
  let extensions = parseExtensions(hello.lines);

  if (requirement.mode !== 'none' && !terms.plain) {
    const reply = extensions.startTls ? await command('starttls', 'STARTTLS') : null;
    if (reply && isOk(reply)) {
      const encrypted = await client.encrypt(wire, host, port, requirement);
      record.tls = encrypted.record;
      record.tlsResult = tlsResultOf(encrypted, requirement);
      // RFC 3207 §4.2: replies from before the handshake are void.
      hello = await sendEhlo(command, terms.egress.hostname);
      if (!isOk(hello)) return refused(answered('ehlo', hello));
      extensions = parseExtensions(hello.lines);
    } else {
      const reason = reply
        ? `refuses STARTTLS: ${reply.code} ${replyOf(reply).text}`
        : 'does not offer STARTTLS';
      record.tlsResult = { failure: 'starttls-not-supported', reason };
      if (requirement.mode !== 'opportunistic')
        return refused(insecure('starttls', `${host} ${reason}${requiredByText(requirement)}`));
    }
  }

  if (terms.auth) {
    const reason = passwordObstacle(record, terms.auth);
    if (reason !== null) return refused(insecure('auth', `no password is sent to ${host}: ${reason}`));
    const login = await authenticate(command, extensions, terms.auth);
    if (login.code !== 235) return refused(answered('auth', login));
  }
  return {
    wire,
    host,
    address,
    extensions: { ...extensions, chunking: extensions.chunking && terms.chunking },
    tls: record.tls,
    requirement,
    transactions: 0,
    unfinished: false,
    acceptedAt: null,
  };
}

/** What an MTA-STS policy in mode testing would have refused is a failure in the report (RFC 8461 §5). */
function tlsResultOf({ certificateFault }: Encrypted, { policy }: TlsRequirement): TlsResult {
  const success = { failure: null, reason: '' };
  if (policy?.kind !== 'mta-sts') return success;
  if (policy.fault !== undefined) return { failure: policy.fault.type, reason: policy.fault.text };
  if (certificateFault === '') return success;
  return { failure: failureTypeOf(certificateFault), reason: certificateFault };
}

/** Sends a command and resolves with its reply. */
type SendCommand = (phase: SmtpPhase, line: string) => Promise<WireReply>;

/** Sends EHLO, then HELO if the server does not know EHLO (RFC 5321 §3.2). */
async function sendEhlo(command: SendCommand, hostname: string): Promise<WireReply> {
  const hello = await command('ehlo', `EHLO ${hostname}`);
  if (hello.code < 500) return hello;
  let plain: WireReply;
  try {
    plain = await command('ehlo', `HELO ${hostname}`);
  } catch (error) {
    // The server refuses this client, such as with a blocklist, and closes the connection: its reply is the reason.
    if (error instanceof SmtpSessionError && error.reply === null) return hello;
    throw error;
  }
  // The reply to HELO lists no extensions (§4.1.1.1).
  return isOk(plain) ? { code: plain.code, lines: plain.lines.slice(0, 1) } : plain;
}

/** Why a password must not be sent over this connection; null: it may be sent. */
function passwordObstacle(
  { address, tls }: Pick<SessionRecord, 'address' | 'tls'>,
  { allowUnverified }: Auth,
): string | null {
  if (tls === null) return allowUnverified && isLoopback(address) ? null : 'the connection is not encrypted';
  if (allowUnverified) return null;
  if (isOutdated(tls)) return `${tls.protocol} is not secure`;
  return tls.verified ? null : 'its certificate was not verified';
}

type Auth = NonNullable<ConnectionTerms['auth']>;

/** RFC 4954 with PLAIN (RFC 4616), else LOGIN, which no RFC defines and many servers support. */
async function authenticate(
  command: SendCommand,
  extensions: ServerExtensions,
  { user, password }: Auth,
): Promise<WireReply> {
  const plain = base64(`\0${user}\0${password}`);
  // Replies are read as Latin-1.
  const raw = Buffer.from(password).toString('latin1');
  const secrets = [plain, base64(password), raw].filter((secret) => secret !== '');
  if (extensions.auth.includes('PLAIN'))
    return withoutSecrets(await command('auth', `AUTH PLAIN ${plain}`), secrets);
  if (!extensions.auth.includes('LOGIN'))
    throw new SmtpSessionError('auth', 'server offers neither AUTH PLAIN nor LOGIN');
  let reply = await command('auth', 'AUTH LOGIN');
  for (const answer of [user, password]) {
    if (reply.code === 334) reply = await command('auth', base64(answer));
  }
  return withoutSecrets(reply, secrets);
}

/** Replies are stored for the account, and some servers repeat the command that they refuse. */
function withoutSecrets({ code, lines }: WireReply, secrets: readonly string[]): WireReply {
  const hide = (line: string) => secrets.reduce((text, secret) => text.replaceAll(secret, '***'), line);
  return { code, lines: lines.map(hide) };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/**
 * The source address: `address6` for IPv6; `address` for IPv4, or undefined: the system chooses. The addresses of a
 * proxy are not those of this machine.
 */
function localAddressFor(address: string, egress: ConnectionTerms['egress']): string | undefined {
  if (egress.proxy !== undefined) return undefined;
  return address.includes(':') ? egress.address6 : egress.address;
}

/**
 * Whether a target address of a job, in the form of the system, is a loopback address. An IPv4-mapped one does not count:
 * a password is sent without encryption only where no doubt is possible.
 */
function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

/** Whether the reply is positive (2xx). */
export function isOk(reply: WireReply): boolean {
  return reply.code < 300;
}

function answered(phase: SmtpPhase, reply: WireReply): SessionResult {
  if (reply.code < 400)
    throw new SmtpSessionError(phase, `unexpected reply: ${reply.code} ${replyOf(reply).text}`);
  return { kind: 'replied', phase, reply: replyOf(reply) };
}

export type ServerExtensions = ReturnType<typeof parseExtensions>;

/**
 * The extensions that a server supports: the keywords of its reply to EHLO (RFC 5321 §4.1.1.1). The first of the lines is
 * the greeting, not a keyword. The reply to HELO has no others.
 */
export function parseExtensions(lines: readonly string[]) {
  const keywords = new Map<string, string>();
  for (const line of lines.slice(1)) {
    // `AUTH=PLAIN` is an obsolete form that servers still send.
    const [keyword = '', ...parameters] = line.trim().toUpperCase().split(/[ =]+/);
    keywords.set(keyword, `${keywords.get(keyword) ?? ''} ${parameters.join(' ')}`.trim());
  }
  const maxSize = Number(keywords.get('SIZE') ?? 0);
  return {
    /** RFC 2920. */
    pipelining: keywords.has('PIPELINING'),
    /** RFC 3030: BDAT. */
    chunking: keywords.has('CHUNKING'),
    /** RFC 1870. */
    size: keywords.has('SIZE'),
    /** Largest message in bytes; `Infinity` when the server names no limit. */
    maxSize: maxSize > 0 ? maxSize : Number.POSITIVE_INFINITY,
    /** RFC 3207. */
    startTls: keywords.has('STARTTLS'),
    /** RFC 6152. */
    eightBitMime: keywords.has('8BITMIME'),
    /** RFC 6531. */
    smtpUtf8: keywords.has('SMTPUTF8'),
    /** Mechanisms, upper case (RFC 4954). */
    auth: keywords.get('AUTH')?.split(' ') ?? [],
  };
}
