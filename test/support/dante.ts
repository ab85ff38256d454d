import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { findProgram } from './required-programs.ts';

/** A real SOCKS5 proxy (Dante) on a loopback address that connects from another one. */
export interface Dante {
  /** `socks5://127.0.0.1:port` */
  url: string;
  port: number;
  /** Accepts no more connections; those that are open continue. */
  stop(): Promise<void>;
}

export interface DanteOptions {
  /** The address from which it connects. */
  external: string;
  /** Default: a free one. */
  port?: number;
  /** Destination that its rules do not allow, as `address/bits`. */
  blocked?: string;
}

export async function startDante({ external, port: given, blocked }: DanteOptions): Promise<Dante> {
  const host = '127.0.0.1';
  const port = given ?? (await freePort(host));
  const dir = await mkdtemp(join(tmpdir(), 'postrider-dante-'));
  const config = join(dir, 'danted.conf');
  await writeFile(
    config,
    `logoutput: stderr
internal: ${host} port = ${port}
external: ${external}
clientmethod: none
socksmethod: none
client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
${blocked === undefined ? '' : `socks block { from: 127.0.0.0/8 to: ${blocked} }`}
socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 command: connect }
`,
  );
  const danted = startChild(findProgram('danted') ?? 'danted', ['-f', config, '-p', join(dir, 'pid')]);
  await eventually('danted to accept connections', async () => {
    if (!danted.running) throw new Error(`danted ended: ${danted.output}`);
    return isOpen(host, port);
  });
  return {
    url: `socks5://${host}:${port}`,
    port,
    stop: async () => {
      danted.signal('SIGTERM');
      // Its children end with the connections that they relay.
      await eventually('danted to stop listening', async () => !(await isOpen(host, port)));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
