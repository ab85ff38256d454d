import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BODY, client, deliver, job, lastError, sink, sinks, summary } from './setup.ts';

const HEADER = 'Subject: x\r\n\r\n';

describe('the message as received', () => {
  const CASES: [name: string, sent: string, received?: string][] = [
    ['as it is', BODY],
    ['with a line that is a dot', `${HEADER}a\r\n.\r\nb\r\n`],
    ['with lines that begin with dots', `${HEADER}.a\r\n..b\r\n...\r\n. c\r\n`],
    ['with a dot as its last line', `${HEADER}.\r\n`],
    ['with several dot lines in a row', `${HEADER}.\r\n.\r\n.\r\n`],
    ['that begins with a dot', '.odd: header\r\n\r\nbody\r\n'],
    ['without an end to its last line', `${HEADER}no end`, `${HEADER}no end\r\n`],
    ['whose last line is a dot without an end', `${HEADER}a\r\n.`, `${HEADER}a\r\n.\r\n`],
    ['with empty lines at its end', `${HEADER}a\r\n\r\n\r\n`],
    ['that is empty', '', ''],
  ];
  it.each(CASES)('arrives %s', async (_, sent, received = sent) => {
    const to = await sink();
    await deliver(client(), job(to), { body: Buffer.from(sent, 'latin1') });
    expect(to.messages).toMatchObject([{ raw: received }]);
  });

  it('arrives with any bytes, and its dots never end it early', async () => {
    const to = await sink();
    const by = client();
    const pieces = fc.constantFrom(
      '.',
      '..',
      '\r\n',
      '\r\n.',
      'a',
      'é',
      ' ',
      '\r\n.\r\n',
      'QUIT\r\n',
      'x'.repeat(70),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 40 }), async (parts) => {
        const text = `${HEADER}${parts.join('')}\r\n`;
        const before = to.count;
        await deliver(by, job(to), { body: Buffer.from(text, 'latin1') });
        expect(to.count).toBe(before + 1);
        expect(to.messages.at(-1)?.raw).toBe(text);
      }),
      { numRuns: 60 },
    );
    expect(to.sessions).toHaveLength(1);
  });

  it.each([
    [100, 65_000],
    [100, 65_436],
    [100, 65_438],
    [70_000, 2],
    [200, 200_000],
    [65_536, 0],
  ])('arrives whole with a header of %i and a body of %i bytes', async (headerLength, bodyLength) => {
    const to = await sink();
    const header = Buffer.from(`Subject: ${'x'.repeat(headerLength - 13)}\r\n\r\n`);
    const body = Buffer.from('..dots\r\n'.repeat(bodyLength).slice(-bodyLength));
    expect(summary(await deliver(client(), job(to), { header, body }))).toBe('replied dot 250');
    expect(to.messages[0]?.raw === header.toString() + body.toString()).toBe(true);
  });

  it('arrives whole when it is far larger than one block, with dots across the blocks', async () => {
    const bytes = Buffer.from(HEADER + '.a line\r\n..another\r\n'.repeat(400_000));
    const to = await sink({ bodyBytesPerSecond: 40_000_000 });
    expect(summary(await deliver(client(), job(to), { body: bytes }))).toBe('replied dot 250');
    expect(to.messages[0]?.raw === bytes.toString('latin1')).toBe(true);
  });
});

describe('a server that refuses in the middle of the message', () => {
  const bytes = Buffer.concat([Buffer.from(HEADER), Buffer.alloc(24_000_000, 'lorem ipsum dolor\r\n')]);
  it.each([
    ['and hangs up', { reply: '552 5.3.4 too large after all', close: true as const }],
    ['and goes on reading', '552 5.3.4 too large after all'],
  ])('decides with its reply: %s', async (_, answer) => {
    const to = await sink({ body: { afterBytes: 1_000_000, answer } });
    const report = await deliver(client(), job(to), { body: bytes });
    expect(report).toMatchObject({ conclusion: 'replied', reply: { code: 552, enhanced: '5.3.4' } });
    await expect.poll(() => to.open).toBe(0);
  });

  it('fails the session with 421, and nothing was accepted', async () => {
    const to = await sink({
      body: { afterBytes: 1_000_000, answer: { reply: '421 4.3.0 going down', close: true } },
    });
    expect(summary(await deliver(client(), job(to), { body: bytes }))).toBe('unreachable data 421');
  });

  it('is followed by the next host when it closes without a reply: the final dot was never sent', async () => {
    const [one, two] = await sinks({ body: { afterBytes: 1_000_000, answer: 'drop' } }, {});
    const report = await deliver(client(), job([one!, two!]), { body: bytes });
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions[0]).toMatchObject({ phase: 'data', error: expect.stringMatching(/during DATA$/) });
  });
});

describe('SIZE (RFC 1870)', () => {
  const bytes = Buffer.from(`${HEADER}${'x'.repeat(70)}\r\n`);

  it.each([
    ['SIZE 50', false],
    [`SIZE ${bytes.length - 1}`, false],
    [`SIZE ${bytes.length}`, true],
    ['SIZE 0', true],
    ['SIZE', true],
    ['SIZE much', true],
  ])('%s: sent %s', async (offer, sent) => {
    const to = await sink({ keywords: [offer] });
    const report = await deliver(client(), job(to), { body: bytes });
    expect(to.count).toBe(sent ? 1 : 0);
    if (!sent) {
      expect(report).toMatchObject({
        conclusion: 'refused-locally',
        reply: { code: 552, enhanced: '5.3.4' },
      });
      expect(to.sessions[0]?.commands.map((line) => line.slice(0, 4))).toEqual(['EHLO']);
    }
  });

  it('sends SIZE without doubled dots when the server supports it', async () => {
    const to = await sink({ keywords: ['SIZE 1000'] });
    await deliver(client(), job(to), { body: Buffer.from(`${HEADER}.\r\n`) });
    expect(to.messages[0]?.parameters).toBe(`SIZE=${HEADER.length + 3}`);
  });

  it('does not try the next host after a message that is too large', async () => {
    const [one, two] = await sinks({ keywords: ['SIZE 10'] }, {});
    expect(summary(await deliver(client(), job([one!, two!]), { body: bytes }))).toBe(
      'refused-locally ehlo 552',
    );
    expect(two?.sessions).toHaveLength(0);
  });

  it('is not decided by a backup when the preferred host is down', async () => {
    const [one, two] = await sinks({ script: { greeting: 'drop' } }, { keywords: ['SIZE 10'] });
    const report = await deliver(client(), job([one!, two!]), { body: bytes });
    expect(summary(report)).toBe('unreachable greeting');
    expect(two?.sessions).toHaveLength(1);
  });

  it('reuses the connection for smaller messages', async () => {
    const to = await sink({ keywords: ['SIZE 60'] });
    const by = client();
    await deliver(by, job(to), { body: bytes });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
  });
});

describe('SMTPUTF8 (RFC 6531)', () => {
  const envelope = { from: 'b-1@return-a.example.org', to: 'jörg@example.test' };
  const bytes = Buffer.from('To: jörg@example.test\r\n\r\nhello\r\n');

  it('is requested only when the message needs it', async () => {
    const to = await sink({ keywords: ['SMTPUTF8', '8BITMIME'] });
    await deliver(client(), job(to));
    await deliver(client(), job(to, { envelope }), { body: bytes, utf8: true });
    expect(to.messages.map(({ parameters }) => parameters)).toEqual(['', 'SMTPUTF8 BODY=8BITMIME']);
    expect(to.messages[1]?.to).toEqual(['jörg@example.test']);
    expect(to.messages[1]?.raw).toBe(bytes.toString('latin1'));
  });

  it('tries the next host when it is not offered', async () => {
    const [one, two] = await sinks({ keywords: [] }, { keywords: ['SMTPUTF8'] });
    expect(
      summary(await deliver(client(), job([one!, two!], { envelope }), { body: bytes, utf8: true })),
    ).toBe('replied dot 250');
    expect(one?.sessions[0]?.commands).not.toContain('DATA');
  });

  it('refuses the message locally when no host offers it', async () => {
    const all = await sinks({ keywords: [] }, { keywords: [] });
    const report = await deliver(client(), job(all, { envelope }), { body: bytes, utf8: true });
    expect(report).toMatchObject({ conclusion: 'refused-locally', reply: { code: 553, enhanced: '5.6.7' } });
    expect(lastError(report)).toBe(
      'mx2.example.test does not support internationalized addresses (SMTPUTF8)',
    );
  });
});
