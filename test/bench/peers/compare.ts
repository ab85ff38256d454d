import { thisMachine } from '../machine.ts';
import { distinctHtmlOf, templateOf } from '../message.ts';
import { type Content, startPostrider } from '../postrider.ts';
import { MX_HOSTS, startReceiver } from '../receiver.ts';
import type { Resources } from '../resources.ts';
import { faultsOf, median, type RunResult } from '../result.ts';
import { startHaraka } from './haraka.ts';
import { type Peer, startPeer } from './peer.ts';
import { startPostfixWithOpenDkim } from './postfix.ts';

/** A kind of mail that the servers are compared with. */
interface Case {
  name: string;
  content: Content;
  /** Messages of a round, for Postrider and for each other server. */
  counts: [postrider: number, peer: number];
  tls: boolean;
  /** Postrider signs a second time, with Ed25519; the others cannot. */
  ed25519: boolean;
}

/** Messages delivered per second in each round, by the name of the server. */
interface CaseResult {
  name: string;
  /** Mean size of a message at the sink. */
  bytes: number;
  rates: Map<string, number[]>;
  /** CPU milliseconds of the server per message, by name. */
  cpu: Map<string, number[]>;
}

const KB = 1024;
const CONNECTIONS_PER_SITE = 10;
const CLIENTS = 32;
/**
 * HTML sent before the first round of a case: 10,000 messages of 10 KB. Until then V8 compiles the program, which takes a fifth
 * of the CPU time; the other servers are compiled already.
 */
const WARM_UP_BYTES = 10_000 * 20 * KB;
/** Messages that are accepted and not yet delivered: the rates are those that a server sustains. The others limit themselves. */
const MAX_IN_FLIGHT = 1000;
/** Settings of the servers, for the cases that need them. */
const SETUPS = [
  [false, false],
  [true, false],
  [false, true],
] as const;
const PLAIN = { tls: false, ed25519: false };

function cases(): Case[] {
  const derived = (bytes: number) => ({ html: templateOf(bytes) });
  const distinct = (bytes: number) => ({ html: distinctHtmlOf(bytes) });
  const given = { html: templateOf(10 * KB), text: 'Your order was shipped.\n'.repeat(50) };
  return [
    { name: '1 KB', content: derived(KB), counts: [3000, 1000], ...PLAIN },
    { name: '10 KB', content: derived(10 * KB), counts: [3000, 1000], ...PLAIN },
    { name: '10 KB, given text', content: given, counts: [3000, 1000], ...PLAIN },
    { name: '10 KB, distinct HTML', content: distinct(10 * KB), counts: [3000, 1000], ...PLAIN },
    { name: '100 KB', content: derived(100 * KB), counts: [800, 500], ...PLAIN },
    { name: '100 KB, distinct HTML', content: distinct(100 * KB), counts: [800, 500], ...PLAIN },
    { name: '1 MB', content: derived(1024 * KB), counts: [80, 80], ...PLAIN },
    { name: '10 KB, TLS', content: derived(10 * KB), counts: [3000, 1000], tls: true, ed25519: false },
    { name: '10 KB, Ed25519', content: derived(10 * KB), counts: [3000, 1000], tls: false, ed25519: true },
  ];
}

/**
 * Postrider, Postfix with OpenDKIM, and Haraka with its DKIM plugin, tuned and all durable, in turns: each round of a case
 * sends the same mail through each of them. Prints the medians. Returns whether every message arrived once and signed.
 */
export async function compare(
  resources: Resources,
  options: { rounds: number; share: number; only: string | null },
): Promise<boolean> {
  const { cpu, cores, load, node } = thisMachine();
  console.log(`${cores} × ${cpu}, Node ${node}, load ${load}, ${options.rounds} rounds\n`);
  const selected = cases().filter(({ name }) => options.only === null || name === options.only);
  if (selected.length === 0)
    throw new Error(
      `--only must be one of: ${cases()
        .map(({ name }) => name)
        .join('; ')}`,
    );
  const faults: string[] = [];
  for (const [tls, ed25519] of SETUPS) {
    const group = selected.filter((one) => one.tls === tls && one.ed25519 === ed25519);
    if (group.length === 0) continue;
    for (const result of await compareGroup(resources, group, options, faults)) print(result);
  }
  for (const fault of faults) console.log(`FAULT: ${fault}`);
  return faults.length === 0;
}

/** Compares cases that need the same settings, with the same servers. */
async function compareGroup(
  resources: Resources,
  group: readonly Case[],
  { rounds, share }: { rounds: number; share: number },
  faults: string[],
): Promise<CaseResult[]> {
  const { tls = false, ed25519 = false } = group[0] ?? {};
  const receiver = await resources.start(() => startReceiver({ tls }));
  const common = { receiver, sessions: CLIENTS };
  const settings = { 'domains.ed25519': ed25519 };
  const postrider = await resources.start(() => startPostrider({ ...common, size: 10 * KB, settings }));
  const peers: Peer[] = [];
  for (const start of ed25519 ? [] : [startPostfixWithOpenDkim, startHaraka]) {
    const connections = MX_HOSTS.length * CONNECTIONS_PER_SITE;
    peers.push(await resources.start(() => startPeer(start, { ...common, connections, tls })));
  }

  const results: CaseResult[] = [];
  for (const { name, content, counts } of group) {
    const [own, others] = counts.map((count) => Math.max(20, Math.round(count * share)));
    if (own === undefined || others === undefined) throw new Error('a case without counts');
    const runOwn = () => postrider.run('Postrider', own, MAX_IN_FLIGHT, content);
    const warmUp = Math.round(WARM_UP_BYTES / (content.html.length + 10 * KB));
    await postrider.run('Postrider, warm-up', warmUp, MAX_IN_FLIGHT, content);
    const { bytes } = await runOwn();
    for (const peer of peers) await peer.prepare(bytes);
    for (const peer of peers) await peer.run(others);
    const result: CaseResult = { name, bytes, rates: new Map(), cpu: new Map() };
    const record = (run: RunResult) => {
      faults.push(...faultsOf(run).map((fault) => `${run.name}, ${name}: ${fault}`));
      append(result.rates, run.name, run.deliveredPerSecond);
      append(result.cpu, run.name, run.cpuMs.server);
    };
    for (let round = 0; round < rounds; round++) {
      record(await runOwn());
      for (const peer of peers) record(await peer.run(others));
    }
    results.push(result);
  }
  for (const peer of peers.toReversed()) await resources.stop(peer);
  await resources.stop(postrider);
  await resources.stop(receiver);
  return results;
}

function append(lists: Map<string, number[]>, name: string, value: number): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [value]);
  else list.push(value);
}

function print({ name, bytes, rates, cpu }: CaseResult): void {
  const own = median(rates.get('Postrider') ?? []);
  console.log(`${name} (${bytes.toFixed(0)} bytes)`);
  for (const [server, list] of rates) {
    const rate = median(list);
    const ratio = server === 'Postrider' ? '' : `  ${(own / rate).toFixed(1)} ×`;
    const range = `${Math.min(...list).toFixed(0)}–${Math.max(...list).toFixed(0)}`;
    const cost = median(cpu.get(server) ?? []).toFixed(2);
    console.log(`  ${server.padEnd(28)} ${rate.toFixed(0).padStart(5)}/s (${range})  ${cost} ms CPU${ratio}`);
  }
}
