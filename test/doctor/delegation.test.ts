import { describe, expect, it } from 'vitest';
import { judgeDelegation } from '../../src/doctor/checks/delegation.ts';

const ANSWER = { authoritative: true, serial: 7 };
const server = { name: 'ns1.mail.test', server: '192.0.2.1:53', udp: ANSWER, tcp: ANSWER };
const facts = {
  hostname: 'mail.test',
  expected: ['ns1.mail.test', 'ns2.test'],
  found: { kind: 'records' as const, records: ['ns2.test', 'ns1.mail.test'] },
  servers: [server, { ...server, name: 'ns2.test' }],
  fix: '',
};

const statuses = (changed: Partial<typeof facts>) =>
  judgeDelegation({ ...facts, ...changed }).map(({ status }) => status);

describe('a delegation', () => {
  it.each<[string, Partial<typeof facts>, string[]]>([
    ['with all servers', {}, ['ok', 'ok', 'ok']],
    ['that lacks a server', { found: { kind: 'records', records: ['ns2.test'] } }, ['warning', 'ok', 'ok']],
    [
      'with a secondary that has an older version',
      { servers: [server, { ...server, udp: { authoritative: true, serial: 6 } }] },
      ['ok', 'ok', 'warning'],
    ],
  ])('%s', (_, changed, expected) => {
    expect(statuses(changed)).toEqual(expected);
  });

  it('with a server that does not answer over TCP fails', () => {
    const result = judgeDelegation({ ...facts, servers: [{ ...server, tcp: null }] });
    expect(result[1]).toMatchObject({ status: 'failure', reason: expect.stringContaining('over TCP') });
  });
});
