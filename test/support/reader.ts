import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Child, startChild } from './child.ts';
import { environment, type Settings } from './daemon.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { type CodeBlock, codeBlocks } from './documentation.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import type { PrintedRecord } from './knot.ts';
import { PATIENCE_MS } from './patience.ts';
import { publishMailHost } from './recipients.ts';
import { type ServiceActions, type ServiceManager, startServiceManager } from './service-manager.ts';
import { type Sink, startSink } from './smtp-sink.ts';

/*
 * A reader of the documents, who runs their blocks one after the other in an empty directory:
 *
 *   sh blocks of docs/*.md ──▶ postrider, curl, jq, … ──▶ postrider serve ──SMTP──▶ sink
 *   toml blocks ──▶ postrider config check
 *
 *     const reader = await startReader();
 *     await reader.follow('docs/first-message.md');
 *     await reader.close();
 *
 * Ports are replaced by free ones, and the environment sets what a server on the internet does not need: a private DNS
 * server and the port of the sink. `npx postrider` and `postrider` are the built program, and `systemctl` controls the
 * daemon of this reader.
 */
export interface Reader {
  /** The working directory of the commands. */
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly dns: DnsServer;
  /** Receives the mail to example.org. */
  readonly sink: Sink;
  /** Runs commands in bash; variables and functions remain. Returns their stdout, throws unless they exit with `exit`. */
  run(commands: string, exit?: number): Promise<string>;
  /**
   * Runs all blocks of a document, a path such as `docs/queue.md`. `perform` is called before each block, and returns
   * true for those that it has run instead. An error names document and line.
   */
  follow(document: string, perform?: (block: CodeBlock) => Promise<boolean>): Promise<void>;
  /** The text with this reader's ports and paths. */
  adapted(text: string): string;
  /** Starts `postrider serve`, unless it runs. */
  serve(): Promise<void>;
  /** Everything that the daemon has written since its last start. */
  log(): string;
  /** Removes variables and functions, as for a reader who opens a document in a new terminal. */
  newShell(): void;
  /** Publishes the records of the platform and of all domains, as the reader does at a DNS provider. */
  publish(): Promise<void>;
  close(): Promise<void>;
}

export interface ReaderOptions {
  /** Texts of the documents that are replaced everywhere, such as paths outside the directory of the test. */
  replace?: Record<string, string>;
  /** Settings that override those of the documents. */
  settings?: Settings;
  /** Further environment variables of the commands. */
  env?: NodeJS.ProcessEnv;
  /** Programs in front of those of the system: name and shell script. */
  programs?: Record<string, string>;
  /** Further units that `systemctl` controls. */
  services?: Record<string, Partial<ServiceActions>>;
}

const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const ROOT = new URL('../../', import.meta.url).pathname;

/** Checks a part of a configuration. Its files are those of the reader's machine, and do not exist here. */
const CHECK_PART = `found=$(env -i PATH="$PATH" POSTRIDER_HOSTNAME=mail.example.net \\
  postrider config check --config part.toml 2>&1) && exit 0
printf '%s\\n' "$found"
! printf '%s\\n' "$found" | grep ': error: ' | grep -v 'does not exist' >/dev/null && printf '%s\\n' "$found" | grep 'does not exist' >/dev/null`;

/** What each reader replaces: the listeners of the documents, by free ports of this machine. */
async function freeListeners(): Promise<Record<string, string>> {
  const local = async () => `127.0.0.1:${await freePort()}`;
  return {
    '127.0.0.1:8080': await local(),
    '127.0.0.1:8081': await local(),
    '0.0.0.0:25"': `${await local()}"`,
    ...samePort('9000', await freePort()),
  };
}

/** A port of the documents in an address and in the argument of `listen`. */
const samePort = (port: string, free: number) => ({
  [`127.0.0.1:${port}`]: `127.0.0.1:${free}`,
  [`listen(${port}`]: `listen(${free}`,
});

export async function startReader(options: ReaderOptions = {}): Promise<Reader> {
  const root = mkdtempSync(join(tmpdir(), 'postrider-docs-'));
  const dir = join(root, 'work');
  const bin = join(root, 'bin');
  const [dns, sink] = await Promise.all([startDnsServer(), startSink()]);
  publishMailHost(dns, 'example.org', sink.host);
  const replace = { ...(await freeListeners()), ...options.replace };

  let daemon: Child | null = null;
  const serve = async () => {
    if (daemon?.running) return;
    const child = startChild(join(bin, 'postrider'), ['serve'], { cwd: dir, env });
    daemon = child;
    await eventually('the daemon to be ready', () => {
      if (!child.running) throw new Error(`the daemon exited: ${child.output}`);
      return child.output.includes('postrider started');
    });
  };
  const stop = async () => {
    const exit = await daemon?.kill('SIGTERM');
    if (exit && exit.code !== 0) throw new Error(`the daemon exited with ${JSON.stringify(exit)}`);
  };
  const reload = async () => {
    const child = daemon;
    if (child === null) throw new Error('the daemon does not run');
    const before = child.output.length;
    child.signal('SIGHUP');
    const outcome = await eventually('the reload', () =>
      /configuration (not )?reloaded/.exec(child.output.slice(before)),
    );
    if (outcome[1]) throw new Error(child.output.slice(before));
  };
  const postrider: ServiceActions = {
    start: serve,
    stop,
    reload,
    restart: async () => {
      await stop();
      await serve();
    },
  };
  const manager: ServiceManager = await startServiceManager(join(root, 'systemctl.sock'), {
    postrider,
    ...options.services,
  });

  const env: NodeJS.ProcessEnv = {
    ...environment({
      'api.listen': replace['127.0.0.1:8080'] ?? '',
      'public.listen': replace['127.0.0.1:8081'] ?? '',
      'console.listen': '127.0.0.1:0',
      'mx.listen': `127.0.0.1:${await freePort()}`,
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'webhooks.allowPrivateNetworks': true,
      'delivery.egress': [{ name: 'main', publicAddress: '192.0.2.25' }],
      ...options.settings,
    }),
    PATH: `${bin}:${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: root,
    ...options.env,
  };
  const program = `exec "${process.execPath}" "${PROGRAM}" "$@"`;
  const programs = { npx: `shift\n${program}`, postrider: program, systemctl: manager.program };
  mkdirSync(dir);
  mkdirSync(bin);
  for (const [name, script] of Object.entries({ ...programs, ...options.programs }))
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const newShell = () => writeFileSync(join(root, 'variables'), '');
  newShell();

  const names = new Set<string>();
  const run = (commands: string, exit = 0) => {
    for (const [, name = ''] of commands.matchAll(/^(?:export )?([A-Z_]+)=/gm)) names.add(name);
    const script = [
      `set -euo pipefail; source ../variables`,
      `trap 'jobs -p >> ../jobs' EXIT`,
      commands,
      `{ declare -p ${[...names].join(' ')} 2>/dev/null || true; declare -f; } > ../variables`,
    ];
    if (names.size === 0) script[3] = 'declare -f > ../variables';
    return bash(script.join('\n'), { cwd: dir, env, timeout: PATIENCE_MS }, { commands, exit });
  };

  const adapted = (text: string) =>
    Object.entries(replace).reduce((result, [from, to]) => result.replaceAll(from, to), text);
  const publish = async () => {
    const zone: PrintedRecord[] = JSON.parse(await run('postrider zone --json'));
    const domains: { domain: string }[] = JSON.parse(await run('postrider domain list --json'));
    const records = [...zone];
    for (const { domain } of domains) {
      const shown: { dnsRecords: PrintedRecord[] } = JSON.parse(
        await run(`postrider domain show ${domain} --json`),
      );
      records.push(...shown.dnsRecords);
    }
    for (const { name } of records) dns.remove(name);
    dns.publish(records);
  };

  const runBlock = async (block: CodeBlock) => {
    const text = adapted(block.text);
    switch (block.kind) {
      case 'file':
        mkdirSync(dirname(resolve(dir, adapted(block.path))), { recursive: true });
        return writeFileSync(resolve(dir, adapted(block.path)), text);
      case 'append':
        return appendFileSync(resolve(dir, adapted(block.path)), text);
      case 'json':
        return void JSON.parse(text);
      case 'configuration':
        writeFileSync(join(dir, 'part.toml'), text);
        return void (await run(CHECK_PART));
      case 'command':
        if (text.trim() === 'npx postrider serve') return serve();
        if (text.includes('domain verify')) await publish();
        return void (await run(text, block.exit));
      case 'run by':
      case 'not run':
    }
  };

  return {
    dir,
    env,
    dns,
    sink,
    run,
    adapted,
    serve,
    publish,
    newShell,
    log: () => daemon?.output ?? '',
    follow: async (document, perform = async () => false) => {
      for (const block of blocksOf(document)) {
        try {
          if (!(await perform(block))) await runBlock(block);
        } catch (error) {
          throw new Error(`${document}, line ${block.line}`, { cause: error });
        }
      }
    },
    close: async () => {
      // A background job may have ended before.
      await run(`for job in $(cat ../jobs 2>/dev/null); do kill "$job"; done`).catch(() => null);
      await daemon?.kill('SIGTERM');
      await manager.close();
      await sink.close();
      await dns.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** The blocks of a document, a path from the root of the project. */
export const blocksOf = (document: string): CodeBlock[] =>
  codeBlocks(readFileSync(join(ROOT, document), 'utf8'));

function bash(
  script: string,
  options: { cwd: string; env: NodeJS.ProcessEnv; timeout: number },
  { commands, exit }: { commands: string; exit: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('bash', ['-c', script], options, (error, stdout, stderr) => {
      const status = error === null ? 0 : error.code;
      if (status === exit) resolve(stdout);
      else reject(new Error(`exit status ${status} instead of ${exit}:\n${commands}\n${stdout}\n${stderr}`));
    });
    child.stdin?.end();
  });
}
