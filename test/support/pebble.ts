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
 * A real certificate authority (Pebble, the test server of Let's Encrypt's makers): strict, and unkind on purpose.
 * It looks names up at the name server given, looks for challenges at the port given, and refuses some
 * good nonces.
 *
 *     const pebble = await startPebble({ dns: dns.address, httpPort: publicPort });
 *     … public.tls.directory = pebble.directory, public.tls.directoryCaFile = pebble.caFile …
 *     await requestHttps('https://track.example/', { ca: await pebble.root(), port });
 */
export interface Pebble {
  directory: string;
  /** PEM file of what vouches for the directory. */
  caFile: string;
  /** PEM of the root that it issues under; another after every start. */
  root(): Promise<string>;
  /** Everything it said. */
  log(): string;
  /** The names of all orders so far, in order. */
  orders(): string[];
  kill(): Promise<void>;
  /** Starts it again after `kill`: it has forgotten everything, accounts too. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';

export async function startPebble(world: { dns: string; httpPort: number }): Promise<Pebble> {
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
        httpPort: world.httpPort,
        tlsPort: 1,
      },
    }),
  );
  const program = findProgram('pebble');
  if (program === null) throw new Error('pebble is not installed');

  const start = async (): Promise<Child> => {
    const env = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '15', PEBBLE_AUTHZREUSE: '0' };
    const child = startChild(program, ['-config', config, '-strict', '-dnsserver', world.dns], {
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
  let said = '';
  const log = () => said + child.output;
  return {
    directory: `https://${HOST}:${port}/dir`,
    caFile: await file('ca.pem', authority.cert),
    root: async () =>
      (await requestHttps(`https://${HOST}:${managementPort}/roots/0`, { ca: authority.cert })).body,
    log,
    orders: () => [...log().matchAll(/Pulled a task[^\n]*?Value:"([^"]+)"/g)].map(([, name = '']) => name),
    kill: async () => {
      await child.kill('SIGKILL');
      said += child.output;
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
