import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { findProgram } from './required-programs.ts';

/**
 * A real HAProxy (package haproxy) with a configuration of the documents.
 *
 *     const proxy = await startHaproxy({ configuration, replace: [['10.0.0.1:8080', '127.0.0.1:4711']] });
 *     await proxy.setMap('accounts', 'acct_one', 'mx2');
 */
export interface Haproxy {
  /** Directory of the configuration, the maps and the socket. */
  dir: string;
  /** Adds or changes an entry of a map, in the running process. */
  setMap(map: 'accounts' | 'links', key: string, value: string): Promise<void>;
  log(): string;
  stop(): Promise<void>;
}

export interface HaproxyOptions {
  /** The text of haproxy.cfg. Its paths below /etc/haproxy and /run/haproxy become those of a temporary directory. */
  configuration: string;
  /** Addresses of the configuration and their replacements; each must occur in it. */
  replace: readonly (readonly [from: string, to: string])[];
  /** Contents of the files of the maps. */
  maps?: Record<string, string>;
  /** Whether the frontends answer. */
  isReady(): Promise<boolean>;
}

export async function startHaproxy({
  configuration,
  replace,
  maps = {},
  isReady,
}: HaproxyOptions): Promise<Haproxy> {
  const program = findProgram('haproxy');
  if (program === null) throw new Error('haproxy is not installed');
  const dir = await mkdtemp(join(tmpdir(), 'postrider-haproxy-'));
  let text = configuration;
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`the configuration does not contain ${from}`);
    text = text.replaceAll(from, to);
  }
  const file = join(dir, 'haproxy.cfg');
  await writeFile(file, text.replaceAll(/\/(?:etc|run)\/haproxy\//g, `${dir}/`));
  for (const [name, content] of Object.entries(maps)) await writeFile(join(dir, `${name}.map`), content);
  const child: Child = startChild(program, ['-db', '-f', file], { cwd: dir });
  const command = (line: string) =>
    new Promise<string>((resolve, reject) => {
      let answer = '';
      const socket = connect(join(dir, 'admin.sock'), () => socket.end(`${line}\n`));
      socket
        .setEncoding('utf8')
        .on('data', (chunk: string) => (answer += chunk))
        .on('error', reject)
        .on('close', () => resolve(answer.trim()));
    });
  await eventually('HAProxy to answer', () => {
    if (!child.running) throw new Error(`haproxy ended: ${child.output}`);
    return isReady();
  });
  return {
    dir,
    setMap: async (map, key, value) => {
      const path = join(dir, `${map}.map`);
      const known = await command(`get map ${path} ${key}`);
      const verb = known.includes('found=yes') || known.includes(`key="${key}"`) ? 'set' : 'add';
      const answer = await command(`${verb} map ${path} ${key} ${value}`);
      if (answer !== '') throw new Error(`haproxy: ${answer}`);
    },
    log: () => child.output,
    stop: async () => {
      await child.kill('SIGKILL');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
