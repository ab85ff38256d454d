import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from './certificates.ts';
import { type Child, startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { requestHttps } from './https-client.ts';
import { findProgram } from './required-programs.ts';

/**
 * A real certificate authority (Pebble, the test server of Let's Encrypt), which is deliberately strict. It uses the
 * given name server, requests challenges at the given port, and rejects some valid nonces.
 *
 *     const pebble = await startPebble({ dns: dns.address, httpPort: publicPort });
 *     … public.tls.directory = pebble.directory, public.tls.directoryCaFile = pebble.caFile …
 *     await requestHttps('https://track.example/', { ca: await pebble.root(), port });
 */
export interface Pebble {
  directory: string;
  /** PEM file of the authority of the directory's certificate. */
  caFile: string;
  /** PEM of its root certificate; a different one after every start. */
  root(): Promise<string>;
  /** Its complete output. */
  log(): string;
  /** The names of all orders, in order. */
  orders(): string[];
  kill(): Promise<void>;
  /** Starts it again after `kill`, without its former state and accounts. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';

export async function startPebble(options: { dns: string; httpPort: number }): Promise<Pebble> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-pebble-'));
  const [port, managementPort] = [await freePort(HOST), await freePort(HOST)];
  const authority = createAuthority('Pebble directory');
  const { key, cert } = authority.issue([HOST]);
  const file = async (name: string, text: string) => {
    const path = join(dir, name);
    await writeFile(path, text);
    return path;
  };
  const config = await file(
    'pebble.json',
    JSON.stringify({
      pebble: {
        listenAddress: `${HOST}:${port}`,
        managementListenAddress: `${HOST}:${managementPort}`,
        certificate: await file('cert.pem', cert),
        privateKey: await file('key.pem', key),
        httpPort: options.httpPort,
        tlsPort: 1,
      },
    }),
  );
  const program = findProgram('pebble');
  if (program === null) throw new Error('pebble is not installed');

  const start = async (): Promise<Child> => {
    const env = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '15', PEBBLE_AUTHZREUSE: '0' };
    const child = startChild(program, ['-config', config, '-strict', '-dnsserver', options.dns], {
      env,
      cwd: dir,
    });
    await eventually('pebble to answer', () => {
      if (!child.running) throw new Error(`pebble ended: ${child.output}`);
      return requestHttps(`https://${HOST}:${port}/dir`, { ca: authority.cert }).then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    return child;
  };
  let child = await start();
  let output = '';
  const log = () => output + child.output;
  return {
    directory: `https://${HOST}:${port}/dir`,
    caFile: await file('ca.pem', authority.cert),
    root: async () =>
      (await requestHttps(`https://${HOST}:${managementPort}/roots/0`, { ca: authority.cert })).body,
    log,
    orders: () => [...log().matchAll(/Pulled a task[^\n]*?Value:"([^"]+)"/g)].map(([, name = '']) => name),
    kill: async () => {
      await child.kill('SIGKILL');
      output += child.output;
    },
    restart: async () => {
      child = await start();
    },
    stop: async () => {
      await child.kill('SIGKILL');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
