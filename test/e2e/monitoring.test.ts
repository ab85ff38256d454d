import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parseExposition, type Samples } from '../../src/doctor/exposition.ts';
import { eventually } from '../support/eventually.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * What an operator sees of a daemon with traffic: metrics, `stats` and `top`, compared with the events of the API.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink, which rejects some recipients
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const REPLIES: Record<string, string> = {
  nobody: '550 5.1.1 no such user',
  later: '451 4.3.0 come back later',
};
const USERS = ['ada', 'bob', 'eve', 'joe', 'nobody1', 'nobody2', 'later1', 'later2', 'later3'];

let setup: SendingSetup;

beforeAll(async () => {
  const rejected = USERS.flatMap((user) => {
    const reply = REPLIES[user.replace(/\d$/, '')];
    return reply === undefined ? [] : [[`${user}@`, reply]];
  });
  setup = await startSendingSetup(
    { 'delivery.retry.first': '1h', 'delivery.retry.max': '1h' },
    { recipients: Object.fromEntries(rejected) },
  );
  const { daemon, send } = setup;
  for (const user of USERS) await send(user);
  // Simulated mail is not counted.
  await send('delivered', 'simulator.mx.postrider.example');
  await eventually('each message to have an outcome', async () =>
    (await daemon.api.allMessages()).every(({ status }) => status !== 'queued' && status !== 'sending'),
  );
});
afterAll(() => setup?.stop());

interface StatsOutput {
  rows: ({ hour?: string; provider?: string; account?: string; domainName?: string } & Counted)[];
  total: Counted & { deferredNow: number };
}
interface Counted {
  accepted: number;
  delivered: number;
  deferred: number;
  bounced: number;
  bouncedByClass: Record<string, number>;
  rates: Record<string, number | null>;
}

const stats = async (...args: string[]): Promise<StatsOutput> =>
  JSON.parse(await setup.daemon.cli('stats', '--json', ...args));

/** Events of messages that were not simulated, by kind. */
async function countedEvents(): Promise<Record<string, number>> {
  const simulated = new Set(
    (await setup.daemon.api.allMessages())
      .filter(({ recipient }) => recipient.includes('simulator'))
      .map(({ messageId }) => messageId),
  );
  const kinds: Record<string, number> = {};
  for (const { messageId, event } of await setup.daemon.api.allEvents()) {
    if (typeof messageId === 'string' && !simulated.has(messageId)) kinds[event] = (kinds[event] ?? 0) + 1;
  }
  return kinds;
}

async function scrape(): Promise<Samples> {
  return parseExposition(await (await fetch(`${setup.daemon.baseUrl}/metrics`)).text());
}

const sumOf = (samples: Samples, name: string, labels: Record<string, string>) =>
  (samples.get(name) ?? [])
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);

describe('postrider stats', () => {
  it.each(['hour', 'day', 'provider', 'domain', 'account'])('by %s agrees with the events', async (by) => {
    const events = await countedEvents();
    const { rows, total } = await stats('--by', by);
    expect(total).toMatchObject({
      accepted: USERS.length,
      delivered: events['email_delivered'],
      deferred: events['email_delayed'],
      bounced: events['email_bounced'],
      bouncedByClass: { 'invalid-recipient': 2 },
      deferredNow: 3,
    });
    expect(total.rates['delivered']).toBeCloseTo(4 / 6);
    for (const outcome of ['accepted', 'delivered', 'deferred', 'bounced'] as const)
      expect(rows.reduce((sum, row) => sum + row[outcome], 0)).toBe(total[outcome]);
  });

  it('names the provider, the domain and the account', async () => {
    const [byProvider] = (await stats('--by', 'provider')).rows;
    const [byDomain] = (await stats('--by', 'domain')).rows;
    expect(byProvider?.provider).toBe('empfang.example');
    expect(byDomain?.domainName).toBe('kunde.example');
    const [byAccount] = (await stats('--by', 'account')).rows;
    const account = byAccount?.account ?? '';
    expect((await stats('--account', account)).total.accepted).toBe(USERS.length);
  });

  it('prints an aligned table', async () => {
    const lines = (await setup.daemon.cli('stats', '--by', 'provider')).split('\n');
    const [heading = '', row = '', total = ''] = lines;
    expect(heading).toMatch(/^provider +accepted +delivered +deferred +bounced/);
    expect(row).toMatch(/^empfang\.example +9 +4 +3 +2 /);
    expect(new Set([heading, row, total].map(({ length }) => length)).size).toBe(1);
    expect(lines).toContain('Deferred now: 3');
    expect(lines).toContain('Bounced by class: invalid-recipient 2');
  });

  it('rejects a period that ends before it begins, and an unknown account', async () => {
    expect(await setup.daemon.tryCli('stats', '--from', '2026-02-02', '--to', '2026-02-01')).toMatchObject({
      code: 2,
      stderr: 'postrider: --from must be before --to\n',
    });
    expect(await setup.daemon.tryCli('stats', '--account', 'acct_none')).toMatchObject({ code: 1 });
  });
});

describe('/metrics', () => {
  it('counts what the events contain', async () => {
    const samples = await scrape();
    const messages = (labels: Record<string, string>) => sumOf(samples, 'postrider_messages_total', labels);
    expect(messages({ stream: 'tx', outcome: 'accepted' })).toBe(USERS.length);
    expect(messages({ outcome: 'delivered' })).toBe(4);
    expect(messages({ outcome: 'bounced', class: 'invalid-recipient' })).toBe(2);
    expect(messages({ outcome: 'deferred' })).toBe(3);
    expect(messages({ stream: 'mk' })).toBe(0);
    expect(sumOf(samples, 'postrider_account_messages_total', { outcome: 'accepted' })).toBe(USERS.length);
    expect(
      sumOf(samples, 'postrider_provider_messages_total', {
        provider: 'empfang.example',
        outcome: 'bounced',
      }),
    ).toBe(2);
    const site = { site: 'mx.empfang.example via default' };
    expect(sumOf(samples, 'postrider_site_attempts_total', { ...site, result: 'delivered' })).toBe(4);
    expect(sumOf(samples, 'postrider_site_attempts_total', { ...site, result: 'deferred' })).toBe(3);
  });

  it('describes the queue and the database', async () => {
    const samples = await eventually('a read of the backlog with the deferred messages', async () => {
      const found = await scrape();
      return sumOf(found, 'postrider_queue_state_messages', { state: 'waiting' }) === 3 ? found : null;
    });
    expect(sumOf(samples, 'postrider_queue_destination_messages', { destination: 'empfang.example' })).toBe(
      3,
    );
    expect(sumOf(samples, 'postrider_queue_oldest_due_seconds', {})).toBe(0);
    expect(sumOf(samples, 'postrider_database_wal_bytes', {})).toBeGreaterThan(0);
    expect(sumOf(samples, 'postrider_disk_free_bytes', {})).toBeGreaterThan(0);
    for (const histogram of ['commit', 'flush'])
      expect(sumOf(samples, `postrider_${histogram}_seconds_count`, {})).toBeGreaterThan(USERS.length);
  });
});

describe('postrider top', () => {
  it('prints one frame without a terminal', async () => {
    const output = await setup.daemon.cli('top', '--interval', '1');
    expect(output).toMatch(/^postrider top - 127\.0\.0\.1:\d+ - .*, up /);
    expect(output).toMatch(/^Messages\/s +accepted 0 {2}delivered 0/m);
    expect(output).toMatch(/^Queue +3 .*waiting 3/m);
    expect(output).toMatch(/^empfang\.example +3 /m);
    expect(output).not.toContain('\x1b');
  });

  it('fails with one line when no daemon answers', async () => {
    const { code, stdout, stderr } = await setup.daemon.tryCli(
      'top',
      '--once',
      '--url',
      'http://127.0.0.1:1',
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^postrider: http:\/\/127\.0\.0\.1:1\/metrics cannot be read: .*Is the daemon running\?\n$/,
    );
  });
});

const OPENED = '\x1b[?1049h\x1b[?25l';
const HOME = '\x1b[H';
const BOLD = '\x1b[1m';
const RESTORED = '\x1b[?25h\x1b[?1049l';
const required = requirePrograms('terminal');

describe.skipIf(required.missing)(`postrider top in a terminal${required.reason}`, () => {
  /** Runs `top` in a pseudo terminal of 100 columns and 30 rows; returns it with its output so far. */
  function startTop(env: NodeJS.ProcessEnv = {}): {
    child: ChildProcess;
    output: () => string;
    ended: Promise<number | null>;
  } {
    const { port } = new URL(setup.daemon.baseUrl);
    const command = `tty; stty cols 100 rows 30; exec ${process.execPath} ${PROGRAM} top --interval 1 --url http://127.0.0.1:${port}`;
    const child = spawn('script', ['-qefc', command, '/dev/null'], {
      env: { PATH: process.env['PATH'], TERM: 'xterm', ...env },
    });
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, output: () => output, ended };
  }

  const firstFrame = (output: () => string) =>
    eventually('a frame with rates', () => output().includes('accepted 0  delivered 0')).catch(
      (cause: unknown) => {
        throw new Error(`the output is ${JSON.stringify(output())}`, { cause });
      },
    );

  it('draws within the terminal, and restores it after q', async () => {
    const { child, output, ended } = startTop();
    await firstFrame(output);
    child.stdin?.write('q');
    expect(await ended).toBe(0);
    const [before = '', ...frames] = output().split(HOME);
    expect(before.endsWith(OPENED)).toBe(true);
    for (const frame of frames) {
      const lines = stripVTControlCharacters(frame).split(/\r*\n/);
      expect(lines.length).toBeLessThanOrEqual(30);
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
    }
    expect(frames.join('')).toContain(BOLD);
    expect(output().endsWith(RESTORED)).toBe(true);
  });

  it('draws within the new size of a terminal that is resized', async () => {
    const { child, output, ended } = startTop();
    await firstFrame(output);
    const [terminal = ''] = /^\/dev\/pts\/\d+/.exec(output()) ?? [];
    const framesBefore = output().split(HOME).length;
    await promisify(execFile)('stty', ['-F', terminal, 'cols', '50', 'rows', '12']);
    /** Frames that begin after the new size was set; the first of them may still be drawn for the old one. */
    const later = () =>
      output()
        .split(HOME)
        .slice(framesBefore + 1);
    await eventually('two frames', () => later().length > 2);
    child.stdin?.write('q');
    expect(await ended).toBe(0);
    for (const frame of later()) {
      const lines = stripVTControlCharacters(frame).split(/\r*\n/);
      expect(lines.length).toBeLessThanOrEqual(12);
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(50);
    }
    expect(output().endsWith(RESTORED)).toBe(true);
  });

  it('restores the terminal after Ctrl-C, and uses no colors with NO_COLOR', async () => {
    const { child, output, ended } = startTop({ NO_COLOR: '1' });
    await firstFrame(output);
    child.stdin?.write('\x03');
    expect(await ended).toBe(0);
    expect(output().endsWith(RESTORED)).toBe(true);
    const frames = output().split(HOME).slice(1);
    expect(frames.join('')).not.toContain(BOLD);
  });
});
