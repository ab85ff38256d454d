import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createNameserver, type Nameserver } from '../../src/dns/nameserver.ts';
import { createResolver, type Resolver } from '../../src/dns/resolver.ts';
import type { ZoneRecord } from '../../src/dns/zone-record.ts';
import { generateEd25519Key, publicKeyRecordValue, revokedKeyRecordValue, signDkim } from '../../src/mail/dkim.ts';
import { verifySignatures } from '../../src/mail/incoming/verify-signatures.ts';
import { verifyDkim } from '../support/dkimpy.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { fixedKey } from '../support/rsa-keys.ts';

/*
 * Several signatures of one message: RSA and Ed25519 of the domain (RFC 8463), and RSA of the platform, with keys that our
 * own name server answers.
 *
 *   signDkim ──▶ message ──▶ dkimpy, mailauth ──DNS──▶ name server
 */
const required = requirePrograms('dkimpy');

const MESSAGE = {
  header: ['From: a@kunde.example', 'To: b@empfang.example', 'Subject: Several  signatures', 'MIME-Version: 1.0'],
  body: Buffer.from('Text  with white space \r\n\r\n\r\n'),
};

describe.skipIf(required.missing)(`messages with several signatures${required.reason}`, () => {
  const ed25519 = generateEd25519Key();
  const signers = [
    { domain: 'kunde.example', selector: 'pa1', key: fixedKey(0) },
    { domain: 'kunde.example', selector: 'pe1', key: ed25519 },
    { domain: 'mx.postrider.example', selector: 'pf1', key: fixedKey(1) },
  ];
  const record = (name: string, value: string): ZoneRecord => ({ name, type: 'TXT', value, ttl: 1 });
  let records: ZoneRecord[];
  let server: Nameserver;
  let resolver: Resolver;

  beforeAll(async () => {
    records = [
      record('pa1._domainkey.kunde.example', publicKeyRecordValue(fixedKey(0))),
      // As published: a CNAME of the domain into the platform's zone.
      { name: 'pe1._domainkey.kunde.example', type: 'CNAME', value: 'e.alt.dkim.mx.postrider.example', ttl: 1 },
      record('e.alt.dkim.mx.postrider.example', publicKeyRecordValue(ed25519)),
      record('pf1._domainkey.mx.postrider.example', publicKeyRecordValue(fixedKey(1))),
    ];
    server = await createNameserver({
      zone: () => records,
      origins: ['kunde.example', 'mx.postrider.example'],
      listen: { host: '127.0.0.1', port: 0 },
      onError: (error) => {
        throw error;
      },
    });
    const resolvers = [`127.0.0.1:${server.port}`];
    resolver = createResolver({ resolvers, timeoutMs: 2000, clock: systemClock, random: systemRandom });
  });
  afterAll(async () => {
    resolver?.close();
    await server?.close();
  });

  const signed = () => {
    const fields = [...signDkim(MESSAGE, signers, Date.now()), ...MESSAGE.header];
    return Buffer.concat([Buffer.from(`${fields.join('\r\n')}\r\n\r\n`), MESSAGE.body]);
  };

  it('are verified by dkimpy', async () => {
    const results = await verified(signed());
    expect(results.map(({ domain, selector, valid, fault }) => [domain, selector, valid, fault])).toEqual([
      ['kunde.example', 'pa1', true, ''],
      ['kunde.example', 'pe1', true, ''],
      ['mx.postrider.example', 'pf1', true, ''],
    ]);
  });

  it('are invalid after a change of the body, all of them', async () => {
    const changed = Buffer.from(signed().toString().replace('white space', 'other space'));
    expect((await verified(changed)).map(({ valid }) => valid)).toEqual([false, false, false]);
  });

  it('keep the signatures whose keys are not revoked', async () => {
    const message = signed();
    records = records.map((each) =>
      each.name.startsWith('pa1.') ? record(each.name, revokedKeyRecordValue(fixedKey(0))) : each,
    );
    expect((await verified(message)).map(({ valid }) => valid)).toEqual([false, true, true]);
  });

  const verified = (message: Buffer) => verifyDkim(message, { host: '127.0.0.1', port: server.port });
});
