import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, startChild } from '../support/child.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { type CodeBlock, codeBlocks } from '../support/documentation.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import type { PrintedRecord } from '../support/knot.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';

/*
 * The commands of the documents, as a reader runs them one after the other in an empty directory:
 *
 *   bash: blocks of docs/*.md ──▶ postrider, curl, node, python3, java ──▶ postrider serve ──SMTP──▶ sink
 *
 * Ports are replaced by free ones, and the environment sets what a server on the internet does not need: a private DNS
 * server and the port of the sink.
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const required = requirePrograms('curl', 'jq', 'python3', 'java');
/** In the order in which they continue each other. */
const DOCUMENTS = [
  'first-message',
  'dns-setup',
  'clients',
  'webhooks',
  'deliverability',
  'limits',
  'security',
  'faq',
] as const;
const BLOCK_TIMEOUT_MS = 120_000;

let dir: string;
let dns: DnsServer;
let sink: Sink;
let daemon: Child | null = null;
let env: NodeJS.ProcessEnv;
let apiPort: number;
let webhookPort: number;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-docs-'));
  dns = await startDnsServer();
  sink = await startSink();
  apiPort = await freePort();
  webhookPort = await freePort();
  publishMailHost(dns, 'example.org');
  // `npx postrider` runs the built program and downloads nothing.
  mkdirSync(join(dir, 'bin'));
  writeFileSync(join(dir, 'bin', 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, {
    mode: 0o755,
  });
  const settings = {
    'api.listen': `127.0.0.1:${apiPort}`,
    'public.listen': `127.0.0.1:${await freePort()}`,
    'mx.listen': `127.0.0.1:${await freePort()}`,
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'delivery.egress': [{ name: 'main', publicAddress: '192.0.2.25' }],
  };
  env = {
    PATH: `${join(dir, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: dir,
    ...Object.fromEntries(
      Object.entries(settings).map(([path, value]) => [
        `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
        JSON.stringify(value).replaceAll(/"(\w+)":/g, '$1='),
      ]),
    ),
  };
  writeFileSync(join(dir, 'variables'), '');
});
afterAll(async () => {
  // A background job may have ended before.
  await run(`for job in $(cat jobs 2>/dev/null); do kill "$job"; done`).catch(() => null);
  await daemon?.kill('SIGTERM');
  await sink?.close();
  await dns?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Variables of the documents, which later blocks use. */
const KEPT = '^declare -[-x]+ [A-Z_]+_(ID|KEY|SECRET)=';

const adapted = (text: string) =>
  text.replaceAll('127.0.0.1:8080', `127.0.0.1:${apiPort}`).replaceAll('9000', String(webhookPort));

/** Runs commands in bash; variables and functions remain for the next run. Rejects with the output when one fails. */
function run(commands: string): Promise<string> {
  const script = `set -euo pipefail\nsource ./variables\n${commands}\njobs -p >> jobs\n{ declare -p | grep -E '${KEPT}' || true; declare -f; } > variables.new\nmv variables.new variables`;
  return new Promise((resolve, reject) => {
    const options = { cwd: dir, env, timeout: BLOCK_TIMEOUT_MS };
    execFile('bash', ['-c', script], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${commands}\n${stdout}\n${stderr}`));
    });
  });
}

async function serve(): Promise<void> {
  const child = startChild(join(dir, 'bin', 'npx'), ['postrider', 'serve'], { cwd: dir, env });
  daemon = child;
  await eventually('the daemon to be ready', () => {
    if (!child.running) throw new Error(`the daemon exited: ${child.output}`);
    return child.output.includes('postrider started');
  });
}

/** Publishes what the platform and the domains of the directory need, as the reader does at a DNS provider. */
async function publish(): Promise<void> {
  const zone: PrintedRecord[] = JSON.parse(await run('npx postrider zone --json'));
  const domain: { dnsRecords: PrintedRecord[] } = JSON.parse(
    await run('npx postrider domain show example.com --json'),
  );
  const records = [...zone, ...domain.dnsRecords];
  for (const { name } of records) dns.remove(name);
  dns.publish(records);
}

async function follow(block: CodeBlock): Promise<void> {
  const text = adapted(block.text);
  if (block.kind === 'file') {
    mkdirSync(dirname(join(dir, block.path)), { recursive: true });
    writeFileSync(join(dir, block.path), text);
  } else if (block.kind === 'command') {
    if (text.trim() === 'npx postrider serve') return serve();
    if (text.includes('domain verify')) await publish();
    await run(text);
  }
}

const blocksOf = (name: string) =>
  codeBlocks(readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'));

describe.skipIf(required.missing)('the commands of the documents', () => {
  for (const name of DOCUMENTS) {
    it(`of docs/${name}.md work as written`, async () => {
      for (const block of blocksOf(name)) {
        try {
          await follow(block);
        } catch (error) {
          throw new Error(`docs/${name}.md, line ${block.line}`, { cause: error });
        }
      }
    });
  }

  it('deliver every message that they send', async () => {
    await eventually('the messages', () => sink.messages.length >= 5);
    expect(sink.messages.flatMap(({ to }) => to)).toEqual(Array(5).fill('ada@example.org'));
  });
});
