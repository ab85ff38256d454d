import { describe, expect, it } from 'vitest';
import type { Client } from '../../../src/delivery/worker/client.ts';
import type { OutgoingMessage } from '../../../src/delivery/worker/outgoing-message.ts';
import type { SmtpTimeouts } from '../../../src/delivery/worker/timeouts.ts';
import type { Sink, SinkOptions } from '../../support/smtp-sink.ts';
import type { Answer } from '../../support/smtp-sink-replies.ts';
import { BODY, client, deliver, job, lastError, sink, sinks, summary } from './setup.ts';

const KEYWORDS = ['PIPELINING', 'CHUNKING', 'SIZE 1000000'];

/** A sink that supports BDAT and has accepted a message with DATA, over a connection that is idle now. */
async function warm(
  options: SinkOptions = {},
  timeouts: Partial<SmtpTimeouts> = {},
): Promise<{ to: Sink; by: Client }> {
  const to = await sink({ keywords: KEYWORDS, ...options });
  const by = client(timeouts);
  expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
  return { to, by };
}

/** The verbs of a connection after those of the first message. */
function laterVerbs({ sessions }: Sink, connection = 0): string {
  return sessions[connection]?.verbs.slice(5).join(' ') ?? '';
}

describe('a message over a connection that has just been used', () => {
  it('is sent in one write with BDAT', async () => {
    const { to, by } = await warm();
    const before = to.sessions[0]?.pipelined ?? 0;
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(laterVerbs(to)).toBe('MAIL RCPT BDAT .');
    expect(to.sessions[0]?.pipelined).toBe(before + 2);
    expect(to.messages[1]).toMatchObject({
      from: 'b-1@return-a.example.org',
      to: ['ann@example.test'],
      parameters: `SIZE=${BODY.length}`,
      raw: BODY,
    });
  });

  it('is sent byte for byte, without doubled dots', async () => {
    const { to, by } = await warm();
    const changes = { header: Buffer.from('A: b\r\n\r\n'), body: Buffer.from('.\r\n..\r\n.x\r\n') };
    await deliver(by, job(to), changes);
    expect(to.messages[1]?.raw).toBe('A: b\r\n\r\n.\r\n..\r\n.x\r\n');
  });

  it('ends with a line end', async () => {
    const { to, by } = await warm();
    await deliver(by, job(to), { body: Buffer.from('no line end') });
    expect(to.messages[1]?.raw).toBe('no line end\r\n');
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
  });

  it('may have addresses that are not ASCII', async () => {
    const { to, by } = await warm({ keywords: [...KEYWORDS, 'SMTPUTF8', '8BITMIME'] });
    const changes = { to: 'jörg@example.test', body: Buffer.from('Grüße\r\n'), utf8: true };
    await deliver(by, job(to), changes);
    expect(to.messages[1]).toMatchObject({
      to: ['jörg@example.test'],
      parameters: 'SIZE=9 SMTPUTF8 BODY=8BITMIME',
    });
    expect(Buffer.from(to.messages[1]?.raw ?? '', 'latin1').toString()).toBe('Grüße\r\n');
  });
});

describe('a message is sent with DATA', () => {
  const OFFERS: [what: string, keywords: string[]][] = [
    ['CHUNKING', ['PIPELINING']],
    ['PIPELINING', ['CHUNKING']],
  ];
  it.each(OFFERS)('to a server that does not offer %s', async (_, keywords) => {
    const { to, by } = await warm({ keywords });
    await deliver(by, job(to));
    expect(laterVerbs(to)).toBe('MAIL RCPT DATA .');
  });

  it('over a new connection', async () => {
    const { to, by } = await warm();
    await deliver(by, job(to, { slot: 'other' }));
    expect(to.sessions[1]?.verbs).toContain('DATA');
  });

  it('over a connection that was idle for more than a second', async () => {
    let now = 0;
    const to = await sink({ keywords: KEYWORDS });
    const by = client({}, { monotonic: { now: () => now } });
    await deliver(by, job(to));
    now += 1001;
    await deliver(by, job(to));
    now += 1000;
    await deliver(by, job(to));
    expect(laterVerbs(to)).toBe('MAIL RCPT DATA . MAIL RCPT BDAT .');
  });

  it('after a recipient was refused', async () => {
    const { to, by } = await warm({ recipients: { 'nobody@': '550 5.1.1 nobody' } });
    const refused = job(to, { envelope: { from: '', to: 'nobody@example.test' } });
    expect(summary(await deliver(by, refused))).toBe('replied rcpt 550');
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(laterVerbs(to)).toBe('MAIL RCPT BDAT . RSET MAIL RCPT DATA .');
    expect(to.sessions).toHaveLength(1);
  });

  const OTHERS: [what: string, body: string][] = [
    ['is too large for one write', `${'x'.repeat(998)}\r\n`.repeat(66)],
    ['has a line like a command', 'Dear reader,\r\nmail from:<admin@other.example>\r\n'],
    ['begins with such a line', 'MAIL FROM: <admin@other.example>\r\n'],
  ];
  it.each(OTHERS)('when it %s', async (_, body) => {
    const { to, by } = await warm();
    expect(summary(await deliver(by, job(to), { body: Buffer.from(body) }))).toBe('replied dot 250');
    expect(laterVerbs(to)).toBe('MAIL RCPT DATA .');
    expect(to.messages[1]?.raw).toBe(body);
  });
});

describe('a reply to a message that was sent with BDAT', () => {
  const REPLIES: [phase: 'mail' | 'rcpt' | 'dot', answer: Answer, expected: string][] = [
    ['mail', '450 4.1.8 later', 'replied mail 450'],
    ['mail', '550 5.7.1 not you', 'replied mail 550'],
    ['rcpt', '450 4.2.1 later', 'replied rcpt 450'],
    ['rcpt', '550 5.1.1 nobody', 'replied rcpt 550'],
    ['dot', '299 2.0.0 odd', 'replied dot 299'],
    ['dot', '450 4.3.0 later', 'replied dot 450'],
    ['dot', '554 5.7.1 spam', 'replied dot 554'],
    ['rcpt', { reply: '421 4.7.0 too much', close: true }, 'unreachable rcpt 421'],
    ['dot', { reply: '421 4.7.0 too much', close: true }, 'unreachable dot 421'],
  ];
  it.each(REPLIES)('at %s: %j', async (phase, answer, expected) => {
    const { to, by } = await warm();
    to.program({ script: { [phase]: answer } });
    expect(summary(await deliver(by, job(to)))).toBe(expected);
    expect(to.count).toBe(1);
  });

  it('leaves a connection that can be used after a refusal', async () => {
    for (const phase of ['mail', 'rcpt', 'dot'] as const) {
      const { to, by } = await warm();
      to.program({ script: { [phase]: '550 5.7.1 no' } });
      await deliver(by, job(to));
      to.program({ script: {} });
      expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
      expect(to.sessions).toHaveLength(1);
    }
  });
});

describe('a server that does not support BDAT', () => {
  it.each(['500 5.5.1 what?', '502 5.5.1 no', '503 5.5.1 no', '555 5.5.4 no'])(
    'gets the message with DATA after %s, and only DATA after that',
    async (bdat) => {
      const { to, by } = await warm({ script: { bdat } });
      for (let n = 0; n < 2; n++) expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
      expect(laterVerbs(to)).toBe('MAIL RCPT BDAT . RSET MAIL RCPT DATA . MAIL RCPT DATA .');
      expect(to.count).toBe(3);
    },
  );

  it('gets BDAT again after an hour', async () => {
    let now = 0;
    const to = await sink({ keywords: KEYWORDS, script: { bdat: '502 5.5.1 no' } });
    const by = client({}, { monotonic: { now: () => now } });
    for (let n = 0; n < 2; n++) await deliver(by, job(to, { idleMs: 10_000_000 }));
    now += 3_600_001;
    to.program({ script: {} });
    for (let n = 0; n < 2; n++) await deliver(by, job(to, { idleMs: 10_000_000 }));
    expect(laterVerbs(to)).toBe('MAIL RCPT BDAT . RSET MAIL RCPT DATA . MAIL RCPT DATA . MAIL RCPT BDAT .');
  });
});

describe('a connection that is lost while a message is sent with BDAT', () => {
  it.each(['drop', 'reset'] as const)('before any reply (%s): the message is sent again', async (ending) => {
    const { to, by } = await warm();
    to.program({ script: { mail: (session) => (session.number === 1 ? ending : undefined) } });
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ error: null, phase: 'dot' }]);
    expect(to.count).toBe(2);
    to.program({ script: {} });
    await deliver(by, job(to));
    expect(to.sessions[1]?.verbs).not.toContain('BDAT');
  });

  it('ended with 421 in place of the reply to MAIL: the message is sent again', async () => {
    const { to, by } = await warm();
    const mail: Answer = { reply: '421 4.7.0 enough messages', close: true };
    to.program({ script: { mail: (session) => (session.number === 1 ? mail : undefined) } });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    await deliver(by, job(to));
    expect(to.sessions[1]?.verbs).toContain('BDAT');
  });

  const LOST: [phase: 'rcpt' | 'dot', answer: Answer][] = [
    ['rcpt', 'drop'],
    ['rcpt', 'not a reply'],
    ['dot', 'drop'],
    ['dot', 'reset'],
    ['dot', '354 go on'],
    ['dot', { accepted: 'drop' }],
  ];
  it.each(LOST)('at %s (%j): the server may have accepted it', async (phase, answer) => {
    const [one, two] = await sinks({ keywords: KEYWORDS }, {});
    const by = client();
    await deliver(by, job([one!, two!]));
    one!.program({ script: { [phase]: answer } });
    const report = await deliver(by, job([one!, two!]));
    expect(summary(report)).toBe('unanswered dot');
    expect(report.sessions).toHaveLength(1);
    expect(two!.sessions).toHaveLength(0);
  });

  it.each(['mail', 'rcpt', 'dot'] as const)(
    'after a timeout at %s: the server may have accepted it',
    async (phase) => {
      const { to, by } = await warm({}, { dot: 60 });
      to.program({ script: { [phase]: 'silent' } });
      expect(summary(await deliver(by, job(to)))).toBe('unanswered dot');
      to.program({ script: {} });
      for (let n = 0; n < 2; n++) await deliver(by, job(to));
      expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
    },
  );

  it('by this side: the server may have accepted it', async () => {
    const { to, by } = await warm();
    to.program({ script: { mail: 'silent' } });
    const attempted = deliver(by, job(to));
    await expect.poll(() => to.sessions[0]?.stalled).toBe(true);
    by.abort();
    const report = await attempted;
    expect(summary(report)).toBe('unanswered dot');
    expect(lastError(report)).toBe('the delivery worker was stopped');
  });
});

describe('a server that refuses the recipient and executes the chunk', () => {
  it('gets no more chunks, and its refusal stands', async () => {
    const { to, by } = await warm({
      recipients: { 'nobody@': '550 5.1.1 nobody' },
      discardsChunks: false,
    });
    const body: Partial<OutgoingMessage> = { body: Buffer.from('a line\r\n'.repeat(20)) };
    const refused = job(to, { envelope: { from: '', to: 'nobody@example.test' } });
    expect(summary(await deliver(by, refused, body))).toBe('replied rcpt 550');
    await expect.poll(() => to.sessions[0]?.closed).toBe(true);
    for (let n = 0; n < 2; n++) expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
  });
});
