import { generateKeyPairSync } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { composeInSteps, headerBytes } from '../../src/mail/compose.ts';
import { MARKS, type MessageContent } from '../../src/mail/content.ts';
import { signDkim } from '../../src/mail/dkim.ts';
import { encodeContents } from '../../src/sending/encode.ts';
import { htmlOf } from '../bench/message.ts';
import { copyWith } from '../support/campaign-copy.ts';

/*
 * The bytes that are written to new buffers for a message, as multiples of its size. They do not depend on the machine: a
 * change that copies the message once more fails here. Strings are not counted.
 */
const KB = 1024;
const { privateKey: key } = generateKeyPairSync('ed25519');

afterEach(() => vi.restoreAllMocks());

describe.each([[10 * KB], [100 * KB], [1024 * KB]])('a message with %i bytes of HTML', (size) => {
  const content: MessageContent = {
    from: { name: 'Shop', address: 'orders@shop.example' },
    to: [{ name: '', address: 'ann@example.net' }],
    cc: [],
    replyTo: null,
    subject: 'Your order',
    html: `${htmlOf(size)}<p><a href="${MARKS.unsubscribeUrl}">Unsubscribe</a></p>`,
    text: null,
    headers: [],
    attachments: [],
    messageId: '1@shop.example',
    date: Date.UTC(2026, 0, 1),
  };

  it('is written to one buffer when it is accepted', async () => {
    const json = Buffer.byteLength(JSON.stringify(content));
    const bytes = await copied(async () => {
      const packed = await encodeContents([content], 'account');
      if (isRefusal(packed)) throw new Error(packed.message);
      // A long content is stored without the escapes of JSON.
      expect(packed[0]?.size).toBeGreaterThan(size);
      expect(packed[0]?.size).toBeLessThanOrEqual(json);
    });
    expect(bytes / json).toBeLessThan(1.3);
  });

  it('is written to two buffers when it is composed and signed', async () => {
    const signers = [{ domain: 'shop.example', selector: 's', key }];
    const composeAndSign = () => {
      const composed = withoutPause(composeInSteps(content, copyWith(undefined)));
      return headerBytes(composed, signDkim(composed, signers, 0)).length + composed.body.length;
    };
    // Creates the memory that all messages share.
    const length = composeAndSign();
    const bytes = await copied(composeAndSign);
    expect(bytes / length).toBeLessThan(2.1);
  });
});

/** The bytes of all buffers that `run` creates, except the short ones of Node's pool. */
async function copied(run: () => unknown): Promise<number> {
  const creators = (['allocUnsafe', 'allocUnsafeSlow'] as const).map((name) => vi.spyOn(Buffer, name));
  await run();
  return creators
    .flatMap(({ mock }) => mock.results.map(({ value }) => value))
    .reduce((sum, value) => sum + (Buffer.isBuffer(value) ? value.length : 0), 0);
}
