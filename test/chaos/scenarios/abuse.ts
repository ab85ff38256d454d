import { request } from 'node:http';
import { dsn } from '../../smtp/mx/mails.ts';
import { smtpClient } from '../../support/smtp-client.ts';
import { verifiedDomain } from '../../support/verified-domain.ts';
import { startAbuse } from '../abuse.ts';
import type { AbuseKind, Attacker } from '../abuse-process.ts';
import { ATTACKED_DOMAIN } from '../abuses-http.ts';
import { pause, type ScenarioContext, within } from '../context.ts';
import { type Environment, startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';
import { percentile } from '../traffic.ts';

/**
 * Abuse by unknown clients and by accounts, while another account sends normally. Its latency during the abuse is compared
 * with that of a quiet phase in the same run, and a probe uses the attacked service as an ordinary client does.
 */
interface Row {
  name: string;
  summary: string;
  abuse: AbuseKind;
  probe?: keyof typeof PROBES;
  /** Until the abuse has its full effect. Default: 1.5 s. */
  settleMs?: number;
}

const PER_SECOND = 40;
const QUIET_MS = 5000;
const ABUSED_MS = 8000;
const SETTLE_MS = 1500;
const ABUSERS = 3;
/** Long enough to report a daemon that does not respond. */
const LIMIT_SECONDS = 180;
/** A machine on which the quiet p99 is above this is busy with something else. */
const MAX_QUIET_MS = 50;
const PROBE_INTERVAL_MS = 250;
const PROBE_TIMEOUT_MS = 10_000;
/** Share of the probes. */
const MIN_SERVED = 0.9;
/** Source address of ordinary clients; attackers use 127.66.0.0/16. */
const CLIENT = '127.9.0.1';

/** Uses a service once; resolves with the problem, null: it was served. */
type Probe = (env: Environment, used: Set<string>) => Promise<string | null>;

const PROBES = {
  /** A visitor of the public pages. */
  page: (env) =>
    new Promise((resolve) => {
      const to = { host: '127.0.0.1', port: env.daemon.ports.public, path: '/', localAddress: CLIENT };
      const req = request({ ...to, agent: false }, (res) => {
        res.resume();
        resolve(res.statusCode === 503 || res.statusCode === 429 ? `HTTP ${res.statusCode}` : null);
      });
      req.on('error', (error) => resolve(error.message)).end();
    }),
  /** A server that returns a message as undeliverable. */
  bounce: async (env, used) => {
    const recipient = [...env.ledger.accepted.keys()].find(
      (one) => !used.has(one) && env.ledger.senderOf(one) !== undefined,
    );
    if (recipient === undefined) return 'no delivered message is left to return';
    used.add(recipient);
    const client = await smtpClient(env.daemon.ports.mx, { from: CLIENT });
    try {
      const hello = await client.say('EHLO mx.d0.example');
      if (!hello.startsWith('250')) return hello;
      const reply = await client.mail('', env.ledger.senderOf(recipient) ?? '', dsn({ recipient }));
      return reply.startsWith('250') ? null : reply;
    } finally {
      client.destroy();
    }
  },
  /** A program that logs in to submit mail. */
  login: async (env) => {
    const { accountId, keys } = env.daemon.api;
    const client = await smtpClient(env.daemon.ports.submission, { from: CLIENT });
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
  /** The problems, most recent last. */
  problems: string[];
}

/** Probes at a steady rate for some time and waits for the last results. */
async function probeFor(env: Environment, probe: Probe, used: Set<string>, ms: number): Promise<Served> {
  const result: Served = { tried: 0, served: 0, problems: [] };
  const open: Promise<void>[] = [];
  const until = Date.now() + ms;
  while (Date.now() < until && !env.context.signal.aborted) {
    result.tried++;
    const one = within(
      PROBE_TIMEOUT_MS,
      probe(env, used).then(
        (problem) => problem ?? 'served',
        (error: Error) => error.message,
      ),
    );
    open.push(
      one.then((state) => {
        if (state === 'served') result.served++;
        else result.problems.push(state ?? 'no response in time');
      }),
    );
    await pause(PROBE_INTERVAL_MS, env.context.signal);
  }
  await Promise.all(open);
  return result;
}

function scenario(row: Row): Scenario {
  const { name, summary, abuse: kind, probe, settleMs = SETTLE_MS } = row;
  const run = async (context: ScenarioContext) => {
    const env = await startEnvironment(context);
    // Mail of the attackers is not in the ledger.
    await env.destination([ATTACKED_DOMAIN], { onMessage: () => undefined });
    const accounts: Attacker[] = [];
    for (let n = 0; n < ABUSERS; n++) {
      const api = await env.daemon.account(`Hostile ${n}`);
      const domain = `hostile${n}.example`;
      await verifiedDomain(env.daemon, env.dns, domain, { api });
      accounts.push({ accountId: api.accountId, keys: api.keys, domain });
    }
    // Mail that the attackers received: its return paths are addresses that accept their mail.
    const received = env.traffic({ count: 10, recipients: 'attacker' });
    await pause(1000, context.signal);
    await received.settled();
    const addresses = [...env.ledger.accepted.keys()].flatMap((one) => env.ledger.senderOf(one) ?? []);
    const used = new Set(env.ledger.accepted.keys());

    const traffic = env.traffic({ perSecond: PER_SECOND });
    await env.baseline(traffic);
    const phase = async (ms: number) => {
      const began = Date.now();
      const served =
        probe === undefined
          ? await pause(ms, context.signal).then(() => null)
          : await probeFor(env, PROBES[probe], used, ms);
      return { began, ended: Date.now(), served };
    };
    const quiet = await phase(QUIET_MS);
    const abuse = await startAbuse(context, {
      kind,
      ports: env.daemon.ports,
      accounts,
      addresses,
    });
    await pause(settleMs, context.signal);
    const abused = await phase(ABUSED_MS);
    env.note(`abuse: ${JSON.stringify(abuse.counts).slice(0, 150)}`);
    await abuse.stop();
    env.heal();
    const result = await env.result(traffic);

    // Sends that began in the phase, whenever they ended.
    const p99 = ({ began, ended }: { began: number; ended: number }) =>
      percentile(
        traffic.latencies.filter(({ at }) => at >= began && at < ended).map(({ ms }) => ms),
        0.99,
      );
    const [quietMs, abusedMs] = [p99(quiet), p99(abused)];
    const unjudged = quietMs > MAX_QUIET_MS ? 'not judged: the machine is busy' : null;
    result.isolation = { quietMs, abusedMs, unjudged };
    result.notes.push(
      `p99 of a send: ${quietMs.toFixed(0)} ms quiet, ${abusedMs.toFixed(0)} ms during the abuse`,
    );
    if (unjudged !== null) result.notes.push(`${unjudged}: a quiet p99 above ${MAX_QUIET_MS} ms`);
    if (abused.served !== null) {
      const { tried, served, problems } = abused.served;
      result.notes.push(`${probe}: ${served} of ${tried} served during the abuse`);
      if (served < tried * MIN_SERVED)
        result.faults.push(
          `${tried - served} of ${tried} ordinary clients were not served: ${problems.at(-1)}`,
        );
    }
    return result;
  };
  return { name, summary, run, limitSeconds: LIMIT_SECONDS };
}

const LISTENER_ROWS: Row[] = [
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
    name: 'flood-full',
    summary: 'more half-sent requests than the public listener has connections',
    abuse: 'half-requests',
    settleMs: 6000,
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
    summary: 'endless MAIL, 90 × RCPT, RSET on 300 connections while genuine bounces arrive',
    abuse: 'recipients',
    probe: 'bounce',
  },
  {
    name: 'mx-held-uploads',
    summary: 'mails without a final dot fill the shared budget while genuine bounces arrive',
    abuse: 'held-uploads',
    settleMs: 6000,
    probe: 'bounce',
  },
  {
    name: 'mx-report-bombs',
    summary: 'reports that unpack to 10 MB of XML elements while genuine bounces arrive',
    abuse: 'report-bombs',
    probe: 'bounce',
  },
];

/** Twenty floods that an account can cause with what the API offers. */
const TENANT_ROWS: Row[] = [
  { name: 'tenant-keys', summary: 'three accounts register domains endlessly', abuse: 'keys' },
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
  },
  { name: 'tenant-unread', summary: '300 connections that never read the responses', abuse: 'unread' },
  {
    name: 'tenant-requests',
    summary: 'three accounts send as much valid mail as they can',
    abuse: 'requests',
  },
  { name: 'tenant-html', summary: 'three accounts send distinct HTML of 1 MB full of tags', abuse: 'html' },
  {
    name: 'tenant-batches',
    summary: 'three accounts send batches of 500 invalid messages',
    abuse: 'batches',
  },
  { name: 'tenant-imports', summary: 'three accounts import files of 20,000 contacts', abuse: 'imports' },
  {
    name: 'tenant-suppressions',
    summary: 'three accounts import files of 20,000 suppressions',
    abuse: 'suppressions',
  },
  {
    name: 'tenant-segments',
    summary: 'three accounts preview segments with twenty conditions that no index answers',
    abuse: 'segments',
  },
  { name: 'tenant-searches', summary: 'three accounts search lists that have nothing', abuse: 'searches' },
  {
    name: 'tenant-liquid',
    summary: 'three accounts preview templates with a million turns',
    abuse: 'liquid',
  },
  { name: 'tenant-mjml', summary: 'three accounts preview MJML of 500 sections', abuse: 'mjml' },
  {
    name: 'tenant-webhooks',
    summary: 'three accounts send mail with 50 webhooks each that never respond',
    abuse: 'webhooks',
  },
  { name: 'tenant-raw', summary: 'three accounts send whole mails with 90 parts', abuse: 'raw' },
  { name: 'tenant-submission', summary: 'three accounts submit mails of 2.5 MB', abuse: 'submission' },
  { name: 'tenant-media', summary: 'three accounts upload images of 49 million pixels', abuse: 'media' },
  { name: 'tenant-contents', summary: 'three accounts read messages of 3 MB', abuse: 'contents' },
  { name: 'tenant-inbound', summary: 'mails of 1 MB to routes of three accounts', abuse: 'inbound' },
];

/** Abuse by clients without a key. */
export const LISTENERS: Scenario[] = LISTENER_ROWS.map(scenario);
/** Abuse by accounts. */
export const TENANTS: Scenario[] = TENANT_ROWS.map(scenario);
