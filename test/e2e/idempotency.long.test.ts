// Long: repeats each request across kills.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiResponse, SendData } from '../support/api-client.ts';
import type { RunningDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import type { Sink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * One idempotency key sends one message, also with concurrent requests and when the daemon is killed.
 *
 *   test ──HTTP, concurrently──▶ postrider (killed, restarted) ──SMTP──▶ sink
 */
let setup: SendingSetup;
let sink: Sink;
let daemon: RunningDaemon;
/** All keys that were answered with 200. */
const acceptedKeys = new Set<string>();

beforeAll(async () => {
  setup = await startSendingSetup({
    'delivery.retry.first': '1s',
    'delivery.retry.max': '2s',
    'log.level': 'warn',
  });
  ({ sink, daemon } = setup);
});
afterAll(() => setup?.stop());

const mailTo = (user: string) => ({ ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` });

async function send(body: object, key: string): Promise<ApiResponse<SendData>> {
  const response = await daemon.api.send({ ...body }, { 'Idempotency-Key': key });
  if (response.status === 200) acceptedKeys.add(key.replaceAll('"', ''));
  return response;
}

const isReplay = ({ headers }: ApiResponse<SendData>) => headers.get('Idempotency-Replayed') === 'true';

/** The number of messages for a user at the sink. */
const arrived = (user: string) =>
  sink.messages.filter(({ to }) => to.includes(`${user}@empfang.example`)).length;

describe('fifty concurrent requests with one key', () => {
  it.each([1, 2, 3, 4, 5])('send one message (round %i)', async (round) => {
    const user = `fifty${round}`;
    const key = randomUUID();
    const responses = await Promise.all(Array.from({ length: 50 }, () => send(mailTo(user), key)));

    const accepted = responses.filter(({ status }) => status === 200);
    const rejected = responses.filter(({ status }) => status === 409);
    expect(accepted.length + rejected.length).toBe(50);
    expect(accepted.filter((response) => !isReplay(response))).toHaveLength(1);
    expect(new Set(accepted.map(({ text }) => text)).size).toBe(1);
    for (const { error, headers } of rejected) {
      expect(error.code).toBe('IDEMPOTENCY_IN_PROGRESS');
      expect(headers.get('Retry-After')).toBe('1');
    }

    await eventually('the mail to arrive', () => arrived(user) > 0);
    const later = await send(mailTo(user), key);
    expect([later.status, isReplay(later), later.text]).toEqual([200, true, accepted[0]?.text]);
    expect(arrived(user)).toBe(1);
  });
});

describe('a key', () => {
  it('is the same with quotation marks, which the IETF draft of the header requires', async () => {
    const key = randomUUID();
    const first = await send(mailTo('quoted'), key);
    const second = await send(mailTo('quoted'), `"${key}"`);
    expect([second.status, isReplay(second), second.text]).toEqual([200, true, first.text]);
  });

  it('matches a request whose JSON has another order and spacing', async () => {
    const key = randomUUID();
    const first = await send(mailTo('order'), key);
    const reordered = JSON.stringify(
      Object.fromEntries(Object.entries(mailTo('order')).toReversed()),
      null,
      4,
    );
    const second = await daemon.api.call<SendData>('POST', '/transactional/send', {
      rawBody: reordered,
      headers: { 'Idempotency-Key': key },
    });
    expect([second.status, isReplay(second), second.text]).toEqual([200, true, first.text]);
  });

  it('is rejected with another body, and sends nothing', async () => {
    const key = randomUUID();
    await send(mailTo('reused'), key);
    const other = await send({ ...mailTo('reused'), subject: 'Another' }, key);
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect((await send(mailTo('reused'), key)).status).toBe(200);
  });

  it.each([
    ['invalid field', 400, { subject: 'one\nline too many' }],
    ['unknown domain', 403, { from: 'a@nobody.example' }],
    ['incomplete template', 422, { html: '<p>Hello.</p>' }],
  ])('can be used again after a rejected request: %s', async (_, status, fault) => {
    const key = randomUUID();
    const user = `corrected${status}`;
    expect((await send({ ...mailTo(user), ...fault }, key)).status).toBe(status);
    const corrected = await send(mailTo(user), key);
    expect([corrected.status, isReplay(corrected)]).toEqual([200, false]);
  });

  it('belongs to its account', async () => {
    const key = randomUUID();
    const other = await daemon.account('Other');
    await verifiedDomain(daemon, setup.dns, 'anders.example', { api: other });
    const first = await send(mailTo('accounts'), key);
    const theirs = await other.send(
      { ...mailTo('accounts'), from: 'a@anders.example' },
      { 'Idempotency-Key': key },
    );
    expect([theirs.status, isReplay(theirs)]).toEqual([200, false]);
    expect(theirs.data.messageId).not.toBe(first.data.messageId);
    await eventually('both mails to arrive', () => arrived('accounts') === 2);
  });

  it('replays the stored response, without the delivery outcome that the first request waited for', async () => {
    const key = randomUUID();
    const first = await daemon.api.send(mailTo('waited'), { 'Idempotency-Key': key, Prefer: 'wait=20' });
    expect(first.data.delivery).toMatchObject({ status: 'delivered' });
    const second = await send(mailTo('waited'), key);
    const { delivery: _, ...stored } = first.data;
    expect([isReplay(second), second.data]).toEqual([true, stored]);
  });

  it('replays the same bytes after a restart', async () => {
    const key = randomUUID();
    const first = await send(mailTo('restart'), key);
    await setup.waitForEmptyQueue();
    await daemon.kill('SIGKILL');
    await daemon.restart();
    const second = await send(mailTo('restart'), key);
    expect([second.status, isReplay(second), second.text]).toEqual([200, true, first.text]);
  });
});

describe('kill -9 between request and response', () => {
  const ROUNDS = 10;
  const CONCURRENT = 6;

  it(`sends one message for each of ${ROUNDS * CONCURRENT} keys`, async () => {
    // The sink accepts nothing until the last restart, so that no message is repeated because its outcome was not
    // stored, which kill.long.test.ts covers.
    sink.program({ script: { rcpt: '451 4.3.0 not now' } });
    const keys: { key: string; user: string }[] = [];
    const totals = { answered: 0, acceptedWithoutResponse: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const requests = Array.from({ length: CONCURRENT }, (_, n) => ({
        key: randomUUID(),
        user: `kill${round}-${n}`,
      }));
      keys.push(...requests);
      const sends = Promise.allSettled(requests.map(({ key, user }) => send(mailTo(user), key)));
      // In every other round as soon as the first response is committed.
      if (round % 2 === 0) await waitForCommit(requests.map(({ key }) => key));
      else await new Promise((resolve) => setTimeout(resolve, round));
      await daemon.kill('SIGKILL');
      const answered = (await sends).map(({ status }) => status === 'fulfilled');
      totals.answered += answered.filter(Boolean).length;
      await daemon.restart();

      const repeated = await Promise.all(requests.map(({ key, user }) => send(mailTo(user), key)));
      expect(repeated.map(({ status }) => status)).toEqual(requests.map(() => 200));
      for (const [n, response] of repeated.entries()) {
        // A request without a response may or may not have been accepted.
        if (answered[n]) expect(isReplay(response)).toBe(true);
        else if (isReplay(response)) totals.acceptedWithoutResponse++;
      }
    }
    console.log(
      `${keys.length} keys: ${totals.answered} answered before the kill, ` +
        `${totals.acceptedWithoutResponse} accepted without a response, the rest not accepted`,
    );
    expect(totals.acceptedWithoutResponse).toBeGreaterThan(0);

    sink.program({ script: {} });
    await eventually('all mail to arrive', () => keys.every(({ user }) => arrived(user) > 0));
    expect(keys.filter(({ user }) => arrived(user) !== 1)).toEqual([]);
  });
});

/** Polls until the response to one of the keys is committed, at most 10 s. */
async function waitForCommit(keys: string[]): Promise<void> {
  const db = new Database(join(daemon.dataDir, 'postrider.db'), { readonly: true });
  const find = db.prepare('SELECT 1 FROM idempotency WHERE key IN (SELECT value FROM json_each(?))');
  const wanted = JSON.stringify(keys);
  const deadline = Date.now() + 10_000;
  while (find.get(wanted) === undefined && Date.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  db.close();
}

describe('after all requests', () => {
  it('the API and the sink count one message for each key', async () => {
    await setup.waitForEmptyQueue();
    const ledger = await readLedger(daemon.api);
    // The message of the other account is at the sink only.
    const accepted = acceptedKeys.size;
    expect(ledger).toEqual({ accepted, delivered: accepted, bounced: 0, failed: 0, queued: 0 });
    expect(sink.count).toBe(accepted + 1);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
