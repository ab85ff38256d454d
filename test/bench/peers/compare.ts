import { findProgram } from '../../support/required-programs.ts';
import { thisMachine } from '../machine.ts';
import { distinctHtmlOf, templateOf } from '../message.ts';
import { type Content, startPostrider } from '../postrider.ts';
import { MX_HOSTS, startReceiver } from '../receiver.ts';
import type { Resources } from '../resources.ts';
import { faultsOf, median, type RunResult } from '../result.ts';
import { eximPeerFault, startEximWithDkim } from './exim.ts';
import {
  type CaseResult,
  DISTINCT_1_MB,
  DISTINCT_10_KB,
  DISTINCT_100_KB,
  describeVerdict,
  markdownTable,
  type PeerKind,
  verdictsOf,
} from './goals.ts';
import { startHaraka } from './haraka.ts';
import { openSmtpdFault, startOpenSmtpdWithDkimsign } from './opensmtpd.ts';
import { type Peer, type PeerOptions, type PeerServer, startPeer } from './peer.ts';
import { startPostfixWithOpenDkim } from './postfix.ts';
import { postfixFault } from './postfix-server.ts';

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

/** A server that Postrider is compared with. */
interface Competitor {
  kind: PeerKind;
  /** Why it cannot run here; null when it can. */
  fault: () => string | null;
  start: (options: PeerOptions) => Promise<PeerServer>;
}

/** In the order of the table. */
const COMPETITORS: readonly Competitor[] = [
  { kind: 'Postfix', fault: postfixFault, start: startPostfixWithOpenDkim },
  { kind: 'Exim', fault: eximPeerFault, start: startEximWithDkim },
  { kind: 'OpenSMTPD', fault: openSmtpdFault, start: startOpenSmtpdWithDkimsign },
  { kind: 'Haraka', fault: () => null, start: startHaraka },
];

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
    { name: DISTINCT_10_KB, content: distinct(10 * KB), counts: [3000, 1000], ...PLAIN },
    { name: DISTINCT_100_KB, content: distinct(100 * KB), counts: [800, 500], ...PLAIN },
    { name: DISTINCT_1_MB, content: distinct(1024 * KB), counts: [80, 80], ...PLAIN },
    { name: '1 KB, one template', content: derived(KB), counts: [3000, 1000], ...PLAIN },
    { name: '10 KB, one template', content: derived(10 * KB), counts: [3000, 1000], ...PLAIN },
    { name: '10 KB, one template, text part given', content: given, counts: [3000, 1000], ...PLAIN },
    { name: '100 KB, one template', content: derived(100 * KB), counts: [800, 500], ...PLAIN },
    { name: '1 MB, one template', content: derived(1024 * KB), counts: [80, 80], ...PLAIN },
    { name: '10 KB, TLS', content: derived(10 * KB), counts: [3000, 1000], tls: true, ed25519: false },
    { name: '10 KB, Ed25519', content: derived(10 * KB), counts: [3000, 1000], tls: false, ed25519: true },
  ];
}

/**
 * Postrider and the other servers, tuned and all durable, in turns: each round of a case sends the same mail through each
 * of them. A server that is not installed is left out. Prints the medians, the goals and the table of docs/benchmarks.md.
 * Returns whether every message arrived once and signed, and at least 90 % of every goal are met.
 */
export async function compare(
  resources: Resources,
  options: { rounds: number; share: number; only: string | null },
): Promise<boolean> {
  const { cpu, cores, load, node } = thisMachine();
  console.log(`${cores} × ${cpu}, Node ${node}, load ${load}, ${options.rounds} rounds\n`);
  const names = cases().map(({ name }) => name);
  const selected = cases().filter(({ name }) => options.only === null || name === options.only);
  if (selected.length === 0) throw new Error(`--only must be one of: ${names.join('; ')}`);
  const competitors = COMPETITORS.filter(({ kind, fault }) => {
    const reason = loadFault() ?? fault();
    if (reason !== null) console.log(`without ${kind}: ${reason}`);
    return reason === null;
  });
  const faults: string[] = [];
  const results: CaseResult[] = [];
  for (const [tls, ed25519] of SETUPS) {
    const group = selected.filter((one) => one.tls === tls && one.ed25519 === ed25519);
    if (group.length === 0) continue;
    results.push(...(await compareGroup(resources, group, ed25519 ? [] : competitors, options, faults)));
  }
  const verdicts = verdictsOf(results);
  console.log(`\n${markdownTable(results)}\n`);
  for (const verdict of verdicts) console.log(describeVerdict(verdict));
  const missed = verdicts.filter(({ result }) => result === 'missed');
  for (const verdict of missed) console.log(`MISSED by more than a tenth: ${describeVerdict(verdict)}`);
  for (const fault of faults) console.log(`FAULT: ${fault}`);
  return faults.length === 0 && missed.length === 0;
}

/** Why no other server can be fed here; null when they can. */
function loadFault(): string | null {
  return findProgram('smtp-source') === null ? 'smtp-source is not installed (package postfix)' : null;
}

/** Compares cases that need the same settings, with the same servers; prints each when it is finished. */
async function compareGroup(
  resources: Resources,
  group: readonly Case[],
  competitors: readonly Competitor[],
  { rounds, share }: { rounds: number; share: number },
  faults: string[],
): Promise<CaseResult[]> {
  const { tls = false, ed25519 = false } = group[0] ?? {};
  const receiver = await resources.start(() => startReceiver({ tls }));
  const common = { receiver, sessions: CLIENTS };
  const settings = { 'domains.ed25519': ed25519 };
  const postrider = await resources.start(() => startPostrider({ ...common, size: 10 * KB, settings }));
  const peers: { kind: PeerKind; peer: Peer }[] = [];
  for (const { kind, start } of competitors) {
    const connections = MX_HOSTS.length * CONNECTIONS_PER_SITE;
    const peer = await resources.start(() => startPeer(start, { ...common, connections, tls }));
    peers.push({ kind, peer });
  }

  const results: CaseResult[] = [];
  for (const { name, content, counts } of group) {
    const [own, others] = counts.map((count) => Math.max(20, Math.round(count * share)));
    if (own === undefined || others === undefined) throw new Error('a case without counts');
    const runOwn = () => postrider.run('Postrider', own, MAX_IN_FLIGHT, content);
    const warmUp = Math.round(WARM_UP_BYTES / (content.html.length + 10 * KB));
    await postrider.run('Postrider, warm-up', warmUp, MAX_IN_FLIGHT, content);
    const { bytes } = await runOwn();
    for (const { peer } of peers) await peer.prepare(bytes);
    for (const { peer } of peers) await peer.run(others);
    const result = {
      name,
      bytes,
      own: { ...noRounds(), mainThread: [] as number[], peakMiB: [] as number[] },
      peers: peers.map(({ kind, peer }) => ({ kind, name: peer.name, ...noRounds() })),
    };
    const record = async (run: RunResult, { rates, cpu }: { rates: number[]; cpu: number[] }) => {
      faults.push(...faultsOf(run).map((fault) => `${run.name}, ${name}: ${fault}`));
      const { messages, encrypted } = await receiver.counts();
      if (tls && encrypted < messages)
        faults.push(`${run.name}, ${name}: ${messages - encrypted} messages arrived without TLS`);
      rates.push(run.deliveredPerSecond);
      cpu.push(run.cpuMs.server);
    };
    for (let round = 0; round < rounds; round++) {
      const run = await runOwn();
      await record(run, result.own);
      result.own.mainThread.push(run.cpuMs.mainThread ?? 0);
      result.own.peakMiB.push(run.peakMiB ?? 0);
      for (const [index, { peer }] of peers.entries()) {
        const rounds = result.peers[index];
        if (rounds !== undefined) await record(await peer.run(others), rounds);
      }
    }
    print(result);
    results.push(result);
  }
  for (const { peer } of peers.toReversed()) await resources.stop(peer);
  await resources.stop(postrider);
  await resources.stop(receiver);
  return results;
}

function noRounds(): { rates: number[]; cpu: number[] } {
  return { rates: [], cpu: [] };
}

function print({ name, bytes, own, peers }: CaseResult): void {
  console.log(`${name} (${bytes.toFixed(0)} bytes)`);
  for (const server of [{ name: 'Postrider', ...own }, ...peers]) {
    const { rates } = server;
    const range = `${Math.min(...rates).toFixed(0)}–${Math.max(...rates).toFixed(0)}`;
    const cpu = median(server.cpu);
    const rate = median(rates);
    const rest =
      'mainThread' in server
        ? `main thread ${median(server.mainThread).toFixed(2)} ms, peak ${Math.max(...server.peakMiB).toFixed(0)} MiB`
        : `${(median(own.rates) / rate).toFixed(1)} × the rate, ${(cpu / median(own.cpu)).toFixed(1)} × CPU`;
    console.log(
      `  ${server.name.padEnd(28)} ${rate.toFixed(0).padStart(5)}/s (${range})  ${cpu.toFixed(2)} ms CPU  ${rest}`,
    );
  }
}
