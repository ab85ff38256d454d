import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startChild } from '../../support/child.ts';
import { freePort } from '../../support/free-port.ts';
import { familyCpu } from '../../support/process-cost.ts';
import { fixedKey } from '../../support/rsa-keys.ts';
import type { PeerOptions, PeerServer } from './peer.ts';
import { untilReady } from './ready.ts';

/** What Haraka is installed from: its package, and the plugin that relays to the sink. */
const SOURCE = new URL('./haraka/', import.meta.url).pathname;
const run = promisify(execFile);

/**
 * Haraka with its DKIM plugin, installed from npm into a temporary directory. A process for each core; it writes its
 * queue files with fsync. It opens a connection for each message: it has no other mode.
 */
export async function startHaraka(options: PeerOptions): Promise<PeerServer> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-haraka-'));
  const port = await freePort();
  const remove = () => rm(dir, { recursive: true, force: true, maxRetries: 5 });
  try {
    await cp(join(SOURCE, 'package.json'), join(dir, 'package.json'));
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir });
    await configure(dir, port, options);
  } catch (error) {
    await remove();
    throw error;
  }
  const program = join(dir, 'node_modules/Haraka/bin/haraka');
  const child = startChild(process.execPath, [program, '-c', dir], { cwd: dir });
  const stop = async () => {
    // The workers end when their master does.
    await child.kill('SIGKILL');
    await remove();
  };
  try {
    await untilReady('Haraka', child, port);
  } catch (error) {
    await stop();
    throw error;
  }
  // Sound: the file is the manifest of an installed package.
  const { default: manifest } = (await import(join(dir, 'node_modules/Haraka/package.json'), {
    with: { type: 'json' },
  })) as { default: { version: string } };
  return {
    name: `Haraka ${manifest.version} + dkim`,
    port,
    cpu: () => familyCpu(child.pid),
    stop,
  };
}

async function configure(dir: string, port: number, options: PeerOptions): Promise<void> {
  const { nextHop, connections, tls } = options;
  const processes = availableParallelism();
  const files: Record<string, string> = {
    'config/me': 'haraka.example\n',
    'config/plugins': 'relay-to-sink\ndkim\n',
    'config/log.ini': '[main]\nlevel=ERROR\n',
    'config/smtp.ini': `listen=127.0.0.1:${port}\nnodes=${processes}\n`,
    'config/sink.json': JSON.stringify({ priority: 0, exchange: nextHop.host, port: nextHop.port }),
    // The limit is for each process.
    'config/outbound.ini': `enable_tls=${tls}\nlocal_mx_ok=true\nconcurrency_max=${Math.ceil(connections / processes)}\n`,
    'config/dkim.ini':
      '[sign]\nenabled=true\nheaders=From,To,Subject,Date,Message-ID,MIME-Version,Content-Type\n[canon]\nbody=relaxed\n[verify]\nenabled=false\n',
    'config/dkim/sender.example/selector': 'bench\n',
    'config/dkim/sender.example/private': String(fixedKey(0).export({ type: 'pkcs8', format: 'pem' })),
  };
  for (const folder of ['config/dkim/sender.example', 'plugins', 'queue'])
    await mkdir(join(dir, folder), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  // Haraka does not start without it.
  await cp(join(dir, 'node_modules/Haraka/config/connection.ini'), join(dir, 'config/connection.ini'));
  await cp(join(SOURCE, 'relay-to-sink.cjs'), join(dir, 'plugins/relay-to-sink.js'));
}
