import { decode, encode } from 'dns-packet';
import { array, assert, nat, oneof, property, tuple, uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeQuery, type Question, readResponse } from '../../src/dns/wire.ts';
import { zoneOfList } from '../../src/dns/zone.ts';
import { respondTo } from './respond.ts';

const QUESTION: Question = { name: 'host.test', type: 'A' };

describe('a query', () => {
  it('requests recursion, with EDNS of 1232 bytes, DO and AD', () => {
    const packet = decode(encodeQuery(QUESTION, 4711, true));
    expect(packet).toMatchObject({
      id: 4711,
      flag_qr: false,
      flag_rd: true,
      flag_ad: true,
      questions: [{ name: 'host.test', type: 'A', class: 'IN' }],
      additionals: [{ type: 'OPT', udpPayloadSize: 1232, ednsVersion: 0, flag_do: true }],
    });
  });

  it('has no OPT record without EDNS', () => {
    expect(decode(encodeQuery(QUESTION, 4711, false))).toMatchObject({ flag_ad: false, additionals: [] });
  });
});

describe('damaged messages', () => {
  const answer = encode({
    type: 'response',
    id: 7,
    questions: [QUESTION],
    answers: [
      { type: 'CNAME', name: 'host.test', ttl: 60, data: 'other.test' },
      { type: 'MX', name: 'other.test', ttl: 60, data: { preference: 10, exchange: 'mx.test' } },
      { type: 'TXT', name: 'other.test', ttl: 60, data: ['text'] },
    ],
  });
  const query = encodeQuery(QUESTION, 7, true);
  const data = { zone: zoneOfList(() => [], ['test']), origins: ['test'] };
  const damaged = (bytes: Buffer) =>
    array(tuple(nat(bytes.length - 1), nat(255)), { minLength: 1, maxLength: 8 }).chain((changes) =>
      nat(bytes.length).map((length) => {
        const copy = Buffer.from(bytes);
        for (const [at, value] of changes) copy[at] = value;
        return copy.subarray(0, length);
      }),
    );

  it('never make the response parser throw', () => {
    assert(
      property(damaged(answer), (bytes) => {
        const response = readResponse(bytes, QUESTION, 7);
        expect(typeof response === 'object' || ['unrelated', 'malformed'].includes(response)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('never make the name server throw or send a long answer', () => {
    assert(
      property(
        oneof(
          damaged(query),
          uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
        ),
        (bytes) => {
          const answer = respondTo(bytes, 'udp', data);
          expect(answer === null || answer.length <= 512).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
