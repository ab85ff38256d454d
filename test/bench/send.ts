import { thisMachine } from './machine.ts';
import { distinctHtmlOf, templateOf } from './message.ts';
import { readOptions } from './options.ts';
import { compare } from './peers/compare.ts';
import { startPeer } from './peers/peer.ts';
import { startPostfixWithOpenDkim } from './peers/postfix.ts';
import { postfixFault } from './peers/postfix-server.ts';
import { type PostriderBench, startPostrider } from './postrider.ts';
import { MX_HOSTS, type Receiver, startReceiver } from './receiver.ts';
import { type BenchmarkReport, formatReport } from './report.ts';
import { createResources } from './resources.ts';
import { faultsOf, type RunResult } from './result.ts';

/*
 * Throughput from the HTTP request to the receiving server's 250, compared with Postfix and OpenDKIM on the same machine:
 *
 *     npm run build && npm run bench -- --messages 20000
 *
 *   load ──HTTP──▶ postrider serve ──MX by DNS──▶ SMTP ──▶ sink     20 domains behind 4 providers
 *   smtp-source ──SMTP──▶ Postfix ──milter──▶ OpenDKIM … SMTP ──▶ the same sink
 *
 * All programs are separate processes on this machine (loopback only), so the rates include the CPU time of both ends.
 * Both sides are durable: Postrider runs with its defaults (a request is answered after its commit is on disk), Postfix
 * syncs its queue files.
 *
 * Each message has another text in its HTML, as of a program that renders its mail; `--content template` sends the same
 * template with two variables, which Postrider prepares once.
 *
 * `--peers` compares Postrider with Postfix + OpenDKIM, Exim, OpenSMTPD + dkimsign and Haraka in rounds, with mail of several
 * sizes, with TLS and with Ed25519. It prints the medians and the table of docs/benchmarks.md, and fails when less than 90 %
 * of a goal are met (peers/goals.ts). It installs Haraka with npm into a temporary directory; Exim and OpenSMTPD are
 * unpacked in EXIM_ROOT and OPENSMTPD_ROOT (test/bench/README.md); a server that is missing is named and left out.
 *
 * Columns and modes
 *   burst       the clients send as fast as they get responses. "delivered/s" is from the first request to the last
 *               250, which includes the time to empty the queue after the last response.
 *   sustained   at most --in-flight messages are accepted and not yet delivered: the rate, and the response times, that
 *               the machine sustains for hours.
 *   bytes       size of a message at the sink; the messages of the reference have the same size.
 *   CPU ms      of all threads of the server per message; "main" is the main thread, which runs the API and the
 *               database. "load" and "sink" are the processes of the benchmark, which use the same cores.
 *   CPU s       of the server for the run. "peak MiB" is its peak memory since its start.
 *   new conns   connections that the sink accepted in the run; those of the warm-up are still open.
 * The reference sends fewer messages (--reference); neither warm-up is counted. A run is valid only when every accepted
 * message arrived at the sink once and signed; otherwise the benchmark prints the faults and exits with 1.
 * Compare only figures of one machine without other load: see "load before".
 */
/** The default shaping for each of the providers. */
const CONNECTIONS_PER_SITE = 10;
const WARM_UP = 1000;

const values = readOptions({
  command: 'npm run bench',
  summary: `Throughput from the HTTP request to the receiving server's 250, next to Postfix with OpenDKIM where both are
installed. Exits with 1 when a message was lost, repeated or unsigned. Build first (npm run build).`,
  options: {
    messages: { integer: 20_000, help: 'messages of each run' },
    connections: { integer: 32, help: 'concurrent clients' },
    size: { integer: 10_240, help: 'bytes of html' },
    content: {
      choice: 'distinct',
      of: ['distinct', 'template'],
      help: 'html that differs in each message, or one template',
    },
    'in-flight': { integer: 1000, help: 'messages accepted and not yet delivered in the sustained run' },
    reference: { integer: 3000, min: 0, help: 'messages for Postfix and OpenDKIM; 0: without' },
    mode: { choice: 'both', of: ['burst', 'sustained', 'both', 'none'], help: 'runs of Postrider' },
    workers: { integer: 0, min: 0, help: 'delivery workers; 0: the default for this machine' },
    limit: { integer: 0, min: 0, help: 'time limit, in seconds; 0: 180, with --peers 7200' },
    json: { flag: 'print the result as JSON' },
    peers: {
      flag: 'compare several kinds of mail with several servers instead, in rounds; fails below 90 % of a goal',
    },
    rounds: { integer: 3, help: 'rounds of --peers' },
    share: { integer: 100, help: 'percentage of the usual number of messages in each round of --peers' },
    only: { text: 'CASE', help: 'only this case of --peers' },
  },
});

const settings = {
  messages: values.messages,
  connections: values.connections,
  size: values.size,
  inFlight: values['in-flight'],
  limitSeconds: values.limit || (values.peers ? 7200 : 180),
};

const resources = await createResources();
await resources.run(
  async () => {
    if (values.peers) {
      const options = { rounds: values.rounds, share: values.share / 100, only: values.only || null };
      return compare(resources, options);
    }
    const report = await bench();
    console.log(values.json ? JSON.stringify(report, null, 2) : formatReport(report, values.content));
    const all = [...report.runs, ...(report.reference === null ? [] : [report.reference])];
    return all.every((run) => faultsOf(run).length === 0);
  },
  { limitSeconds: settings.limitSeconds },
);

async function bench(): Promise<BenchmarkReport> {
  const machine = thisMachine();
  const receiver = await resources.start(() => startReceiver());
  const runs = values.mode === 'none' ? [] : await benchPostrider(receiver);
  const withoutReference = values.reference === 0 ? 'disabled by --reference 0' : postfixFault();
  const bytes = runs[0]?.bytes ?? settings.size * 2;
  const reference = withoutReference === null ? await benchReference(receiver, bytes) : null;
  const slowest = Math.min(...runs.map((run) => run.deliveredPerSecond));
  return {
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(),
    machine,
    settings,
    path: `20 domains, ${MX_HOSTS.length} MX hosts found by DNS, 1 sink`,
    runs,
    reference,
    withoutReference,
    ratio: reference === null || runs.length === 0 ? null : slowest / reference.deliveredPerSecond,
  };
}

async function benchPostrider(receiver: Receiver): Promise<RunResult[]> {
  const { connections, size, messages, inFlight } = settings;
  const daemonSettings = values.workers === 0 ? {} : { 'delivery.workers': values.workers };
  const postrider = await resources.start(() =>
    startPostrider({ receiver, sessions: connections, size, settings: daemonSettings }),
  );
  const content = { html: values.content === 'distinct' ? distinctHtmlOf(size) : templateOf(size) };
  const [fault] = faultsOf(await postrider.run('warm-up', WARM_UP, null, content));
  if (fault !== undefined) throw new Error(`the warm-up failed: ${fault}`);
  const modes: Record<string, (bench: PostriderBench) => Promise<RunResult>> = {
    burst: (bench) => bench.run('Postrider, burst', messages, null, content),
    sustained: (bench) => bench.run('Postrider, sustained', messages, inFlight, content),
  };
  const runs = [];
  for (const [mode, run] of Object.entries(modes)) {
    if (values.mode === mode || values.mode === 'both') runs.push(await run(postrider));
  }
  // The reference runs alone.
  await resources.stop(postrider);
  return runs;
}

async function benchReference(receiver: Receiver, bytes: number): Promise<RunResult> {
  const reference = await resources.start(() =>
    startPeer(startPostfixWithOpenDkim, {
      receiver,
      sessions: settings.connections,
      connections: MX_HOSTS.length * CONNECTIONS_PER_SITE,
      tls: false,
    }),
  );
  await reference.prepare(bytes);
  await reference.run(WARM_UP / 2);
  return reference.run(values.reference);
}
