import { request } from 'node:http';
import { dsn } from '../../smtp/mx/mails.ts';
import { smtpClient } from '../../support/smtp-client.ts';
import { verifiedDomain } from '../../support/verified-domain.ts';
import { startAbuse } from '../abuse.ts';
import type { AbuseKind, Attacker } from '../abuse-process.ts';
import { ATTACKED_DOMAIN } from '../abuses-http.ts';
import type { Scenario } from '../scenario.ts';
import { pause, type Stage, within } from '../stage.ts';
import { percentile } from '../traffic.ts';
import { startWorld, type World } from '../world.ts';

/**
 * Strangers and paying customers who mean harm, each kind of abuse beside a well-behaved account. Its latency in the
 * abused phase is compared with its quiet phase in the same run, and a probe uses the attacked service as an
 * ordinary client does.
 */
interface Row {
  name: string;
  summary: string;
  abuse: AbuseKind;
  probe?: keyof typeof PROBES;
  /** Until it has its full effect, default 1.5 s. */
  settleMs?: number;
  /** What its p99 may grow by, default MOST_RATIO. */
  mostRatio?: number;
  short?: true;
}

const PER_SECOND = 40;
const QUIET_MS = 5000;
const ABUSED_MS = 8000;
const SETTLE_MS = 1500;
const ABUSERS = 3;
/** A daemon that stands still is to be reported, not to be given up. */
const LIMIT_SECONDS = 180;
/** An account's p99 beside abuse, in quiet phases. */
const MOST_RATIO = 3;
/** Differences below this are the machine's own noise: two cores also run the clients and the destinations. */
const NOISE_MS = 25;
const PROBE_EVERY_MS = 250;
const PROBE_PATIENCE_MS = 10_000;
/** Of the probes. */
const LEAST_SERVED = 0.9;
/** Ordinary clients come from here, attackers from 127.66.0.0/16. */
const CLIENT = '127.9.0.1';

/** Uses a service once; resolves with what went wrong, or null. */
type Probe = (world: World, used: Set<string>) => Promise<string | null>;

const PROBES = {
  /** A visitor of the public pages. */
  page: (world) =>
    new Promise((resolve) => {
      const to = { host: '127.0.0.1', port: world.daemon.ports.public, path: '/', localAddress: CLIENT };
      const req = request({ ...to, agent: false }, (res) => {
        res.resume();
        resolve(res.statusCode === 503 || res.statusCode === 429 ? `HTTP ${res.statusCode}` : null);
      });
      req.on('error', (error) => resolve(error.message)).end();
    }),
  /** A server that returns a message which it could not deliver after all. */
  bounce: async (world, used) => {
    const recipient = [...world.ledger.accepted.keys()].find(
      (one) => !used.has(one) && world.ledger.senderOf(one) !== undefined,
    );
    if (recipient === undefined) return 'nothing was delivered that could bounce';
    used.add(recipient);
    const client = await smtpClient(world.daemon.ports.mx, { from: CLIENT });
    try {
      const hello = await client.say('EHLO mx.d0.example');
      if (!hello.startsWith('250')) return hello;
      const reply = await client.mail('', world.ledger.senderOf(recipient) ?? '', dsn({ recipient }));
      return reply.startsWith('250') ? null : reply;
    } finally {
      client.destroy();
    }
  },
  /** A program that logs in to submit mail. */
  login: async (world) => {
    const { accountId, keys } = world.daemon.api;
    const client = await smtpClient(world.daemon.ports.submission, { from: CLIENT });
    try {
      await client.say('EHLO app.kunde.example');
      const plain = Buffer.from(`\0${accountId}\0${keys.transactional}`).toString('base64');
      const reply = await client.say(`AUTH PLAIN ${plain}`);
      return reply.startsWith('235') ? null : reply;
    } finally {
      client.destroy();
    }
  },
} satisfies Record<string, Probe>;

interface Served {
  tried: number;
  served: number;
  /** What went wrong, most recent last. */
  problems: string[];
}

/** Probes at a steady rate for some time, and waits for the last answers. */
async function probeFor(world: World, probe: Probe, used: Set<string>, ms: number): Promise<Served> {
  const result: Served = { tried: 0, served: 0, problems: [] };
  const open: Promise<void>[] = [];
  const until = Date.now() + ms;
  while (Date.now() < until && !world.stage.signal.aborted) {
    result.tried++;
    const one = within(
      PROBE_PATIENCE_MS,
      probe(world, used).then(
        (problem) => problem ?? 'served',
        (error: Error) => error.message,
      ),
    );
    open.push(
      one.then((said) => {
        if (said === 'served') result.served++;
        else result.problems.push(said ?? 'no answer in time');
      }),
    );
    await pause(PROBE_EVERY_MS, world.stage.signal);
  }
  await Promise.all(open);
  return result;
}

function scenario(row: Row): Scenario {
  const { name, summary, abuse: kind, probe, settleMs = SETTLE_MS, mostRatio = MOST_RATIO, short } = row;
  const run = async (stage: Stage) => {
    const world = await startWorld(stage);
    // What the attackers send is not in the ledger.
    await world.destination([ATTACKED_DOMAIN], { onMessage: () => undefined });
    const accounts: Attacker[] = [];
    for (let n = 0; n < ABUSERS; n++) {
      const api = await world.daemon.account(`Hostile ${n}`);
      const domain = `hostile${n}.example`;
      await verifiedDomain(world.daemon, world.dns, domain, { api });
      accounts.push({ accountId: api.accountId, keys: api.keys, domain });
    }
    // What the attackers received themselves: it names addresses that their mail is accepted at.
    const received = world.traffic({ count: 10, recipients: 'attacker' });
    await pause(1000, stage.signal);
    await received.settled();
    const addresses = [...world.ledger.accepted.keys()].flatMap((one) => world.ledger.senderOf(one) ?? []);
    const used = new Set(world.ledger.accepted.keys());

    const traffic = world.traffic({ perSecond: PER_SECOND });
    await world.baseline(traffic);
    const phase = async (ms: number) => {
      const began = Date.now();
      const served =
        probe === undefined
          ? await pause(ms, stage.signal).then(() => null)
          : await probeFor(world, PROBES[probe], used, ms);
      return { began, ended: Date.now(), served };
    };
    const quiet = await phase(stage.lasting(QUIET_MS));
    const abuse = await startAbuse(stage, {
      kind,
      ports: world.daemon.ports,
      accounts,
      addresses,
    });
    await pause(settleMs, stage.signal);
    const abused = await phase(stage.lasting(ABUSED_MS));
    world.note(`abuse: ${JSON.stringify(abuse.counts).slice(0, 150)}`);
    await abuse.stop();
    world.heal();
    const result = await world.result(traffic);

    // Sends that were begun in the phase, whenever they were answered.
    const p99 = ({ began, ended }: { began: number; ended: number }) =>
      percentile(
        traffic.latencies.filter(({ at }) => at >= began && at < ended).map(({ ms }) => ms),
        0.99,
      );
    const [before, meanwhile] = [p99(quiet), p99(abused)];
    const ratio = meanwhile / Math.max(before, NOISE_MS);
    result.notes.push(
      `p99 of a send: ${before.toFixed(0)} ms quiet, ${meanwhile.toFixed(0)} ms beside the abuse`,
    );
    // On a machine that is shared, as in CI, a latency proves nothing: the short variant judges the ledger.
    if (ratio > mostRatio && !stage.short)
      result.faults.push(`p99 of the well-behaved account is ${ratio.toFixed(1)} times its quiet value`);
    if (abused.served !== null) {
      const { tried, served, problems } = abused.served;
      result.notes.push(`${probe}: ${served} of ${tried} served beside the abuse`);
      if (served < tried * LEAST_SERVED)
        result.faults.push(
          `${tried - served} of ${tried} ordinary clients were not served: ${problems.at(-1)}`,
        );
    }
    return result;
  };
  return { name, summary, run, limitSeconds: LIMIT_SECONDS, ...(short ? { short } : {}) };
}

const LISTENERS: Row[] = [
  {
    name: 'flood-api',
    summary: 'connection flood and slow clients on the API listener',
    abuse: 'flood-api',
  },
  {
    name: 'flood-public',
    summary: 'connection flood and slow clients on the public listener',
    abuse: 'flood-public',
    probe: 'page',
  },
  {
    name: 'flood-mx',
    summary: 'connections from four addresses that take every slot of the MX listener',
    abuse: 'flood-mx',
    probe: 'bounce',
  },
  {
    name: 'flood-submission',
    summary: 'held connections and wrong passwords on the submission listener',
    abuse: 'flood-submission',
    probe: 'login',
  },
  {
    name: 'mx-recipients',
    summary: 'MAIL, 90 × RCPT, RSET without end on 300 connections, genuine bounces beside',
    abuse: 'recipients',
    probe: 'bounce',
    short: true,
  },
  {
    name: 'mx-held-uploads',
    summary: 'mails whose final dot never comes fill the shared budget, genuine bounces beside',
    abuse: 'held-uploads',
    settleMs: 6000,
    probe: 'bounce',
  },
  {
    name: 'mx-report-bombs',
    summary: 'reports that unpack to 10 MB of XML elements, genuine bounces beside',
    abuse: 'report-bombs',
    probe: 'bounce',
  },
];

const TENANTS: Row[] = [
  { name: 'tenant-keys', summary: 'three accounts register domains without end', abuse: 'keys' },
  {
    name: 'tenant-errors',
    summary: 'three accounts send batches with 800,000 invalid attachments',
    abuse: 'errors',
  },
  {
    name: 'tenant-uploads',
    summary: 'three accounts hold nine large uploads and many small ones',
    abuse: 'uploads',
    settleMs: 6000,
  },
  {
    name: 'tenant-json',
    summary: 'three accounts send valid JSON that is expensive to check',
    abuse: 'json',
    short: true,
  },
  { name: 'tenant-unread', summary: '300 connections that never read the responses', abuse: 'unread' },
  {
    name: 'tenant-requests',
    summary: 'three accounts send as much valid mail as they can',
    abuse: 'requests',
    // What is accepted has to be delivered: it keeps both cores busy, those of the event loop included.
    mostRatio: 10,
  },
];

export const ABUSE: Scenario[] = [...LISTENERS, ...TENANTS].map(scenario);
