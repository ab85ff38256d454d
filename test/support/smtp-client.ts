import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';

/**
 * A minimal SMTP client that sends exactly the lines of a test and waits for each reply:
 *
 *     const client = await smtpClient(port);
 *     expect(await client.say('EHLO me.example')).toMatch(/^250/);
 *     await client.mail('', 'b-…@return-a.example.com', 'Subject: hello\r\n\r\nhello');
 */
export interface SmtpClient {
  greeting: string;
  /** Sends a line, and returns the reply, its lines joined by LF. */
  say(line: string): Promise<string>;
  /** Sends bytes unchanged. */
  write(bytes: string | Buffer): void;
  /** The next reply. */
  reply(): Promise<string>;
  /** Sends a mail; returns the reply to the first rejected command, else to the final dot. */
  mail(from: string, to: string | string[], content: string | Buffer): Promise<string>;
  startTls(options?: StartTlsOptions): Promise<TLSSocket>;
  readonly closed: boolean;
  /** Resolves when the server has disconnected. */
  end: Promise<void>;
  /** Aborts the connection. */
  destroy(): void;
}

export type StartTlsOptions = Pick<ConnectionOptions, 'ca' | 'servername' | 'maxVersion' | 'ciphers'>;

export interface ClientOptions {
  host?: string;
  /** Connects from this address. */
  from?: string;
  /** Sent before the greeting. */
  first?: string | Buffer;
}

export async function smtpClient(port: number, options: ClientOptions = {}): Promise<SmtpClient> {
  const { host = '127.0.0.1', from, first } = options;
  let socket: Socket = connect({ host, port, ...(from === undefined ? {} : { localAddress: from }) });
  let text = '';
  let closed = false;
  const replies: string[] = [];
  const waiting: { resolve(reply: string): void; reject(error: Error): void }[] = [];
  let ended = () => {};
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });

  const listen = (on: Socket) => {
    on.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let match = REPLY.exec(text); match !== null; match = REPLY.exec(text)) {
        text = text.slice(match[0].length);
        const reply = match[0].trimEnd().replaceAll('\r\n', '\n');
        const next = waiting.shift();
        if (next) next.resolve(reply);
        else replies.push(reply);
      }
    });
    on.on('error', () => {});
    on.on('close', () => {
      closed = true;
      ended();
      for (const { reject } of waiting.splice(0)) reject(new Error('the server closed the connection'));
    });
  };
  listen(socket);

  const reply = () =>
    new Promise<string>((resolve, reject) => {
      const next = replies.shift();
      if (next !== undefined) resolve(next);
      else if (closed) reject(new Error('the server closed the connection'));
      else waiting.push({ resolve, reject });
    });
  const say = (line: string) => {
    socket.write(`${line}\r\n`);
    return reply();
  };
  const mail = async (sender: string, to: string | string[], content: string | Buffer) => {
    const commands = [`MAIL FROM:<${sender}>`, ...[to].flat().map((each) => `RCPT TO:<${each}>`), 'DATA'];
    for (const command of commands) {
      const answer = await say(command);
      if (/^[23]/.test(answer)) continue;
      if (!closed && !answer.startsWith('421')) await say('RSET');
      return answer;
    }
    const bytes = dotted(content);
    socket.write(bytes);
    return say(bytes.toString('latin1').endsWith('\r\n') ? '.' : '\r\n.');
  };

  if (first !== undefined) socket.write(first);
  const greeting = await reply();
  return {
    greeting,
    say,
    mail,
    reply,
    write: (bytes) => void socket.write(bytes),
    startTls: async (options = {}) => {
      const answer = await say('STARTTLS');
      if (!answer.startsWith('220')) throw new Error(`no TLS: ${answer}`);
      socket.removeAllListeners('data');
      const secure = connectTls({ socket, rejectUnauthorized: options.ca !== undefined, ...options });
      await new Promise<void>((resolve, reject) => {
        secure.once('secureConnect', resolve);
        secure.once('error', reject);
      });
      socket = secure;
      listen(secure);
      return secure;
    },
    get closed() {
      return closed;
    },
    end,
    destroy: () => socket.destroy(),
  };
}

/** One reply: lines with a hyphen after the code, then one without. */
const REPLY = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3}(?: [^\r\n]*)?\r\n/;

/** RFC 5321 §4.5.2. */
function dotted(content: string | Buffer): Buffer {
  const text = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.from(text.toString('latin1').replace(/^\./gm, '..'), 'latin1');
}
