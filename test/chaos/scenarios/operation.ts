import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { smtpClient } from '../../support/smtp-client.ts';
import { pause, type ScenarioContext } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** What surrounds the daemon does not do its part: the reader of the log, the writer of its files. */
const DROPPED = 'postrider_log_records_dropped_total';
const DROPPED_TIMEOUT_MS = 60_000;

/** A pipe for the log that nobody reads until `read` is called, which returns what is in it. */
function logPipe(context: ScenarioContext) {
  const file = join(context.dir, 'log');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  context.defer(() => closeSync(reader));
  const buffer = Buffer.alloc(1 << 20);
  return {
    wrap: (command: readonly string[]) => ['sh', '-c', 'exec "$@" > "$0" 2>&1', file, ...command],
    read: () => {
      try {
        return buffer.toString('utf8', 0, readSync(reader, buffer));
      } catch {
        return ''; // Empty: EAGAIN.
      }
    },
  };
}

export const OPERATION: Scenario[] = [
  {
    name: 'log-not-read',
    limitSeconds: 240,
    summary: 'nobody reads standard output and standard error: while running, at SIGTERM, and at the start',
    run: async (context) => {
      const log = logPipe(context);
      const env = await startEnvironment(context, { wrap: log.wrap, config: { log: { level: 'debug' } } });
      const traffic = env.traffic({ perSecond: 200 });
      await env.baseline(traffic);
      const untilDropped = async (since: number) =>
        eventually(
          'log records to be dropped',
          async () => ((await env.daemon.metric(DROPPED)) ?? 0) > since,
          { ms: DROPPED_TIMEOUT_MS, everyMs: 250 },
        );
      await untilDropped(0);
      const status = await env.daemon.probe('/healthz', 5000);
      if (status !== 200) env.fault(`/healthz answered ${status} while the log was not read`);

      let text = '';
      await eventually('the report of the dropped records', () => {
        text += log.read();
        return text.includes('log records dropped');
      });
      await untilDropped((await env.daemon.metric(DROPPED)) ?? 0);
      env.note(`${await env.daemon.metric(DROPPED)} log records dropped`);
      const exit = await env.daemon.terminate();
      if (exit?.code !== 0) env.fault(`SIGTERM while the log was not read: ${JSON.stringify(exit)}`);
      // The pipe is still full.
      await env.daemon.start();
      const reading = setInterval(log.read, 100);
      context.defer(() => clearInterval(reading));
      env.heal();
      return env.result(traffic);
    },
  },
  {
    name: 'reload-storm',
    limitSeconds: 120,
    summary:
      'SIGHUP while the configuration, a certificate and its key are written in pieces: none of the pieces is used',
    run: async (context) => {
      const file = (name: string) => join(context.dir, name);
      const [certificateFile, keyFile, configFile] = [
        file('cert.pem'),
        file('key.pem'),
        file('postrider.toml'),
      ];
      const authority = createAuthority();
      const pairs = [0, 1].map(() => authority.issue(['mx.postrider.example']));
      const [first] = pairs;
      writeFileSync(certificateFile, first?.cert ?? '');
      writeFileSync(keyFile, first?.key ?? '');
      const env = await startEnvironment(context, { config: { mx: { tls: { certificateFile, keyFile } } } });
      const config = readFileSync(configFile, 'utf8');
      const traffic = env.traffic();
      await env.baseline(traffic);

      const reload = () => process.kill(env.daemon.pid, 'SIGHUP');
      /** Empty, half, complete: with a reload and a pause at each step. */
      const writeInPieces = async (path: string, text: string) => {
        for (const share of [0, 0.5, 1]) {
          writeFileSync(path, text.slice(0, share * text.length));
          reload();
          await pause(100, context.signal);
        }
      };
      let handshakes = 0;
      const until = Date.now() + context.lasting(STORM_MS);
      for (let round = 1; Date.now() < until; round++) {
        const { cert, key } = pairs[round % pairs.length] ?? { cert: '', key: '' };
        await writeInPieces(configFile, config);
        await writeInPieces(certificateFile, cert);
        await writeInPieces(keyFile, key);
        const failure = await handshakeFault(env.daemon.ports.mx);
        handshakes++;
        if (failure !== null) env.fault(`STARTTLS in round ${round}: ${failure}`);
      }
      // A writer that failed: what it left is not used either.
      writeFileSync(configFile, '');
      writeFileSync(keyFile, '');
      reload();
      await eventually('the empty file to be refused', () =>
        /configuration not reloaded.*is empty|is empty.*configuration not reloaded/.test(env.daemon.log()),
      );
      // The files of certificates are also read every 5 seconds.
      await pause(6000, context.signal);
      const failure = await handshakeFault(env.daemon.ports.mx);
      if (failure !== null) env.fault(`STARTTLS with an empty key file: ${failure}`);
      const refused = env.daemon.log().split('configuration not reloaded').length - 1;
      env.note(`${handshakes} handshakes, ${refused} reloads refused`);
      env.heal();
      return env.result(traffic);
    },
  },
];

const STORM_MS = 15_000;

/** Why a client cannot begin TLS; null: it can. */
async function handshakeFault(port: number): Promise<string | null> {
  const client = await smtpClient(port);
  try {
    await client.say('EHLO mta.example');
    await client.startTls();
    return null;
  } catch (error) {
    return String(error);
  } finally {
    client.destroy();
  }
}
