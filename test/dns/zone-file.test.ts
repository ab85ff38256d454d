import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, property, string } from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { toZoneFile } from '../../src/dns/zone-file.ts';
import type { ZoneRecord, ZoneRecordType } from '../../src/dns/zone-record.ts';
import { freePort } from '../support/free-port.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { findProgram, requirePrograms } from '../support/required-programs.ts';

const record = (type: ZoneRecordType, value: string, more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  name: 'mail.test',
  type,
  value,
  ttl: 300,
  ...more,
});

describe('a line for each record', () => {
  it.each([
    [record('A', '192.0.2.1'), 'mail.test.\t300\tIN\tA\t192.0.2.1'],
    [record('AAAA', '2001:db8::1'), 'mail.test.\t300\tIN\tAAAA\t2001:db8::1'],
    [record('MX', 'mx.test', { priority: 10 }), 'mail.test.\t300\tIN\tMX\t10 mx.test.'],
    [record('MX', '10 mx.test.'), 'mail.test.\t300\tIN\tMX\t10 mx.test.'],
    [record('MX', '0 .'), 'mail.test.\t300\tIN\tMX\t0 .'],
    [record('CNAME', 'Other.test'), 'mail.test.\t300\tIN\tCNAME\tother.test.'],
    [record('NS', 'ns.test.', { ttl: 3600 }), 'mail.test.\t3600\tIN\tNS\tns.test.'],
    [record('PTR', 'host.test'), 'mail.test.\t300\tIN\tPTR\thost.test.'],
    [record('TXT', 'v=spf1 -all'), 'mail.test.\t300\tIN\tTXT\t"v=spf1 -all"'],
    [record('TXT', ''), 'mail.test.\t300\tIN\tTXT\t""'],
    [record('TXT', 'say "no"; \\ stop'), 'mail.test.\t300\tIN\tTXT\t"say \\"no\\"; \\\\ stop"'],
    [record('TXT', 'two\nlines ü'), 'mail.test.\t300\tIN\tTXT\t"two\\010lines \\195\\188"'],
    [record('TLSA', '3 1 1 ABCD ef'), 'mail.test.\t300\tIN\tTLSA\t3 1 1 abcdef'],
    [record('CAA', '0 issue ca.test'), 'mail.test.\t300\tIN\tCAA\t0 issue "ca.test"'],
    [record('CAA', '128 iodef "mailto:a@b.test"'), 'mail.test.\t300\tIN\tCAA\t128 iodef "mailto:a@b.test"'],
    [
      record('SOA', 'ns.test admin.test 1 2 3 4 5'),
      'mail.test.\t300\tIN\tSOA\tns.test. admin.test. 1 2 3 4 5',
    ],
    [record('A', '192.0.2.1', { name: 'BÜCHER.test.' }), 'xn--bcher-kva.test.\t300\tIN\tA\t192.0.2.1'],
    [record('A', '192.0.2.1', { name: 'a;b@c.test' }), 'a\\;b\\@c.test.\t300\tIN\tA\t192.0.2.1'],
  ])('%j', (given, line) => {
    expect(toZoneFile([given])).toBe(`${line}\n`);
  });

  it('formats long TXT in strings of 255 bytes', () => {
    const line = toZoneFile([record('TXT', 'x'.repeat(600))]);
    expect(line).toContain(`TXT\t"${'x'.repeat(255)}" "${'x'.repeat(255)}" "${'x'.repeat(90)}"\n`);
  });

  it('preserves the order', () => {
    expect(toZoneFile([record('NS', 'b.test'), record('A', '192.0.2.1')])).toMatch(/^.*NS.*\n.*A.*\n$/);
    expect(toZoneFile([])).toBe('');
  });
});

describe('a malformed record throws', () => {
  it.each([
    record('A', '2001:db8::1'),
    record('A', '192.0.2.1\nevil.test. 60 IN A 192.0.2.66'),
    record('AAAA', '192.0.2.1'),
    record('CNAME', 'Creation in progress'),
    record('CNAME', ''),
    record('MX', 'mx.test'),
    record('MX', '10 20 mx.test'),
    record('MX', '70000 mx.test'),
    record('MX', 'mx.test', { priority: -1 }),
    record('SOA', 'ns.test admin.test 1 2 3'),
    record('TLSA', '3 1 1 xyz'),
    record('TLSA', '3 1 1'),
    record('CAA', 'letsencrypt.test'),
    record('A', '192.0.2.1', { name: 'has space.test' }),
    record('A', '192.0.2.1', { ttl: 1.5 }),
    record('A', '192.0.2.1', { ttl: -1 }),
    record('A', '192.0.2.1', { ttl: 2 ** 31 }),
  ])('%j', (given) => {
    expect(() => toZoneFile([given])).toThrow(`malformed ${given.type} record at ${given.name}`);
  });
});

/** Parses the strings of a TXT line (RFC 1035 §5.1). */
function readStrings(line: string): Buffer {
  const strings = line.matchAll(/"((?:[^"\\]|\\\d{3}|\\\D)*)"/g);
  const bytes = [...strings].map(([, inside = '']) => {
    const text = inside.replace(/\\(?:(\d{3})|(.))/g, (_, code: string | undefined, char: string) =>
      code === undefined ? char : String.fromCharCode(Number(code)),
    );
    if (text.length > 255) throw new Error('a string of more than 255 bytes');
    return Buffer.from(text, 'latin1');
  });
  return Buffer.concat(bytes);
}

describe('parsed again', () => {
  it('any TXT value is unchanged, on one line of ASCII', () => {
    assert(
      property(string({ unit: 'binary', maxLength: 700 }), (value) => {
        const line = toZoneFile([record('TXT', value)]);
        expect(line).toMatch(/^[\t\x20-\x7e]*\n$/);
        expect(readStrings(line.slice(0, -1))).toEqual(Buffer.from(value));
      }),
    );
  });

  const required = requirePrograms('knot');
  it.skipIf(required.missing)(
    `Knot DNS serves the records of the zone file${required.reason}`,
    async () => {
      const records: ZoneRecord[] = [
        record('SOA', 'ns.mail.test admin.mail.test 1 3600 600 86400 60'),
        record('NS', 'ns.mail.test'),
        record('A', '192.0.2.53', { name: 'ns.mail.test' }),
        record('MX', 'mx.mail.test', { priority: 10 }),
        record('TXT', `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`, { name: 's1._domainkey.mail.test' }),
        record('TXT', 'quote " backslash \\ semicolon ; ü', { name: 'odd.mail.test' }),
        record('TLSA', `3 1 1 ${'ab'.repeat(32)}`, { name: '_25._tcp.mail.test' }),
        record('CNAME', 'mail.test', { name: 'a;b@c.mail.test' }),
      ];
      const port = await freePort();
      const dir = mkdtempSync(join(tmpdir(), 'postrider-zone-'));
      onTestFinished(() => rmSync(dir, { recursive: true }));
      writeFileSync(join(dir, 'mail.test.zone'), toZoneFile(records));
      writeFileSync(
        join(dir, 'knot.conf'),
        [
          'server:',
          `  rundir: ${dir}`,
          `  listen: 127.0.0.1@${port}`,
          '  udp-workers: 1',
          '  tcp-workers: 1',
          '  background-workers: 1',
          'database:',
          `  storage: ${dir}`,
          'log:',
          '  - target: stderr',
          '    any: warning',
          'zone:',
          '  - domain: mail.test',
          `    storage: ${dir}`,
          '    file: mail.test.zone',
          '    zonefile-load: whole',
          '    journal-content: none',
        ].join('\n'),
      );
      execFileSync(findProgram('knotc') ?? '', ['-c', join(dir, 'knot.conf'), 'zone-check']);
      const knot = spawn(findProgram('knotd') ?? '', ['-c', join(dir, 'knot.conf')], { stdio: 'inherit' });
      onTestFinished(async () => {
        const ended = once(knot, 'exit');
        if (knot.kill('SIGKILL')) await ended;
      });
      const resolver = createResolver({
        resolvers: [`127.0.0.1:${port}`],
        timeoutMs: PATIENCE_MS,
        monotonic: monotonicClock,
        random: systemRandom,
      });
      onTestFinished(() => resolver.close());
      const served = () =>
        resolver.mx('mail.test', { fresh: true }).then(
          ({ records }) => records,
          () => null,
        );
      await expect.poll(served).toEqual([{ preference: 10, exchange: 'mx.mail.test' }]);
      const txt = async (name: string) =>
        (await resolver.txt(name)).records.map((strings) => strings.join(''));
      expect(await txt('s1._domainkey.mail.test')).toEqual([records[4]?.value]);
      expect(await txt('odd.mail.test')).toEqual([records[5]?.value]);
      expect((await resolver.tlsa('_25._tcp.mail.test')).records[0]?.certificate).toEqual(
        Buffer.alloc(32, 0xab),
      );
      expect((await resolver.cname('a;b@c.mail.test')).records).toEqual(['mail.test']);
    },
    30_000,
  );
});
