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
 * One key, one mail: whatever the network and the power do to the request.
 *
 *   test ──HTTP, many at once──▶ postrider (killed, restarted) ──SMTP──▶ sink
 */
let setup: SendingSetup;
let sink: Sink;
let daemon: RunningDaemon;
/** Every key that was answered with 200 at least once. */
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
  const answer = await daemon.api.send({ ...body }, { 'Idempotency-Key': key });
  if (answer.status === 200) acceptedKeys.add(key.replaceAll('"', ''));
  return answer;
}

const isReplay = ({ headers }: ApiResponse<SendData>) => headers.get('Idempotency-Replayed') === 'true';

/** How many mails the sink has taken for a user. */
const arrived = (user: string) =>
  sink.messages.filter(({ to }) => to.includes(`${user}@empfang.example`)).length;

describe('fifty requests at once with one key', () => {
  it.each([1, 2, 3, 4, 5])('send one mail, each time (round %i)', async (round) => {
    const user = `fifty${round}`;
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(mailTo(user), key)));

    const taken = answers.filter(({ status }) => status === 200);
    const busy = answers.filter(({ status }) => status === 409);
    expect(taken.length + busy.length).toBe(50);
    expect(taken.filter((answer) => !isReplay(answer))).toHaveLength(1);
    expect(new Set(taken.map(({ text }) => text)).size).toBe(1);
    for (const { error, headers } of busy) {
      expect(error.code).toBe('IDEMPOTENCY_IN_PROGRESS');
      expect(headers.get('Retry-After')).toBe('1');
    }

    await eventually('the mail to arrive', () => arrived(user) > 0);
    const later = await send(mailTo(user), key);
    expect([later.status, isReplay(later), later.text]).toEqual([200, true, taken[0]?.text]);
    expect(arrived(user)).toBe(1);
  });
});

describe('a key', () => {
  it('means the same in quotation marks, as the draft of the header writes it', async () => {
    const key = randomUUID();
    const first = await send(mailTo('quoted'), key);
    const second = await send(mailTo('quoted'), `"${key}"`);
    expect([second.status, isReplay(second), second.text]).toEqual([200, true, first.text]);
  });

  it('means the same request whatever the order and the spacing of its JSON', async () => {
    const key = randomUUID();
    const first = await send(mailTo('order'), key);
    const turned = JSON.stringify(Object.fromEntries(Object.entries(mailTo('order')).toReversed()), null, 4);
    const second = await daemon.api.call<SendData>('POST', '/transactional/send', {
      rawBody: turned,
      headers: { 'Idempotency-Key': key },
    });
    expect([second.status, isReplay(second), second.text]).toEqual([200, true, first.text]);
  });

  it('with another body is refused, and sends nothing', async () => {
    const key = randomUUID();
    await send(mailTo('reused'), key);
    const other = await send({ ...mailTo('reused'), subject: 'Another' }, key);
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect((await send(mailTo('reused'), key)).status).toBe(200);
  });

  it.each([
    ['of form', 400, { subject: 'one\nline too many' }],
    ['of the domain', 403, { from: 'a@nobody.example' }],
    ['of the template', 422, { html: '<p>Hello.</p>' }],
  ])('is free again after a refusal %s', async (_, status, fault) => {
    const key = randomUUID();
    const user = `mended${status}`;
    expect((await send({ ...mailTo(user), ...fault }, key)).status).toBe(status);
    const mended = await send(mailTo(user), key);
    expect([mended.status, isReplay(mended)]).toEqual([200, false]);
  });

  it('belongs to its account', async () => {
    const key = randomUUID();
    const other = await daemon.account('Somebody else');
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

  it('replays what was stored, without the outcome that the first answer waited for', async () => {
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

describe('kill -9 somewhere between request and answer', () => {
  const ROUNDS = 16;
  const AT_ONCE = 6;

  it(`sends one mail for each of ${ROUNDS * AT_ONCE} keys`, async () => {
    // Nothing is taken until the last restart, so that what arrives in the end was sent once by our doing, and
    // not by the window between a destination's 250 and its record, which kill.test.ts looks at.
    sink.program({ script: { rcpt: '451 4.3.0 not now' } });
    const keys: { key: string; user: string }[] = [];
    const told = { answered: 0, accepted: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const requests = Array.from({ length: AT_ONCE }, (_, n) => ({
        key: randomUUID(),
        user: `kill${round}-${n}`,
      }));
      keys.push(...requests);
      const answers = Promise.allSettled(requests.map(({ key, user }) => send(mailTo(user), key)));
      // Every other time at the very moment at which the first of them is on disk.
      if (round % 2 === 0) await onDisk(requests.map(({ key }) => key));
      else await new Promise((resolve) => setTimeout(resolve, round));
      await daemon.kill('SIGKILL');
      const before = (await answers).map(({ status }) => status === 'fulfilled');
      told.answered += before.filter(Boolean).length;
      await daemon.restart();

      const again = await Promise.all(requests.map(({ key, user }) => send(mailTo(user), key)));
      expect(again.map(({ status }) => status)).toEqual(requests.map(() => 200));
      for (const [n, answer] of again.entries()) {
        // An answer that was given is given again; without one either may be.
        if (before[n]) expect(isReplay(answer)).toBe(true);
        else if (isReplay(answer)) told.accepted++;
      }
    }
    console.log(
      `${keys.length} keys: ${told.answered} answered before the kill, ` +
        `${told.accepted} accepted without an answer, the rest not accepted`,
    );
    expect(told.accepted).toBeGreaterThan(0);

    sink.program({ script: {} });
    await eventually('all mail to arrive', () => keys.every(({ user }) => arrived(user) > 0), { ms: 60_000 });
    expect(keys.filter(({ user }) => arrived(user) !== 1)).toEqual([]);
  });
});

/** Waits until the answer to one of these keys is committed, looking as often as can be. */
async function onDisk(keys: string[]): Promise<void> {
  const db = new Database(join(daemon.dataDir, 'postrider.db'), { readonly: true });
  const find = db.prepare('SELECT 1 FROM idempotency WHERE key IN (SELECT value FROM json_each(?))');
  const wanted = JSON.stringify(keys);
  const deadline = Date.now() + 10_000;
  while (find.get(wanted) === undefined && Date.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  db.close();
}

describe('in the end', () => {
  it('both ends count one mail for each key', async () => {
    await setup.waitForEmptyQueue();
    const ledger = await readLedger(daemon.api);
    // One was sent with `Prefer` and one by the other account, which has a ledger of its own.
    const accepted = acceptedKeys.size;
    expect(ledger).toEqual({ accepted, delivered: accepted, bounced: 0, failed: 0, queued: 0 });
    expect(sink.count).toBe(accepted + 1);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
