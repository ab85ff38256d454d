import { describe, expect, it } from 'vitest';
import type { SinkSession } from '../../support/smtp-sink-session.ts';
import { client, deliver, job, sink, summary } from './setup.ts';

/** BDAT (RFC 3030) in one write with the commands before it, on a connection that was used before. */
const KEYWORDS = ['PIPELINING', 'CHUNKING', 'SIZE 52428800', '8BITMIME', 'ENHANCEDSTATUSCODES', 'SMTPUTF8'];
const DOTS = '.one\r\n..two\r\n.\r\nthree\r\n';

const verbsOf = (session: SinkSession | undefined) => session?.verbs.join(' ');

describe('a server that supports CHUNKING', () => {
  it('gets the first message of a connection after its reply to DATA, and the next ones in one write', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    const bytes = [DOTS, `Subject: b\r\n\r\n${DOTS}`, 'Subject: c\r\n\r\nno line end', ''];
    for (const text of bytes)
      expect(summary(await deliver(by, job(to), { bytes: Buffer.from(text) }))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
    expect(verbsOf(to.sessions[0])).toBe(
      'EHLO MAIL RCPT DATA . MAIL RCPT BDAT . MAIL RCPT BDAT . MAIL RCPT BDAT .',
    );
    // Two of three commands each time: they came with the one before them.
    expect(to.sessions[0]?.pipelined).toBe(4 * 2);
    expect(to.messages.map(({ raw }) => raw)).toEqual([DOTS, bytes[1], `${bytes[2]}\r\n`, '']);
    expect(to.sessions[0]?.commands.filter((line) => line.startsWith('BDAT'))).toEqual([
      `BDAT ${bytes[1]?.length} LAST`,
      `BDAT ${(bytes[2]?.length ?? 0) + 2} LAST`,
      'BDAT 0 LAST',
    ]);
  });

  it.each([
    ['is long', KEYWORDS, 64 * 1024 + 1],
    ['is sent without PIPELINING', KEYWORDS.filter((keyword) => keyword !== 'PIPELINING'), 10],
  ])('gets a message that %s after its reply to DATA', async (_, keywords, length) => {
    const to = await sink({ keywords });
    const by = client();
    await deliver(by, job(to));
    const bytes = Buffer.from(`${'x'.repeat(length - 2)}\r\n`);
    expect(summary(await deliver(by, job(to), { bytes }))).toBe('replied dot 250');
    expect(verbsOf(to.sessions[0])).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
  });

  it.each(['mail', 'rcpt'] as const)(
    'that refuses the message at %s gets no other one over this connection',
    async (phase) => {
      const to = await sink({ keywords: KEYWORDS });
      const by = client();
      await deliver(by, job(to));
      to.program({ script: { [phase]: '550 5.7.1 no' } });
      expect(summary(await deliver(by, job(to)))).toBe(`replied ${phase} 550`);
      await expect.poll(() => by.open.size).toBe(0);
      to.program({ script: {} });
      expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
      expect(to.sessions.map(verbsOf)[1]).toBe('EHLO MAIL RCPT DATA .');
      expect(to.count).toBe(2);
    },
  );

  it('that takes the lines of a message after a refused recipient for commands does not confuse its replies', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    await deliver(by, job(to));
    const confused = ['550 5.1.1 no', '503 5.5.1 RCPT first', '500 5.5.2 what?', '250 2.0.0 ok'];
    to.program({ script: { rcpt: { bytes: confused.map((line) => `${line}\r\n`).join('') } } });
    expect(summary(await deliver(by, job(to)))).toBe('replied rcpt 550');
    to.program({ script: {} });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(2);
  });

  it('that refuses the message after it was sent keeps the connection', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { dot: '554 5.7.1 spam' } });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 554');
    to.program({ script: {} });
    await deliver(by, job(to));
    expect(to.sessions).toHaveLength(1);
    expect(to.count).toBe(2);
  });

  it.each([
    ['502 5.5.1 not implemented', 'dot'],
    ['drop', 'mail'],
    [{ reply: '421 4.4.2 idle for too long', close: true as const }, 'mail'],
  ] as const)('gets the message over another connection, with DATA, after %j', async (answer, phase) => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    await deliver(by, job(to));
    to.program({
      script: { [phase]: (session: SinkSession) => (session.number === 1 ? answer : undefined) },
    });
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ error: null, phase: 'dot' }]);
    expect(to.sessions.map(verbsOf)[1]).toBe('EHLO MAIL RCPT DATA .');
    expect(to.count).toBe(2);
  });

  it.each(['rcpt', 'dot'] as const)(
    'may have accepted the message when it closes the connection in place of its reply at %s',
    async (phase) => {
      const to = await sink({ keywords: KEYWORDS });
      const by = client();
      await deliver(by, job(to));
      to.program({ script: { [phase]: 'drop' } });
      expect(summary(await deliver(by, job(to)))).toBe('unanswered dot');
      expect(to.sessions).toHaveLength(1);
    },
  );

  it.each(['mail', 'rcpt', 'dot'] as const)(
    'may have accepted the message when it is silent at %s',
    async (phase) => {
      const to = await sink({ keywords: KEYWORDS });
      const by = client({ dot: 300 });
      await deliver(by, job(to));
      to.program({ script: { [phase]: 'silent' } });
      expect(summary(await deliver(by, job(to)))).toBe('unanswered dot');
      expect(to.sessions).toHaveLength(1);
    },
  );

  it('may have accepted the message when the worker is stopped before its reply at MAIL', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { mail: 'silent' } });
    const attempted = deliver(by, job(to));
    await expect.poll(() => to.sessions[0]?.stalled).toBe(true);
    by.abort();
    expect(summary(await attempted)).toBe('unanswered dot');
  });

  it('has not accepted the message when it ends the session with 421 in place of its reply at RCPT', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { rcpt: { reply: '421 4.7.0 too much from you', close: true } } });
    expect(summary(await deliver(by, job(to)))).toBe('unreachable rcpt 421');
  });
});
