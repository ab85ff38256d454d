import { parseArgs } from 'node:util';
import { thisMachine } from './machine.ts';
import { postfixReferenceFault } from './postfix-reference.ts';
import { type PostriderBench, startPostrider } from './postrider.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { startReference } from './reference.ts';
import { printed, type Report } from './report.ts';
import { setStage } from './resources.ts';
import { faultsOf, type RunResult } from './result.ts';

/*
 * How fast mail goes through, from the HTTP request to the receiving server's 250, and how fast it goes through
 * Postfix with OpenDKIM on the same machine in the same minutes:
 *
 *     npm run build && npm run bench -- --messages 20000
 *
 *   load ──HTTP──▶ postrider serve ──MX by DNS──▶ SMTP ──▶ sink     20 domains behind 4 providers
 *   smtp-source ──SMTP──▶ Postfix ──milter──▶ OpenDKIM … SMTP ──▶ the same sink
 *
 * Everything is a process of its own on this machine (loopback only), so the rates are those of the machine
 * with both its ends on it. Nothing that makes mail safe is turned off on either side: Postrider runs with its
 * defaults (a request is answered once it is on the disk), Postfix syncs its queue files.
 *
 * How to read it
 *   burst       the callers send as fast as they are answered. "delivered/s" counts from the first request to
 *               the last 250, so it holds the time in which the queue is emptied after the last answer.
 *   sustained   as fast as mail leaves: no more than --in-flight messages accepted and not yet delivered. What
 *               the machine can keep up for hours, and with what answering times.
 *   octets      of a message at the sink; the reference gets messages of that size.
 *   CPU ms      of all threads of the server for one message; "main" is Node's event loop among them, where the
 *               interface and the database are. "load" and "sink" are our own two ends, which also need cores.
 *   CPU s       the server's for the run. "peak MiB" is the most memory it held at once since its start.
 *   new conns   connections that the sink took in the run; those of the warm-up are still open.
 * The reference gets fewer messages (--reference), a rate needs no more; its warm-up is not counted, as ours
 * is not. A run counts only when every accepted message came to the sink once and signed: the benchmark counts
 * them by recipient there, says so when not, and ends with 1.
 * Compare figures of one machine only, when nothing else runs on it: look at "load before".
 */
const MX_HOSTS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
/** Of the built-in shaping, for each of the providers. */
const CONNECTIONS_PER_SITE = 10;
const WARM_UP = 1000;

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '20000' },
    /** Callers at once. */
    connections: { type: 'string', default: '32' },
    /** Bytes of html. */
    size: { type: 'string', default: '10240' },
    'in-flight': { type: 'string', default: '1000' },
    /** Messages for Postfix + OpenDKIM; 0: without. */
    reference: { type: 'string', default: '3000' },
    /** `burst`, `sustained`, `both` or `none`. */
    mode: { type: 'string', default: 'both' },
    /** Seconds, after which it gives up. */
    limit: { type: 'string', default: '180' },
    json: { type: 'boolean', default: false },
  },
});

const whole = (name: Exclude<keyof typeof values, 'json'>): number => {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name} must be a whole number`);
  return number;
};
const settings = {
  messages: whole('messages'),
  connections: whole('connections'),
  size: whole('size'),
  inFlight: whole('in-flight'),
  limitSeconds: whole('limit'),
};

const stage = await setStage();
const given = new Promise<never>((_, reject) => {
  const giveUp = (why: string) => () => reject(new Error(why));
  setTimeout(giveUp(`not done after ${settings.limitSeconds} s`), settings.limitSeconds * 1000).unref();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, giveUp(signal));
});
try {
  const report = await Promise.race([bench(), given]);
  console.log(values.json ? JSON.stringify(report, null, 2) : printed(report));
  const all = [...report.runs, ...(report.reference === null ? [] : [report.reference])];
  process.exitCode = all.some((run) => faultsOf(run).length > 0) ? 1 : 0;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await stage.clear();
}

async function bench(): Promise<Report> {
  const machine = thisMachine();
  const receiver = await stage.use(() => startReceiver(MX_HOSTS));
  const runs = values.mode === 'none' ? [] : await benchPostrider(receiver);
  const withoutReference = whole('reference') === 0 ? 'not wanted' : postfixReferenceFault();
  const octets = runs[0]?.octets ?? settings.size * 2;
  const reference = withoutReference === null ? await benchReference(receiver, octets) : null;
  const ours = Math.min(...runs.map((run) => run.deliveredPerSecond));
  return {
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(),
    machine,
    settings,
    path: `20 domains, ${MX_HOSTS.length} MX hosts found by DNS, 1 sink`,
    runs,
    reference,
    withoutReference,
    ratio: reference === null || runs.length === 0 ? null : ours / reference.deliveredPerSecond,
  };
}

async function benchPostrider(receiver: Receiver): Promise<RunResult[]> {
  const { connections, size, messages, inFlight } = settings;
  const postrider = await stage.use(() => startPostrider({ receiver, sessions: connections, size }));
  const [fault] = faultsOf(await postrider.run('warm-up', WARM_UP, null));
  if (fault !== undefined) throw new Error(`nothing to measure: ${fault}`);
  const modes: Record<string, (bench: PostriderBench) => Promise<RunResult>> = {
    burst: (bench) => bench.run('Postrider, burst', messages, null),
    sustained: (bench) => bench.run('Postrider, sustained', messages, inFlight),
  };
  const runs = [];
  for (const [mode, run] of Object.entries(modes)) {
    if (values.mode === mode || values.mode === 'both') runs.push(await run(postrider));
  }
  // The reference gets the machine for itself.
  await stage.remove(postrider);
  return runs;
}

async function benchReference(receiver: Receiver, octets: number): Promise<RunResult> {
  const reference = await stage.use(() =>
    startReference({
      receiver,
      sessions: settings.connections,
      connections: MX_HOSTS.length * CONNECTIONS_PER_SITE,
      octets,
    }),
  );
  await reference.run(WARM_UP / 2);
  return reference.run(whole('reference'));
}
