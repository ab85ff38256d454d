// Long: moves an account between two daemons and back, while programs send and change contacts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { databaseFileIn } from '../../src/store/database/connection.ts';
import { openForReading } from '../../src/store/database/database.ts';
import { type ApiClient, createApiClient } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { publishPlatform, verifiedDomain } from '../support/verified-domain.ts';

/*
 * Programs send with idempotency keys and change contacts without a pause, to the machine where the account is. It moves to the
 * second machine and back, each time while it is in use, with a command that is killed in between.
 *
 *   programs ──HTTP, with retries──▶ one ⇄ two ──SMTP──▶ sink
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const DOMAIN = 'shop.example';
const RECEIVER = 'empfang.example';
const SENDERS = 4;
const EDITORS = 2;
/** What happens before, between and after the moves. */
const STRETCH_SENDS = 60;

let dir: string;
let dns: DnsServer;
let sink: Sink;
let one: RunningDaemon;
let two: RunningDaemon;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'postrider-move-'));
  dns = await startDnsServer();
  const seen = new Set<string>();
  const answer = (_: unknown, argument: string): string => {
    const isFirst = !seen.has(argument);
    seen.add(argument);
    if (argument.includes('bounce-')) return '550 5.1.1 nobody here';
    return argument.includes('later-') && isFirst ? '450 4.2.1 try again' : '250 2.1.5 ok';
  };
  sink = await startSink({ recipients: { [`@${RECEIVER}`]: answer } });
  publishMailHost(dns, RECEIVER, sink.host);
  const settings = (name: string) => ({
    hostname: `${name}.postrider.example`,
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'delivery.returnPath': 'customer',
    'delivery.retry.first': '1s',
  });
  one = await startDaemon(settings('mx1'));
  two = await startDaemon(settings('mx2'));
  await verifiedDomain(one, dns, DOMAIN);
});
afterAll(async () => {
  await one?.stop();
  await two?.stop();
  await sink?.close();
  await dns?.close();
  await rm(dir, { recursive: true, force: true });
});

/** The programs of the account. Each repeats a request until it is answered, at the place where the account is then. */
function startPrograms() {
  let home = one;
  const stopping = new AbortController();
  /** Recipients by the id of their message. */
  const accepted = new Map<string, string>();
  /** The last acknowledged state by the address of the contact. */
  const contacts = new Map<string, string | null>();
  const suppressed = new Set<string>();
  let refused = 0;

  async function until200(request: (api: ApiClient) => Promise<{ status: number; text: string }>) {
    for (;;) {
      const response = await request(createApiClient(home.baseUrl, one.api));
      if (response.status < 300) return response;
      // 403: imported, and not enabled yet. 401: not imported yet.
      if (![401, 403, 503].includes(response.status)) throw new Error(response.text);
      refused++;
      await sleep(20);
    }
  }

  async function send(sender: number): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const kind = n % 25 === 24 ? 'bounce' : n % 25 === 12 ? 'later' : 'user';
      const to = `${kind}-${sender}-${n}@${RECEIVER}`;
      const key = { 'Idempotency-Key': `${sender}-${n}` };
      const mail = { ...SHORT_MAIL, from: `a@${DOMAIN}`, to };
      const answered = await until200((api) => api.send(mail, key));
      const { messageId } = JSON.parse(answered.text).data;
      if (accepted.has(messageId)) throw new Error(`${messageId} was returned twice`);
      accepted.set(messageId, to);
    }
  }

  async function edit(editor: number): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const email = `contact-${editor}-${n % 40}@example.net`;
      const path = `/web-setup/contacts/${encodeURIComponent(`email:${email}`)}`;
      if (n < 40) await until200((api) => api.post('/web-setup/contacts', { email, firstName: `n${n}` }));
      else await until200((api) => api.call('PATCH', path, { body: { firstName: `n${n}` } }));
      contacts.set(email, `n${n}`);
      if (n % 10 !== 9) continue;
      const stopped = `stopped-${editor}-${n}@example.net`;
      await until200((api) => api.post('/web-setup/suppressions', { email: stopped }));
      suppressed.add(stopped);
    }
  }

  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
  const running = Promise.all([...numbers(SENDERS).map(send), ...numbers(EDITORS).map(edit)]);
  running.catch(() => {});
  return {
    accepted,
    contacts,
    suppressed,
    refusals: () => refused,
    /** Resolves when this many messages more were accepted. */
    more: async (count: number) => {
      const goal = accepted.size + count;
      const reached = eventually('more messages', () => accepted.size >= goal, { ms: LONG_PATIENCE_MS });
      await Promise.race([reached, running]);
    },
    moveTo: (daemon: RunningDaemon) => {
      home = daemon;
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** Runs a command that is killed as soon as the condition holds. */
async function killed(daemon: RunningDaemon, args: string[], condition: () => boolean): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: daemon.env, stdio: 'ignore' });
  const exit = once(child, 'exit');
  await eventually(`${args[1]} to begin`, condition);
  child.kill('SIGKILL');
  await exit;
}

/** Rows of the database of a daemon. */
function rowsOf<Row>(daemon: RunningDaemon, sql: string): Row[] {
  const db = openForReading(databaseFileIn(daemon.dataDir));
  try {
    return db.prepare<[], Row>(sql).all();
  } finally {
    db.close();
  }
}

it('moves an account to another machine and back under load, and loses and repeats nothing', async () => {
  const { accountId } = one.api;
  const passphrase = join(dir, 'passphrase');
  await writeFile(passphrase, 'correct horse battery staple');
  const programs = startPrograms();
  await programs.more(STRETCH_SENDS);

  async function move(from: RunningDaemon, to: RunningDaemon, name: string): Promise<void> {
    const secret = ['--passphrase-file', passphrase];
    const first = join(dir, `${name}.first.gz`);
    const rest = join(dir, `${name}.rest.gz`);
    await from.cli('account', 'export', accountId, '--live', '--output', first, ...secret);
    await programs.more(STRETCH_SENDS);
    const importRow = () =>
      rowsOf<{ move_id: string | null }>(to, 'SELECT move_id FROM account_imports')[0] ?? null;
    await killed(to, ['account', 'import', first, ...secret], () => importRow() !== null);
    if (importRow()?.move_id === null) await to.cli('account', 'import', first, ...secret);
    await programs.more(STRETCH_SENDS);
    const before = programs.refusals();
    const exporting = ['account', 'export', accountId, '--difference', '--output', rest, ...secret];
    await killed(from, exporting, () => rowsOf(from, 'SELECT 1 FROM accounts WHERE moved_at > 0').length > 0);
    await from.cli(...exporting);
    programs.moveTo(to);
    await to.cli('account', 'import', rest, ...secret, '--enable');
    expect(programs.refusals()).toBeGreaterThan(before);
    await programs.more(STRETCH_SENDS);
  }
  await move(one, two, 'there');
  await publishPlatform(two, dns);
  await move(two, one, 'back');
  await programs.stop();

  // Every accepted message is on one machine, with one final result.
  const messages = () =>
    [one, two].flatMap((daemon) =>
      rowsOf<{ recipient: string; status: number; final: number }>(
        daemon,
        'SELECT recipient, status_code AS status, final_time AS final FROM messages',
      ),
    );
  await eventually('every message to be final', () => messages().every(({ final }) => final >= 0), {
    ms: LONG_PATIENCE_MS,
  });
  const recipients = [...programs.accepted.values()].toSorted();
  expect(
    messages()
      .map(({ recipient }) => recipient)
      .toSorted(),
  ).toEqual(recipients);
  const isBounce = (to: string) => to.startsWith('bounce-');
  expect(sink.messages.flatMap(({ to }) => to).toSorted()).toEqual(recipients.filter((to) => !isBounce(to)));
  expect(rowsOf(two, 'SELECT 1 FROM messages').length).toBeGreaterThan(2 * STRETCH_SENDS);

  // Every acknowledged change is where the account is.
  const contacts = rowsOf<{ email: string; first_name: string }>(
    one,
    'SELECT email, first_name FROM contacts',
  );
  expect(new Map(contacts.map(({ email, first_name: name }) => [email, name]))).toEqual(programs.contacts);
  const suppressions = rowsOf<{ email: string }>(one, 'SELECT email FROM suppressions').map(
    ({ email }) => email,
  );
  expect(suppressions.toSorted()).toEqual(
    [...programs.suppressed, ...recipients.filter(isBounce)].toSorted(),
  );
});
