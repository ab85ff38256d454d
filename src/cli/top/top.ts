import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { errorText } from '../../core/errors.ts';
import { OperatorFault } from '../../core/operator-fault.ts';
import { localUrl, requestDaemon } from '../../doctor/daemon-client.ts';
import { parseExposition } from '../../doctor/exposition.ts';
import { createCommand, type OptionValues, option } from '../command.ts';
import { type CliContext, tableOptions } from '../context.ts';
import { renderFrame } from './frame.ts';
import { createReadings, type Scrape } from './readings.ts';
import { openScreen } from './screen.ts';

/**
 * `postrider top`: the state of a running daemon, live in the terminal. It reads only `/metrics`, and needs the same
 * permission as monitoring.
 */
export function topCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'top',
    description: 'Show the running daemon live: rates, queue, sites, accounts, database',
    options: topOptions,
    help: `
Keys: q or Ctrl-C quits.

Reads /metrics with the key of api.metricsKeyFile in the configuration. Without a key the daemon responds only to clients on
its machine. NO_COLOR turns colors off.

Examples:
  postrider top
  postrider top --interval 1
  postrider top --once | head -8`,
    run: (options) => showTop(context, options),
  });
}

const MIN_INTERVAL_S = 1;
const MAX_INTERVAL_S = 60;
/** Size of a frame without a terminal. */
const DEFAULT_SIZE = { width: 120, height: 60 };

/** Throws InvalidArgumentError. */
function intervalSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= MIN_INTERVAL_S && seconds <= MAX_INTERVAL_S))
    throw new InvalidArgumentError(`Must be a number of seconds from ${MIN_INTERVAL_S} to ${MAX_INTERVAL_S}`);
  return seconds;
}

const topOptions = [
  option('--url <url>', 'base URL of the API (default: api.listen of the configuration)'),
  option('--interval <seconds>', 'time between two readings, 1 to 60', {
    parse: intervalSeconds,
    default: 2,
  }),
  option('--once', 'print one frame, after two readings; the default without a terminal'),
] as const;

async function showTop(
  context: CliContext,
  { url, interval, once }: OptionValues<typeof topOptions>,
): Promise<void> {
  const { api } = context.config();
  const target = metricsUrl(url ?? localUrl('api.listen', api.listen), api.metricsKey !== undefined);
  const read = () => readMetrics(target, api.metricsKey);
  const frame = { source: target.host, color: tableOptions().color };
  if (once === true || !process.stdout.isTTY || !process.stdin.isTTY) {
    const first = await read();
    await sleep(interval * 1000);
    const readings = createReadings(await read(), first);
    const size = DEFAULT_SIZE;
    context.print(
      renderFrame(readings, { ...frame, ...size, color: false, now: Date.now(), problem: null }).join('\n'),
    );
    return;
  }
  const screen = openScreen();
  let before: Scrape | null = null;
  let now: Scrape | null = null;
  let problem: string | null = null;
  const draw = () => {
    const readings = now === null ? null : createReadings(now, before);
    screen.draw(renderFrame(readings, { ...frame, ...screen.size(), now: Date.now(), problem }));
  };
  screen.onResize(draw);
  try {
    while (!screen.closed.aborted) {
      try {
        const next = await readMetrics(target, api.metricsKey, screen.closed);
        before = now;
        now = next;
        problem = null;
      } catch (error) {
        if (screen.closed.aborted) break;
        problem = `${errorText(error)} - trying again every ${interval} s`;
      }
      draw();
      // Rejects when the screen is closed.
      await sleep(interval * 1000, undefined, { signal: screen.closed }).catch(() => undefined);
    }
  } finally {
    screen.close();
  }
}

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])$/;

/** Throws when the URL is invalid, or when the key would cross a network unencrypted. */
function metricsUrl(base: string, hasKey: boolean): URL {
  let url: URL;
  try {
    url = new URL(`${base.replace(/(?<!\/)\/+$/, '')}/metrics`);
  } catch {
    throw new OperatorFault(`--url ${base} is not a URL: use one such as http://127.0.0.1:8080`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new OperatorFault(`--url ${base} must begin with http:// or https://`);
  if (hasKey && url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw new OperatorFault(
      `The key of api.metricsKeyFile is not sent to ${url.host} without TLS: use an https URL, or an SSH tunnel to the daemon's machine`,
    );
  return url;
}

/** Throws OperatorFault when the metrics cannot be read. */
async function readMetrics(url: URL, bearer: string | undefined, signal?: AbortSignal): Promise<Scrape> {
  const { status, text } = await requestDaemon({ origin: url.origin }, url.pathname, {
    bearer,
    signal,
  }).catch((error: unknown) => {
    throw new OperatorFault(`${url.href} cannot be read: ${errorText(error)}. Is the daemon running?`, {
      cause: error,
    });
  });
  if (status === 401)
    throw new OperatorFault(
      `${url.href} requires the key of api.metricsKeyFile: specify the daemon's configuration with --config, or run this command on its machine`,
    );
  if (status >= 300) throw new OperatorFault(`${url.href} returned status ${status}`);
  return { samples: parseExposition(text), at: performance.now() };
}
