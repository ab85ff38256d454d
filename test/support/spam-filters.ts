import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { HOSTNAME, PUBLIC_ADDRESS } from './daemon.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { findProgram } from './required-programs.ts';
import type { SinkMessage } from './smtp-sink-session.ts';

/** The result of a spam filter for a message. */
export interface SpamFilterResult {
  score: number;
  rules: MatchedRule[];
}

export interface MatchedRule {
  name: string;
  score: number;
  /** The filter's description, '' for none. */
  description: string;
}

/** The message as the recipient's mail host passes it to its filter: with its Received field at the top. */
export function received(message: SinkMessage): Buffer {
  const [recipient = ''] = message.to;
  const date = new Date().toUTCString().replace('GMT', '+0000');
  const field =
    `Return-Path: <${message.from}>\r\n` +
    `Received: from ${HOSTNAME} (${HOSTNAME} [${PUBLIC_ADDRESS}])\r\n` +
    `\tby mx.empfang.example with ESMTPS id 4c8QdT2Vq1z9sTL\r\n\tfor <${recipient}>; ${date}\r\n`;
  return Buffer.concat([Buffer.from(field), Buffer.from(message.raw, 'latin1')]);
}

/** The score, and a line for each rule, the highest score first. */
export function formatSpamFilterResult(filter: string, { score, rules }: SpamFilterResult): string {
  const lines = rules
    .toSorted((a, b) => b.score - a.score)
    .map((rule) => `  ${rule.score.toFixed(2).padStart(6)}  ${rule.name}  ${rule.description}`.trimEnd());
  return [`${filter}: ${score.toFixed(2)}`, ...lines].join('\n');
}

/** A line of the report of `spamassassin -t`: points, rule, description. */
const REPORT_LINE = /^\s*(-?\d+\.\d+)\s+([A-Z0-9_]{3,})\s*(.*)$/gm;

/** Runs SpamAssassin with its local tests only and without trained data. */
export async function checkWithSpamAssassin(mail: Buffer): Promise<SpamFilterResult> {
  const home = await mkdtemp(join(tmpdir(), 'postrider-spamassassin-'));
  const settings = [
    'use_bayes 0',
    'use_auto_welcomelist 0',
    'dns_available no',
    // The tests send from a documentation address.
    'score RCVD_ILLEGAL_IP 0',
  ];
  try {
    const output = await new Promise<string>((resolve, reject) => {
      const args = ['-L', '-t', '-x', ...settings.map((setting) => `--cf=${setting}`)];
      const child = execFile(
        findProgram('spamassassin') ?? 'spamassassin',
        args,
        { env: { ...process.env, HOME: home, LC_ALL: 'C' }, maxBuffer: 16 * 1024 * 1024 },
        (error, stdout, stderr) =>
          error === null ? resolve(stdout) : reject(new Error(`${error.message}: ${stderr}`)),
      );
      child.stdin?.end(mail);
    });
    const report = output.slice(output.indexOf('Content analysis details:'));
    const score = Number(/^Content analysis details:\s+\((-?[\d.]+) points/.exec(report)?.[1] ?? Number.NaN);
    if (Number.isNaN(score)) throw new Error(`SpamAssassin reports no score: ${output.slice(0, 2000)}`);
    const rules = [...report.matchAll(REPORT_LINE)].map(([, points, name = '', description = '']) => ({
      name,
      score: Number(points),
      description,
    }));
    return { score, rules };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

export interface Spamd {
  /** `host:port`. */
  address: string;
  stop(): Promise<void>;
}

/** Starts spamd with local tests only and without trained data. */
export async function startSpamd(): Promise<Spamd> {
  const home = await mkdtemp(join(tmpdir(), 'postrider-spamd-'));
  // Started by root, it runs as nobody.
  await chmod(home, 0o755);
  const port = await freePort();
  const options = ['--listen=127.0.0.1', `--port=${port}`, '--local', '--nouser-config', '--max-children=1'];
  const settings = ['use_bayes 0', 'use_auto_welcomelist 0', 'dns_available no'];
  const child = startChild(
    findProgram('spamd') ?? 'spamd',
    [...options, `--helper-home-dir=${home}`, ...settings.map((setting) => `--cf=${setting}`)],
    { env: { ...process.env, HOME: home, LC_ALL: 'C' } },
  );
  const stop = async () => {
    if (child.running) await child.kill('SIGTERM');
    await rm(home, { recursive: true, force: true });
  };
  try {
    await eventually('spamd to listen', async () => {
      if (!child.running) throw new Error(`spamd ended: ${child.output}`);
      return new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.end('PING SPAMC/1.5\r\n\r\n');
          resolve(true);
        });
        socket.on('error', () => resolve(false));
        socket.resume();
      });
    });
  } catch (error) {
    await stop();
    throw new Error(`spamd does not start: ${child.output}`, { cause: error });
  }
  return { address: `127.0.0.1:${port}`, stop };
}

export interface Rspamd {
  url: string;
  check(mail: Buffer, message: SinkMessage): Promise<SpamFilterResult>;
  stop(): Promise<void>;
}

/** Modules that query network services or store state between messages. */
const DISABLED_MODULES = [
  'asn',
  'bimi',
  'clickhouse',
  'dcc',
  'fuzzy_check',
  'greylist',
  'history_redis',
  'mx_check',
  'neural',
  'ratelimit',
  'rbl',
  'redis',
  'replies',
  'reputation',
  'surbl',
  'url_redirector',
];

/** Starts rspamd with the rules of its package. `dns`: the only name server it queries, for SPF, DKIM and DMARC. */
export async function startRspamd({ dns }: { dns: string }): Promise<Rspamd> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-rspamd-'));
  const port = await freePort();
  const local = join(dir, 'conf', 'local.d');
  // Its processes may run as another user.
  await chmod(dir, 0o755);
  for (const folder of [local, join(dir, 'db'), join(dir, 'run'), join(dir, 'log')]) {
    await mkdir(folder, { recursive: true });
  }
  const files: Record<string, string> = {
    // Compiling its regular expressions for Hyperscan takes longer than it saves.
    'options.inc': `disable_hyperscan = true;\ndns { nameserver = ["${dns}"]; timeout = 1s; retransmits = 2; }\nlocal_addrs = [];\n`,
    'logging.inc': 'type = "console";\nlevel = "warning";\n',
    'worker-normal.inc': `bind_socket = "127.0.0.1:${port}";\ncount = 1;\n`,
    ...Object.fromEntries(
      ['worker-controller.inc', 'worker-proxy.inc', 'worker-fuzzy.inc'].map((name) => [
        name,
        'enabled = false;\n',
      ]),
    ),
    ...Object.fromEntries(DISABLED_MODULES.map((name) => [`${name}.conf`, 'enabled = false;\n'])),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(local, name), text);
  const variables = { LOCAL_CONFDIR: 'conf', DBDIR: 'db', RUNDIR: 'run', LOGDIR: 'log' };
  const child = startChild(findProgram('rspamd') ?? 'rspamd', [
    // As the current user, who owns its files.
    '-f',
    '-i',
    '-c',
    '/etc/rspamd/rspamd.conf',
    ...Object.entries(variables).map(([name, folder]) => `--var=${name}=${join(dir, folder)}`),
  ]);
  const stop = async () => {
    if (child.running) await child.kill('SIGTERM');
    await rm(dir, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await eventually('rspamd to answer', async () => {
      if (!child.running) throw new Error(`rspamd ended: ${child.output}`);
      return await fetch(`${url}/ping`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
  } catch (error) {
    await stop();
    throw new Error(`rspamd does not start: ${child.output}`, { cause: error });
  }
  return {
    url,
    check: async (mail, message) => {
      const headers = {
        IP: PUBLIC_ADDRESS,
        Helo: HOSTNAME,
        Hostname: HOSTNAME,
        From: message.from,
        Rcpt: message.to.join(','),
      };
      const response = await fetch(`${url}/checkv2`, { method: 'POST', headers, body: new Uint8Array(mail) });
      const text = await response.text();
      if (!response.ok) throw new Error(`rspamd answers ${response.status}: ${text}`);
      const { score, symbols }: RspamdAnswer = JSON.parse(text);
      const rules = Object.values(symbols).map(({ name, score: points, options = [] }) => ({
        name,
        score: points,
        description: options.join(', ').slice(0, 200),
      }));
      return { score, rules };
    },
    stop,
  };
}

/** The fields of its response that are used. */
interface RspamdAnswer {
  score: number;
  symbols: Record<string, { name: string; score: number; options?: string[] }>;
}
