import { createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** A service that a Postfix asks over TCP. */
export interface PostfixService {
  /** For main.cf: `inet:127.0.0.1:12345`. */
  endpoint: string;
  close(): Promise<void>;
}

/**
 * Verifies logins for `smtpd_sasl_type = dovecot` (protocol version 1.1, https://doc.dovecot.org/developer_manual/design/auth_protocol/).
 * Knows one user, and the mechanism PLAIN (RFC 4616).
 */
export function startLoginService(login: { user: string; password: string }): Promise<PostfixService> {
  const expected = Buffer.from(`\0${login.user}\0${login.password}`).toString('base64');
  return listen((socket) => {
    socket.write('VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t00\nDONE\n');
    onLines(socket, (line) => {
      const [command, id, ...fields] = line.split('\t');
      if (command !== 'AUTH') return;
      const isRight = fields.includes(`resp=${expected}`);
      socket.write(isRight ? `OK\t${id}\tuser=${login.user}\n` : `FAIL\t${id}\tuser=${login.user}\n`);
    });
  });
}

/**
 * Greylisting for `check_policy_service` (http://www.postfix.org/SMTPD_POLICY_README.html): defers what each sender sends first
 * to each recipient from each address, and accepts what follows. The text is Postgrey's.
 */
export function startGreylisting(): Promise<PostfixService> {
  const seen = new Set<string>();
  return listen((socket) => {
    let request = new Map<string, string>();
    onLines(socket, (line) => {
      if (line !== '') {
        const separator = line.indexOf('=');
        request.set(line.slice(0, separator), line.slice(separator + 1));
        return;
      }
      const triplet = ['client_address', 'sender', 'recipient'].map((name) => request.get(name)).join(' ');
      request = new Map();
      const isKnown = seen.has(triplet);
      seen.add(triplet);
      const action = 'DEFER_IF_PERMIT Greylisted, see http://postgrey.schweikert.ch/help/empfang.html';
      socket.write(`action=${isKnown ? 'DUNNO' : action}\n\n`);
    });
  });
}

function onLines(socket: Socket, read: (line: string) => void): void {
  createInterface({ input: socket }).on('line', read);
}

async function listen(serve: (socket: Socket) => void): Promise<PostfixService> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    // Postfix resets the connections of processes that it ends.
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the service has no port');
  return {
    endpoint: `inet:127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
