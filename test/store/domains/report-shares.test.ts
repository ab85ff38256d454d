import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { KeptMailRow } from '../../../src/store/kept-mail.ts';
import { startStore } from '../../support/store.ts';

const PERIOD = { from: 0, to: Date.UTC(2100, 0), limit: 10_000 };

interface Given {
  id: string;
  network?: string;
  organization?: string;
  signer?: string;
  verified?: 0 | 1;
  end?: number;
}

function start() {
  const store = startStore();
  const { tables, writer, clock } = store;
  let made = 0;
  const common = ({
    network = 'n1',
    organization = 'Receiver',
    signer = '',
    verified = 0,
    end = 0,
    id,
  }: Given) => ({
    organization,
    network,
    signer,
    verified,
    report_id: id,
    begin_at: 0,
    end_at: end,
    received_at: clock.now() + made++,
  });
  return {
    ...store,
    insert: (given: Given[]) =>
      writer.run((tx) =>
        given.map((each) => {
          const row = { ...common(each), domain: 'example.com', policy_domain: 'example.com', policy: '{}' };
          return tx.dmarcReports.insert({ ...row, truncated: 0 }, []);
        }),
      ),
    insertTls: (given: Given[]) =>
      writer.run((tx) => {
        for (const each of given) {
          const row = { ...common(each), host: 'return-a.example.com' };
          tx.tlsReports.insert(row, [{ policy_type: 'sts', successful: 1, failed: 0, failures: [] }]);
        }
      }),
    ids: () => tables.dmarcReports.list('example.com', PERIOD).map(({ report_id: id }) => id),
    tlsIds: () => tables.tlsReports.list('return-a.example.com', PERIOD).map(({ report_id: id }) => id),
  };
}

const many = (count: number, given: (n: number) => Given) =>
  Array.from({ length: count }, (_, n) => given(n));
const isGenuine = (id: string) => id.startsWith('genuine');
const FUTURE = Date.UTC(2099, 0);

describe('the limits of stored reports', () => {
  it.each(['DMARC', 'TLS'])('%s: delete by reception, not by the dates in the reports', async (kind) => {
    const store = start();
    const insert = kind === 'TLS' ? store.insertTls : store.insert;
    await insert(many(500, (n) => ({ id: `${n}`, end: FUTURE - n })));
    await insert([{ id: 'newest', end: 1 }]);
    const ids = kind === 'TLS' ? store.tlsIds() : store.ids();
    expect(ids).toHaveLength(500);
    expect(ids).toContain('newest');
    expect(ids).not.toContain('0');
  });

  it.each(['DMARC', 'TLS'])('%s: delete none of another network for 3,050 of one', async (kind) => {
    const store = start();
    const insert = kind === 'TLS' ? store.insertTls : store.insert;
    await insert(many(20, (n) => ({ id: `genuine ${n}`, network: 'n2', organization: 'Honest' })));
    await insert(many(3050, (n) => ({ id: `${n}`, organization: `O${n}`, end: FUTURE })));
    const ids = kind === 'TLS' ? store.tlsIds() : store.ids();
    expect(ids.filter(isGenuine)).toHaveLength(20);
    expect(ids).toHaveLength(520);
  });

  it('delete first those of the network with the most, within one organization', async () => {
    const store = start();
    await store.insert(many(40, (n) => ({ id: `genuine ${n}`, network: `g${n % 4}` })));
    await store.insert(many(480, (n) => ({ id: `${n}` })));
    expect(store.ids().filter(isGenuine)).toHaveLength(40);
    expect(store.ids()).toHaveLength(500);
  });

  it('delete unsigned reports first, even of thousands of networks', async () => {
    const store = start();
    const honest = { network: 'n2', organization: 'Honest', signer: 'honest.example' };
    await store.insert(many(90, (n) => ({ id: `genuine ${n}`, ...honest })));
    await store.insert(many(3050, (n) => ({ id: `${n}`, network: `f${n}`, organization: `O${n}` })));
    expect(store.ids().filter(isGenuine)).toHaveLength(90);
    expect(store.ids()).toHaveLength(3000);
  });

  it('delete the signed reports of others before verified ones', async () => {
    const store = start();
    await store.insert(
      many(90, (n) => ({ id: `genuine ${n}`, network: 'n2', signer: 'honest.example', verified: 1 })),
    );
    await store.insert(
      many(3050, (n) => ({ id: `${n}`, network: `f${n}`, organization: `O${n}`, signer: `s${n}` })),
    );
    expect(store.ids().filter(isGenuine)).toHaveLength(90);
  });

  it('let a verified report replace a signed one with its id, and not the reverse', async () => {
    const store = start();
    const forged = { id: 'same', signer: 'evil.example' };
    const verified = { id: 'same', signer: 'receiver.example', verified: 1 } as const;
    expect(await store.insert([forged, verified, forged])).toEqual([true, true, false]);
    expect(store.tables.dmarcReports.list('example.com', PERIOD)).toMatchObject([
      { signer: 'receiver.example', verified: 1 },
    ]);
    await store.insertTls([forged, verified, forged]);
    expect(store.tables.tlsReports.list('return-a.example.com', PERIOD)).toMatchObject([
      { signer: 'receiver.example', verified: 1 },
    ]);
  });

  it('limit the reports of one signer over all its networks', async () => {
    const store = start();
    await store.insert(
      many(520, (n) => ({ id: `${n}`, network: `f${n}`, organization: `O${n}`, signer: 'evil.example' })),
    );
    expect(store.ids()).toHaveLength(500);
  });

  it('let a signed report replace an unsigned one with its id, and not the reverse', async () => {
    const store = start();
    const signed = { id: 'same', signer: 'receiver.example' };
    expect(await store.insert([{ id: 'same' }, signed, { id: 'same' }, signed])).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(store.tables.dmarcReports.list('example.com', PERIOD)).toMatchObject(
      [signed].map(({ signer }) => ({ signer })),
    );
  });
});

it('the limits are enforced once for a TLS report, however many policies it has', async () => {
  const { insertTls, tables, writer, db } = start();
  await insertTls(many(480, (n) => ({ id: `${n}` })));
  const policies = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      policy_type: `${n}`,
      successful: 1,
      failed: 0,
      failures: [],
    }));
  const report = {
    host: 'return-a.example.com',
    organization: 'Receiver',
    begin_at: 0,
    end_at: 0,
    received_at: 1,
    network: 'n1',
    signer: '',
    verified: 0 as const,
  };
  const reads = vi.spyOn(Object.getPrototypeOf(db.prepare('SELECT 1')) as { get(): unknown }, 'get');
  const insert = async (report_id: string, count: number) => {
    reads.mockClear();
    await writer.run((tx) => tx.tlsReports.insert({ ...report, report_id }, policies(count)));
    return reads.mock.calls.length;
  };
  onTestFinished(() => reads.mockRestore());
  expect(await insert('one', 1)).toBe(await insert('many', 100));
  expect(tables.tlsReports.list('return-a.example.com', PERIOD)).toHaveLength(500);
});

describe('stored incoming mail', () => {
  const mail = (network: string, n: number): Omit<KeptMailRow, 'seq' | 'size'> => ({
    box: 'abuse',
    kind: 'unknown',
    recipient: '',
    sender: network,
    remote_address: '',
    network,
    message_seq: null,
    received_at: n,
    raw: Buffer.from('x'),
  });

  it('is limited to the newest hundred of a network and the newest thousand of a box', async () => {
    const { writer, tables } = startStore();
    await writer.run((tx) => {
      for (let n = 0; n < 1100; n++) tx.keptMail.insert(mail(`n${Math.floor(n / 105)}`, n));
      tx.keptMail.insert({ ...mail('n0', 0), box: 'postmaster' });
    });
    const kept = tables.keptMail.list('abuse', 5000);
    expect(kept).toHaveLength(1000);
    const ofLast = kept.filter(({ sender }) => sender === 'n9').map(({ received_at }) => received_at);
    expect(ofLast).toEqual(Array.from({ length: ofLast.length }, (_, n) => 1049 - n));
    expect(tables.keptMail.list('postmaster', 10)).toHaveLength(1);
  });

  it('is deleted first of the network with the most when the box is full', async () => {
    const { writer, tables } = startStore();
    await writer.run((tx) => {
      tx.keptMail.insert(mail('honest', 0));
      for (let n = 0; n < 1500; n++) tx.keptMail.insert(mail(`n${n % 12}`, n + 1));
    });
    expect(tables.keptMail.list('abuse', 5000)).toHaveLength(1000);
    expect(tables.keptMail.list('abuse', 5000).at(-1)?.sender).toBe('honest');
  });
});
