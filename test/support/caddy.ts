import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { findProgram } from './required-programs.ts';

/** A real Caddy (package caddy) with a Caddyfile of the documents. */
export interface Caddy {
  stop(): Promise<void>;
}

export interface CaddyOptions {
  /** The text of the Caddyfile. */
  configuration: string;
  /** Texts of the configuration and their replacements; each must occur in it. */
  replace: readonly (readonly [from: string, to: string])[];
  /** Whether the sites answer. */
  isReady(): Promise<boolean>;
}

export async function startCaddy({ configuration, replace, isReady }: CaddyOptions): Promise<Caddy> {
  const program = findProgram('caddy');
  if (program === null) throw new Error('caddy is not installed');
  const dir = await mkdtemp(join(tmpdir(), 'postrider-caddy-'));
  let text = configuration;
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`the configuration does not contain ${from}`);
    text = text.replaceAll(from, to);
  }
  const file = join(dir, 'Caddyfile');
  // Without the administration, which has a fixed port. Its own files are below HOME.
  await writeFile(file, `{\n\tadmin off\n}\n${text}`);
  const child: Child = startChild(program, ['run', '--config', file, '--adapter', 'caddyfile'], {
    cwd: dir,
    env: { PATH: process.env['PATH'], HOME: dir },
  });
  await eventually('Caddy to answer', () => {
    if (!child.running) throw new Error(`caddy ended: ${child.output}`);
    return isReady();
  });
  return {
    stop: async () => {
      await child.kill('SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
