import { createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { parseArgs } from 'node:util';
import { createAuthority } from '../support/certificates.ts';
import { epochNow, serveParent } from './benchmark-process.ts';

/**
 * The receiving server of benchmarks, a separate process: accepts every message, stores none, and counts them. It offers
 * PIPELINING and CHUNKING, as Postfix, Exim and the large providers do. It
 * processes raw bytes, so that it needs little CPU time; tests use the programmable `smtp-sink.ts` instead.
 *
 * `--tls` offers STARTTLS. `--host` may be repeated; all addresses listen on one port, as MX hosts do. Every request is
 * answered with ReceiverCounts.
 */
export interface ReceiverCounts {
  port: number;
  /** Since the start, or the last request with `reset`. */
  messages: number;
  /** Distinct recipients; no two messages of a run have the same. */
  recipients: number;
  /** Distinct X-Postrider-Id fields. */
  ids: number;
  /** Messages with a DKIM signature. */
  signed: number;
  /** Messages that arrived over TLS. */
  encrypted: number;
  /** Total of all messages on the wire. */
  bytes: number;
  /** Epoch ms of the first and the last 250 after DATA; 0: none yet. */
  firstAt: number;
  lastAt: number;
  connections: number;
  /** Only when requested: epoch ms of the 250 by recipient, for addresses that begin with `timed`. */
  arrivals?: [recipient: string, at: number][];
}

export interface ReceiverRequest {
  /** Resets all counts after the response. */
  reset?: boolean;
  arrivals?: boolean;
}

const EMPTY = Buffer.alloc(0);
const END = Buffer.from('\r\n.\r\n');
const ID_FIELD = Buffer.from('\r\nX-Postrider-Id:');
const SIGNATURE = Buffer.from('DKIM-Signature:');
const HEADER_END = Buffer.from('\r\n\r\n');
/** Replies to commands. */
const REPLIES: Record<string, string> = {
  EHLO: '250-CHUNKING\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n',
  HELO: '250 sink\r\n',
  MAIL: '250 2.1.0 sender ok\r\n',
  RCPT: '250 2.1.5 recipient ok\r\n',
  DATA: '354 go ahead\r\n',
  RSET: '250 2.0.0 reset\r\n',
  NOOP: '250 2.0.0 ok\r\n',
  BDAT: '250 2.0.0 OK\r\n',
  QUIT: '221 2.0.0 bye\r\n',
};

const { values } = parseArgs({
  options: {
    host: { type: 'string', multiple: true, default: ['127.0.0.1'] },
    tls: { type: 'boolean', default: false },
  },
});
const secureContext = values.tls ? createSecureContext(createAuthority().issue(['sink.example'])) : null;

const NOTHING = { messages: 0, signed: 0, encrypted: 0, bytes: 0, firstAt: 0, lastAt: 0, connections: 0 };
let counts = { ...NOTHING };
const recipients = new Set<string>();
const ids = new Set<string>();
const arrivals = new Map<string, number>();
let port = 0;
for (const host of values.host) port = await listen(createServer({ noDelay: true }, serve), host, port);

serveParent((message): ReceiverCounts => {
  // Sound: `startReceiver` sends this type.
  const { reset = false, arrivals: withArrivals = false } = message as ReceiverRequest;
  const response = {
    port,
    ...counts,
    recipients: recipients.size,
    ids: ids.size,
    ...(withArrivals ? { arrivals: [...arrivals] } : {}),
  };
  if (reset) {
    counts = { ...NOTHING };
    recipients.clear();
    ids.clear();
    arrivals.clear();
  }
  return response;
});

function serve(plain: Socket): void {
  counts.connections++;
  let socket: Socket = plain;
  let commands = '';
  /** The message being received: its header until it is complete, and the last bytes; null between messages. */
  let message: { header: Buffer | null; tail: Buffer } | null = null;
  /** Bytes of the chunk of BDAT that are missing; 0: none is being received. */
  let missing = 0;
  /** Whether the chunk is the last one of the message. */
  let last = false;
  /** What the next bytes belong to; null: commands. */
  let receiving: 'data' | 'chunk' | null = null;
  let recipient = '';
  let quit = false;

  const readHeader = (bytes: Buffer, into: NonNullable<typeof message>) => {
    if (into.header === null) return;
    const header = into.header.length === 0 ? bytes : Buffer.concat([into.header, bytes]);
    const complete = header.includes(HEADER_END);
    if (complete) countHeader(header);
    into.header = complete ? null : header;
  };
  const accept = () => {
    message = null;
    receiving = null;
    counts.messages++;
    if (socket !== plain) counts.encrypted++;
    recipients.add(recipient);
    counts.lastAt = epochNow();
    counts.firstAt ||= counts.lastAt;
    if (recipient.startsWith('timed')) arrivals.set(recipient, counts.lastAt);
  };
  /** Consumes message data; returns what follows its end. */
  const receive = (chunk: Buffer, into: NonNullable<typeof message>): Buffer => {
    readHeader(chunk, into);
    // The end may be split across packets.
    const { tail } = into;
    const split = tail.length === 0 ? -1 : Buffer.concat([tail, chunk.subarray(0, 4)]).indexOf(END);
    const end = split === -1 ? chunk.indexOf(END) : split - tail.length;
    if (end === -1) {
      counts.bytes += chunk.length;
      into.tail = chunk.length >= 4 ? chunk.subarray(-4) : Buffer.concat([tail, chunk]).subarray(-4);
      return EMPTY;
    }
    counts.bytes += end + END.length;
    accept();
    return chunk.subarray(end + END.length);
  };

  const endChunk = () => {
    receiving = null;
    if (last) accept();
  };

  /** Consumes data of a chunk; returns what follows it. */
  const receiveChunk = (data: Buffer, into: NonNullable<typeof message>): Buffer => {
    const part = data.subarray(0, missing);
    readHeader(part, into);
    counts.bytes += part.length;
    missing -= part.length;
    if (missing === 0) endChunk();
    return data.subarray(part.length);
  };

  /** Processes commands and message data; returns the replies. */
  const execute = (chunk: Buffer): string => {
    let replies = '';
    for (let rest = chunk; rest.length > 0; ) {
      if (message !== null && receiving !== null) {
        rest = receiving === 'chunk' ? receiveChunk(rest, message) : receive(rest, message);
        if (receiving === null) replies += '250 2.0.0 OK\r\n';
        continue;
      }
      const end = rest.indexOf(10);
      commands += rest.toString('latin1', 0, end === -1 ? rest.length : end);
      if (end === -1) break;
      rest = rest.subarray(end + 1);
      const verb = commands.slice(0, 4).toUpperCase();
      if (verb === 'RCPT') recipient = commands.slice(commands.indexOf('<') + 1, commands.indexOf('>'));
      if (verb === 'DATA' || verb === 'BDAT') {
        message ??= { header: EMPTY, tail: EMPTY };
        receiving = verb === 'DATA' ? 'data' : 'chunk';
      }
      if (verb === 'BDAT') {
        missing = Number.parseInt(commands.slice(5), 10);
        last = /LAST\s*$/i.test(commands);
      }
      if (verb === 'QUIT') quit = true;
      commands = '';
      if (verb === 'STAR' && secureContext !== null) {
        encrypt(secureContext);
        return replies;
      }
      const offersTls = secureContext !== null && socket === plain;
      // The first line is the greeting (RFC 5321 §4.1.1.1); the keywords follow it.
      if (verb === 'EHLO') replies += `250-sink greets you\r\n${offersTls ? '250-STARTTLS\r\n' : ''}`;
      // The reply to BDAT follows its chunk, which may be empty.
      if (verb === 'BDAT' && missing > 0) continue;
      if (verb === 'BDAT') endChunk();
      replies += REPLIES[verb] ?? '500 5.5.2 unknown command\r\n';
    }
    return replies;
  };

  const read = (chunk: Buffer) => {
    const replies = execute(chunk);
    if (replies !== '' && socket.writable) socket.write(replies, 'latin1');
    if (quit) socket.end();
  };
  const encrypt = (context: NonNullable<typeof secureContext>) => {
    plain.write('220 2.0.0 ready\r\n');
    plain.removeAllListeners('data');
    socket = new TLSSocket(plain, { isServer: true, secureContext: context });
    socket.on('data', read);
    socket.on('error', () => socket.destroy());
  };
  socket.on('data', read);
  socket.on('error', () => socket.destroy());
  socket.write('220 sink ESMTP\r\n');
}

function countHeader(header: Buffer): void {
  if (header.includes(SIGNATURE)) counts.signed++;
  const start = header.indexOf(ID_FIELD);
  if (start === -1) return;
  const value = start + ID_FIELD.length;
  ids.add(header.toString('latin1', value, header.indexOf('\r\n', value)).trim());
}

/** Returns the port. */
async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sink has no port');
  return address.port;
}
