import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';
import { type Answer, createVoice } from './smtp-sink-voice.ts';

/**
 * One connection to the sink: an SMTP server (RFC 5321) that answers what its script says. It takes pipelined
 * commands, and writes the replies to those that came together in one go, as real servers do.
 */
export type SinkStage =
  | 'greeting'
  | 'ehlo'
  | 'helo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'dot'
  | 'rset'
  | 'quit';

/** `undefined` = what a willing server answers. `argument`: the address at MAIL and RCPT, else the line. */
export type Script = Answer | ((session: SinkSession, argument: string) => Answer | undefined);

/** What is known about a connection; grows while it lasts. */
export interface SinkSession {
  /** 1 for the sink's first connection. */
  readonly number: number;
  readonly remoteAddress: string;
  /** Every line received outside the messages; empty when only counting. */
  readonly commands: string[];
  hello: string;
  /** `user:password`. */
  login: string;
  tls: { protocol: string; servername: string | null; resumed: boolean } | null;
  from: string;
  to: string[];
  /** Messages taken. */
  messages: number;
  /** Commands that came in one packet with the one before them. */
  pipelined: number;
  closed: boolean;
}

export interface SinkMessage {
  from: string;
  to: string[];
  /** MAIL's parameters as they came, `SIZE=123 SMTPUTF8`. */
  parameters: string;
  /** Octets as latin1, dots undone, up to and with the last CRLF; as they came when only counting. */
  raw: string;
  tls: SinkSession['tls'];
  connection: number;
  remoteAddress: string;
}

export interface SessionSettings {
  keywords: string[];
  script: Partial<Record<SinkStage, Script>>;
  /** By recipient: a whole address, `local@` or `@domain`. */
  recipients: Record<string, Script>;
  /** Offers STARTTLS; the words say what follows its 220 instead of a handshake. */
  tls: Certificate | 'garbage' | 'drop' | 'silent' | null;
  /** In the middle of a message, once so many octets of it are there. */
  body: { afterOctets: number; answer: Answer } | null;
  /** How fast message data is read; 0 = as fast as it comes. */
  bodyBytesPerSecond: number;
  /** Keeps neither messages nor commands. */
  countOnly: boolean;
  onMessage: (message: SinkMessage) => void;
}

interface Incoming {
  parts: string[];
  octets: number;
  /** The last four octets, in case the end is cut across two packets. */
  tail: string;
}

export function runSession(accepted: Socket, session: SinkSession, settings: SessionSettings): void {
  const voice = createVoice(accepted, work);
  let socket = accepted;
  let input = '';
  let parameters = '';
  let logsIn = false;
  /** MAIL was taken. */
  let begun = false;
  /** The message being received; null = commands. */
  let incoming: Incoming | null = null;

  const answer = (stage: SinkStage, argument: string, usual: Answer, then?: (code: number) => void) => {
    const script =
      (stage === 'rcpt' && forRecipient(settings.recipients, argument)) || settings.script[stage];
    voice.perform((typeof script === 'function' ? script(session, argument) : script) ?? usual, then);
  };
  const newTransaction = () => {
    begun = false;
    session.from = '';
    session.to = [];
  };

  const verbs: Record<string, (line: string) => void> = {
    EHLO: (line) => hello('ehlo', line.slice(5)),
    HELO: (line) => hello('helo', line.slice(5)),
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
          if (code === 354) incoming = { parts: [], octets: 0, tail: '\r\n' };
        },
      ),
    STAR: (line) => answer('starttls', line, '220 2.0.0 ready for TLS', startTls),
    AUTH: logIn,
    RSET: (line) => answer('rset', line, '250 2.0.0 reset', newTransaction),
    QUIT: (line) => answer('quit', line, { reply: '221 2.0.0 bye', close: true }),
  };

  function hello(stage: 'ehlo' | 'helo', name: string): void {
    const offersTls = settings.tls !== null && session.tls === null;
    const lines = ['sink greets you', ...settings.keywords, ...(offersTls ? ['STARTTLS'] : [])];
    const usual = lines.map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`);
    answer(stage, name, stage === 'helo' ? '250 sink' : usual, () => {
      session.hello = name;
      newTransaction();
    });
  }

  /** PLAIN in one line, LOGIN in three. */
  function logIn(line: string): void {
    const [verb, mechanism, initial] = line.split(' ');
    if (verb === 'AUTH' && mechanism === 'PLAIN') {
      const [, user = '', password = ''] = decoded(initial).split('\0');
      session.login = `${user}:${password}`;
    } else if (verb !== 'AUTH') session.login += `${session.login === '' ? '' : ':'}${decoded(verb)}`;
    const wantsMore = mechanism === 'LOGIN' || (verb !== 'AUTH' && !session.login.includes(':'));
    answer('auth', line, wantsMore ? '334 VXNlcm5hbWU6' : '235 2.7.0 welcome', (code) => {
      logsIn = code === 334;
    });
  }

  function startTls(code: number): void {
    if (code !== 220) return;
    voice.flush();
    // What was pipelined behind STARTTLS is thrown away (RFC 3207 §4.2).
    input = '';
    const { tls } = settings;
    if (tls === 'garbage') {
      voice.deafen();
      const plain = socket;
      plain.once('data', () => plain.write('this is no handshake\r\n'.repeat(20)));
    } else if (tls === 'drop') socket.destroy();
    else if (tls === 'silent' || tls === null) voice.deafen();
    else encrypt(tls);
  }

  function encrypt(certificate: Certificate): void {
    socket.removeAllListeners('data');
    const encrypted = new TLSSocket(socket, {
      isServer: true,
      secureContext: contextOf(certificate),
    });
    encrypted.on('secure', () => {
      session.tls = {
        protocol: encrypted.getProtocol() ?? '',
        // Node keeps the name that the client asked for here; its types do not say so.
        servername: Reflect.get(encrypted, 'servername') || null,
        resumed: encrypted.isSessionReused(),
      };
      newTransaction();
    });
    socket = encrypted;
    voice.moveTo(encrypted);
    attach();
  }

  /** Takes message data from the input. */
  function receive(message: Incoming): void {
    const seen = message.tail + input;
    const end = seen.indexOf('\r\n.\r\n');
    const upTo = end === -1 ? input.length : end + 5 - message.tail.length;
    message.parts.push(input.slice(0, upTo));
    message.octets += upTo;
    message.tail = seen.slice(-4);
    input = input.slice(upTo);
    const { body } = settings;
    if (body && message.octets >= body.afterOctets) {
      settings.body = null;
      voice.perform(body.answer);
    }
    if (end !== -1 && !voice.deaf()) {
      incoming = null;
      answer('dot', '', '250 2.0.0 taken', (code) => taken(code, message.parts.join('')));
    }
  }

  function taken(code: number, data: string): void {
    const { from, to, tls, number, remoteAddress } = session;
    newTransaction();
    if (code !== 250) return;
    session.messages++;
    const raw = settings.countOnly ? data : unstuffed(data);
    settings.onMessage({ from, to, parameters, raw, tls, connection: number, remoteAddress });
  }

  function work(): void {
    let lines = 0;
    while (input !== '' && !voice.busy() && !voice.deaf()) {
      if (incoming) {
        receive(incoming);
        continue;
      }
      const end = input.indexOf('\n');
      if (end === -1) break;
      const line = input.slice(0, end).replace(/\r$/, '');
      input = input.slice(end + 1);
      if (lines++ > 0) session.pipelined++;
      if (!settings.countOnly) session.commands.push(line);
      const perform = logsIn ? logIn : verbs[line.slice(0, 4).toUpperCase()];
      if (perform) perform(line);
      else voice.perform('500 5.5.2 what was that?');
    }
    voice.flush();
  }

  function attach(): void {
    const own = socket;
    own.on('data', (chunk: Buffer) => {
      if (voice.deaf()) return;
      input += chunk.toString('latin1');
      const slow = incoming !== null && settings.bodyBytesPerSecond > 0;
      work();
      if (!slow) return;
      own.pause();
      setTimeout(() => own.resume(), (chunk.length * 1000) / settings.bodyBytesPerSecond);
    });
    own.on('error', () => own.destroy());
    own.on('close', () => {
      session.closed = true;
    });
  }

  attach();
  answer('greeting', '', '220 sink ESMTP');
  voice.flush();
}

/** One context a certificate: with a new one for each connection no TLS session could be resumed. */
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

function decoded(base64 = ''): string {
  return Buffer.from(base64, 'base64').toString();
}

/** `MAIL FROM:<a@b> SIZE=1` → `a@b`. */
function pathOf(line: string): string {
  return Buffer.from(line.slice(line.indexOf('<') + 1, line.lastIndexOf('>')), 'latin1').toString();
}

/** Without the final dot, and with the doubled ones undone (RFC 5321 §4.5.2). */
function unstuffed(data: string): string {
  const message = data.slice(0, -3);
  return (message.startsWith('.') ? message.slice(1) : message).replaceAll('\r\n.', '\r\n');
}
