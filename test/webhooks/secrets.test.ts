import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { signatureHeaders } from '../../src/webhooks/payload.ts';
import { createWebhookSecrets, presentSecret } from '../../src/webhooks/secrets.ts';

const KEY = systemRandom.bytes(32);
const OLD = systemRandom.bytes(32);
const BODY = '{"id":"evt_1","text":"Grüße, 你好"}';
const signed = (now: number, keys = [KEY]) => signatureHeaders(keys, { id: 'evt_1', body: BODY, now });

describe('a signature', () => {
  it('is verified by the Standard Webhooks library', () => {
    expect(new Webhook(presentSecret(KEY)).verify(BODY, signed(Date.now()))).toEqual(JSON.parse(BODY));
  });

  it('has the form of Standard Webhooks', () => {
    expect(signed(1_769_860_800_999, [KEY, OLD])).toEqual({
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1769860800',
      'webhook-signature': expect.stringMatching(/^v1,[0-9A-Za-z+/]{43}= v1,[0-9A-Za-z+/]{43}=$/),
    });
  });

  it('is rejected with another key, body or id, and when it is old', () => {
    const receiver = new Webhook(presentSecret(KEY));
    expect(() => receiver.verify(BODY, signed(Date.now(), [OLD]))).toThrow('No matching signature');
    expect(() => receiver.verify(`${BODY} `, signed(Date.now()))).toThrow('No matching signature');
    expect(() => receiver.verify(BODY, { ...signed(Date.now()), 'webhook-id': 'evt_2' })).toThrow(
      'No matching signature',
    );
    expect(() => receiver.verify(BODY, signed(Date.now() - 600_000))).toThrow('too old');
  });

  it('contains one for each key during a rotation', () => {
    for (const key of [KEY, OLD]) {
      const receiver = new Webhook(presentSecret(key));
      expect(receiver.verify(BODY, signed(Date.now(), [KEY, OLD]))).toEqual(JSON.parse(BODY));
    }
  });
});

describe('a secret', () => {
  it('is whsec_ and 32 bytes in base64', () => {
    expect(presentSecret(KEY)).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
  });

  it('is sealed for its webhook only', () => {
    const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
    const sealed = createWebhookSecrets({ seal, random: systemRandom }).create('webhook_1');
    expect(seal.open(sealed, 'webhook:webhook_1')).toHaveLength(32);
    expect(() => seal.open(sealed, 'webhook:webhook_2')).toThrow();
  });
});
