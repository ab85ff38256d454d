import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';
import { decoded, pathOf, unstuffed, verbOf } from './smtp-sink-lines.ts';
import { type Answer, createReplyWriter } from './smtp-sink-replies.ts';

/**
 * One connection to the sink: an SMTP server (RFC 5321) that replies as its script states. It supports pipelined commands
 * and sends the replies to commands of one packet in one write, as real servers do.
 */
export type SinkPhase =
  | 'greeting'
  | 'ehlo'
  | 'helo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'bdat'
  | 'dot'
  | 'rset'
  | 'quit';

/** Undefined: the positive reply. `argument`: the address at MAIL and RCPT, else the line. */
export type Script = Answer | ((session: SinkSession, argument: string) => Answer | undefined);

/** What is known about a connection so far. */
export interface SinkSession {
  /** 1 for the sink's first connection. */
  readonly number: number;
  readonly remoteAddress: string;
  /** All lines received outside of messages; empty with `countOnly`. */
  readonly commands: string[];
  /** The verbs of these lines, `.` for the end of a message or chunk, and `TLS` for a handshake; empty with `countOnly`. */
  readonly verbs: string[];
  hello: string;
  /** `user:password`. */
  login: string;
  tls: { protocol: string; servername: string | null; resumed: boolean } | null;
  from: string;
  to: string[];
  /** Messages accepted. */
  messages: number;
  /** Commands that arrived in one packet with the one before them. */
  pipelined: number;
  /** The client waits for a reply that never comes, or that never ends. */
  stalled: boolean;
  closed: boolean;
}

export interface SinkMessage {
  from: string;
  to: string[];
  /** The parameters of MAIL as received: `SIZE=123 SMTPUTF8`. */
  parameters: string;
  /** Bytes as Latin-1, doubled dots removed, up to and including the last CRLF; as received with `countOnly`. */
  raw: string;
  tls: SinkSession['tls'];
  connection: number;
  remoteAddress: string;
}

export interface SinkBehavior {
  keywords: string[];
  script: Partial<Record<SinkPhase, Script>>;
  /** By recipient: a whole address, `local@` or `@domain`. */
  recipients: Record<string, Script>;
  /** Offers STARTTLS; a word names what follows the 220 instead of a handshake. */
  tls: Certificate | 'garbage' | 'drop' | 'silent' | null;
  /**
   * `received`: BDAT is supported. `executed-if-refused`: a chunk without a recipient is not discarded, as RFC 3030 §2 requires,
   * but read as commands. `executed`: BDAT is unknown, and every chunk is read as commands.
   */
  chunks: 'received' | 'executed-if-refused' | 'executed';
  /** Sent in the middle of a message, once `afterBytes` bytes of it were received. */
  body: { afterBytes: number; answer: Answer } | null;
  /** How fast message data is read; 0: as fast as it arrives. */
  bodyBytesPerSecond: number;
  /** Counts messages and stores neither messages nor commands. */
  countOnly: boolean;
  onMessage: (message: SinkMessage) => void;
}

interface Incoming {
  parts: string[];
  bytes: number;
  /** The last four bytes: the end may be split across two packets. */
  tail: string;
}

const UNKNOWN_COMMAND = '500 5.5.2 unknown command';
const NO_RECIPIENT = '503 5.5.1 no valid recipients';

export function runSession(accepted: Socket, session: SinkSession, behavior: SinkBehavior): void {
  const replies = createReplyWriter(accepted, work);
  let socket = accepted;
  let input = '';
  let parameters = '';
  let authenticating = false;
  /** MAIL was accepted. */
  let begun = false;
  /** The message that is being received; null: commands. */
  let incoming: Incoming | null = null;
  /** Bytes of the chunk of BDAT that are missing; 0: none is being received. Messages have one chunk. */
  let missing = 0;
  let chunk = '';

  const answer = (phase: SinkPhase, argument: string, usual: Answer, then?: (code: number) => void) => {
    const script =
      (phase === 'rcpt' && forRecipient(behavior.recipients, argument)) || behavior.script[phase];
    replies.write((typeof script === 'function' ? script(session, argument) : script) ?? usual, then);
  };
  const newTransaction = () => {
    begun = false;
    session.from = '';
    session.to = [];
  };

  const verbs: Record<string, (line: string) => void> = {
    EHLO: (line) => greet('ehlo', line.slice(5)),
    HELO: (line) => greet('helo', line.slice(5)),
    MAIL: (line) =>
      answer('mail', pathOf(line), '250 2.1.0 sender ok', (code) => {
        if (!(code < 300)) return;
        newTransaction();
        begun = true;
        session.from = pathOf(line);
        parameters = line.slice(line.lastIndexOf('>') + 1).trim();
      }),
    RCPT: (line) =>
      answer('rcpt', pathOf(line), begun ? '250 2.1.5 recipient ok' : '503 5.5.1 MAIL first', (code) => {
        if (code < 300) session.to.push(pathOf(line));
      }),
    DATA: (line) =>
      answer(
        'data',
        line,
        session.to.length > 0 ? '354 go ahead' : '554 5.5.1 no valid recipients',
        (code) => {
          if (code === 354) incoming = { parts: [], bytes: 0, tail: '\r\n' };
        },
      ),
    BDAT: (line) => {
      if (behavior.chunks === 'executed') replies.write(UNKNOWN_COMMAND);
      else if (session.to.length === 0 && behavior.chunks !== 'received') replies.write(NO_RECIPIENT);
      else missing = Number(line.split(' ')[1]);
    },
    STAR: (line) => answer('starttls', line, '220 2.0.0 ready for TLS', startTls),
    AUTH: authenticate,
    RSET: (line) => answer('rset', line, '250 2.0.0 reset', newTransaction),
    QUIT: (line) => answer('quit', line, { reply: '221 2.0.0 bye', close: true }),
  };

  function greet(phase: 'ehlo' | 'helo', name: string): void {
    const offersTls = behavior.tls !== null && session.tls === null;
    const lines = ['sink greets you', ...behavior.keywords, ...(offersTls ? ['STARTTLS'] : [])];
    const usual = lines.map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`);
    answer(phase, name, phase === 'helo' ? '250 sink' : usual, () => {
      session.hello = name;
      newTransaction();
    });
  }

  /** PLAIN in one line, LOGIN in three. */
  function authenticate(line: string): void {
    const [verb, mechanism, initial] = line.split(' ');
    if (verb === 'AUTH' && mechanism === 'PLAIN') {
      const [, user = '', password = ''] = decoded(initial).split('\0');
      session.login = `${user}:${password}`;
    } else if (verb !== 'AUTH') session.login += `${session.login === '' ? '' : ':'}${decoded(verb)}`;
    const wantsMore = mechanism === 'LOGIN' || (verb !== 'AUTH' && !session.login.includes(':'));
    answer('auth', line, wantsMore ? '334 VXNlcm5hbWU6' : '235 2.7.0 welcome', (code) => {
      authenticating = code === 334;
    });
  }

  function startTls(code: number): void {
    if (code !== 220) return;
    replies.flush();
    // Input that was pipelined behind STARTTLS is discarded (RFC 3207 §4.2).
    input = '';
    const { tls } = behavior;
    const plain = socket;
    if (tls === 'garbage') {
      replies.silence();
      plain.once('data', () => plain.write('this is no handshake\r\n'.repeat(20)));
    } else if (tls === 'drop') {
      replies.silence();
      // With unread data the kernel would reset the connection instead of closing it.
      plain.once('data', () => plain.destroy());
    } else if (tls === 'silent' || tls === null) replies.silence();
    else encrypt(tls);
  }

  function encrypt(certificate: Certificate): void {
    socket.removeAllListeners('data');
    const encrypted = new TLSSocket(socket, {
      isServer: true,
      secureContext: contextOf(certificate),
    });
    encrypted.on('secure', () => {
      session.verbs.push('TLS');
      session.tls = {
        protocol: encrypted.getProtocol() ?? '',
        // Node stores the requested name here; its types do not declare it.
        servername: Reflect.get(encrypted, 'servername') || null,
        resumed: encrypted.isSessionReused(),
      };
      newTransaction();
    });
    socket = encrypted;
    replies.moveTo(encrypted);
    attach();
  }

  /** Removes message data from the input. */
  function receive(message: Incoming): void {
    const seen = message.tail + input;
    const end = seen.indexOf('\r\n.\r\n');
    const upTo = end === -1 ? input.length : end + 5 - message.tail.length;
    message.parts.push(input.slice(0, upTo));
    message.bytes += upTo;
    message.tail = seen.slice(-4);
    input = input.slice(upTo);
    const { body } = behavior;
    if (body && message.bytes >= body.afterBytes) {
      behavior.body = null;
      replies.write(body.answer);
    }
    if (end !== -1 && !replies.isSilent()) {
      incoming = null;
      if (!behavior.countOnly) session.verbs.push('.');
      answer('dot', '', '250 2.0.0 taken', (code) => {
        const data = message.parts.join('');
        accept(code, behavior.countOnly ? data : unstuffed(data));
      });
    }
  }

  /** Removes bytes of a chunk from the input. */
  function receiveChunk(): void {
    const part = input.slice(0, missing);
    chunk += part;
    missing -= part.length;
    input = input.slice(part.length);
    if (missing > 0) return;
    const raw = chunk;
    chunk = '';
    if (!behavior.countOnly) session.verbs.push('.');
    if (session.to.length === 0) replies.write(NO_RECIPIENT);
    else
      answer('bdat' in behavior.script ? 'bdat' : 'dot', '', '250 2.0.0 taken', (code) => accept(code, raw));
  }

  function accept(code: number, raw: string): void {
    const { from, to, tls, number, remoteAddress } = session;
    newTransaction();
    if (code !== 250) return;
    session.messages++;
    behavior.onMessage({ from, to, parameters, raw, tls, connection: number, remoteAddress });
  }

  function work(): void {
    let lines = 0;
    while (input !== '' && !replies.busy() && !replies.isSilent()) {
      if (incoming) {
        receive(incoming);
        continue;
      }
      if (missing > 0) {
        receiveChunk();
        continue;
      }
      const end = input.indexOf('\n');
      if (end === -1) break;
      const line = input.slice(0, end).replace(/\r$/, '');
      input = input.slice(end + 1);
      if (lines++ > 0) session.pipelined++;
      if (!behavior.countOnly) {
        session.commands.push(line);
        session.verbs.push(authenticating ? '*' : verbOf(line));
      }
      const perform = authenticating ? authenticate : verbs[line.slice(0, 4).toUpperCase()];
      if (perform) perform(line);
      else replies.write(UNKNOWN_COMMAND);
    }
    replies.flush();
    session.stalled = replies.isStalled();
  }

  function attach(): void {
    const own = socket;
    own.on('data', (chunk: Buffer) => {
      if (replies.isSilent()) return;
      input += chunk.toString('latin1');
      const slow = incoming !== null && behavior.bodyBytesPerSecond > 0;
      work();
      if (!slow) return;
      own.pause();
      setTimeout(() => own.resume(), (chunk.length * 1000) / behavior.bodyBytesPerSecond);
    });
    own.on('error', () => own.destroy());
    own.on('close', () => {
      session.closed = true;
    });
  }

  attach();
  answer('greeting', '', '220 sink ESMTP');
  replies.flush();
  session.stalled = replies.isStalled();
}

/** One context for each certificate: with a new one for each connection no TLS session could be resumed. */
const contexts = new WeakMap<Certificate, SecureContext>();

function contextOf(certificate: Certificate): SecureContext {
  const context = contexts.get(certificate) ?? createSecureContext(certificate);
  contexts.set(certificate, context);
  return context;
}

function forRecipient(scripts: Record<string, Script>, address: string): Script | undefined {
  const at = address.lastIndexOf('@');
  return scripts[address] ?? scripts[address.slice(0, at + 1)] ?? scripts[address.slice(at)];
}
