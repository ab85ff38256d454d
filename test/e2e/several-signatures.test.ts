import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { txtRecord } from '../../src/domains/dns-record.ts';
import {
  generateEd25519Key,
  publicKeyRecordValue,
  revokedKeyRecordValue,
  signDkim,
} from '../../src/mail/dkim.ts';
import { verifyDkim } from '../support/dkimpy.ts';
import { type Knot, startKnot } from '../support/knot.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { fixedKey } from '../support/rsa-keys.ts';

/*
 * Several signatures of one message: RSA and Ed25519 of the domain (RFC 8463), and RSA of the platform.
 *
 *   signDkim ──▶ message ──▶ dkimpy ──DNS──▶ Knot
 */
const required = requirePrograms('dkimpy', 'knot');

const MESSAGE = {
  header: [
    'From: a@kunde.example',
    'To: b@empfang.example',
    'Subject: Several  signatures',
    'MIME-Version: 1.0',
  ],
  body: Buffer.from('Text  with white space \r\n\r\n\r\n'),
};

const PLATFORM = 'mx.postrider.example';

describe.skipIf(required.missing)(`messages with several signatures${required.reason}`, () => {
  const ed25519 = generateEd25519Key();
  const signers = [
    { domain: 'kunde.example', selector: 'pa1', key: fixedKey(0) },
    { domain: 'kunde.example', selector: 'pe1', key: ed25519 },
    { domain: PLATFORM, selector: 'pf1', key: fixedKey(1) },
  ];
  const key = (name: string, value: string) => txtRecord({ name, value, description: '' });
  let knot: Knot;

  beforeAll(async () => {
    knot = await startKnot();
    await knot.serve(PLATFORM, [key(`pf1._domainkey.${PLATFORM}`, publicKeyRecordValue(fixedKey(1)))]);
    await serveKeys(publicKeyRecordValue(fixedKey(0)));
  });
  afterAll(() => knot?.stop());

  const serveKeys = (first: string) =>
    knot.serve('kunde.example', [
      key('pa1._domainkey.kunde.example', first),
      key('pe1._domainkey.kunde.example', publicKeyRecordValue(ed25519)),
    ]);

  const signed = () => {
    const fields = [...signDkim(MESSAGE, signers, Date.now()), ...MESSAGE.header];
    return Buffer.concat([Buffer.from(`${fields.join('\r\n')}\r\n\r\n`), MESSAGE.body]);
  };
  const verified = (message: Buffer) => verifyDkim(message, knot);

  it('are verified by dkimpy', () => {
    const results = verified(signed());
    expect(results.map(({ domain, selector, valid, fault }) => [domain, selector, valid, fault])).toEqual([
      ['kunde.example', 'pa1', true, ''],
      ['kunde.example', 'pe1', true, ''],
      [PLATFORM, 'pf1', true, ''],
    ]);
  });

  it('are all invalid after a change of the body', () => {
    const changed = Buffer.from(signed().toString().replace('white space', 'other space'));
    expect(verified(changed).map(({ valid }) => valid)).toEqual([false, false, false]);
  });

  it('remain valid for the keys that are not revoked', async () => {
    const message = signed();
    await serveKeys(revokedKeyRecordValue(fixedKey(0)));
    expect(verified(message).map(({ valid }) => valid)).toEqual([false, true, true]);
  });
});
