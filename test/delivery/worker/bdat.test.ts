import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { attempt } from '../../../src/delivery/worker/attempt.ts';
import type { Client } from '../../../src/delivery/worker/client.ts';
import type { SmtpTimeouts } from '../../../src/delivery/worker/socket.ts';
import type { OutgoingMessage } from '../../../src/delivery/worker/transaction.ts';
import type { Sink, SinkOptions } from '../../support/smtp-sink.ts';
import type { Answer } from '../../support/smtp-sink-replies.ts';
import { BODY, client, deliver, host, job, lastError, message, sink, sinks, summary } from './setup.ts';

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

  it('to a site without chunking', async () => {
    const { to, by } = await warm();
    for (let n = 0; n < 2; n++) await deliver(by, job(to, { chunking: false }));
    expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
    await deliver(by, job(to));
    await deliver(by, job(to));
    expect(to.sessions[2]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT BDAT .');
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
    ['has a line like MAIL', 'Dear reader,\r\nmail from:<admin@other.example>\r\n'],
    ['begins with such a line', 'MAIL FROM: <admin@other.example>\r\n'],
    ['has such a line with blanks', 'Hello\r\n \tMAIL\tFROM :<admin@other.example>\r\n'],
    ['has a line like RCPT', 'Hello\r\nRcpt To:<b@other.example>\r\n'],
    ['has a line like DATA', 'Hello\r\ndata \r\n'],
    ['has a line like BDAT', 'Hello\r\nBDAT 100 LAST\r\n'],
  ];
  it.each(OTHERS)('when it %s', async (_, body) => {
    const { to, by } = await warm();
    expect(summary(await deliver(by, job(to), { body: Buffer.from(body) }))).toBe('replied dot 250');
    expect(laterVerbs(to)).toBe('MAIL RCPT DATA .');
    expect(to.messages[1]?.raw).toBe(body);
  });
});

describe('the limits', () => {
  it('are 64 KiB for the message with its header', async () => {
    const header = Buffer.from('A: b\r\n\r\n');
    for (const [size, verb] of [
      [65_536, 'BDAT'],
      [65_537, 'DATA'],
    ] as const) {
      const { to, by } = await warm();
      const body = Buffer.from(`${'x'.repeat(size - header.length - 2)}\r\n`);
      await deliver(by, job(to), { header, body });
      expect(laterVerbs(to)).toBe(`MAIL RCPT ${verb} .`);
      expect(to.messages[1]?.raw.length).toBe(size);
    }
  });

  it('are messagesPerConnection for both kinds of transactions together', async () => {
    const to = await sink({ keywords: KEYWORDS });
    const by = client();
    for (let n = 0; n < 5; n++) await deliver(by, job(to, { messagesPerConnection: 3 }));
    expect(to.sessions.map(({ messages }) => messages)).toEqual([3, 2]);
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

  it.each(['mail', 'rcpt', 'dot'] as const)('at %s is followed by RSET if it refuses it', async (phase) => {
    const { to, by } = await warm();
    to.program({ script: { [phase]: '550 5.7.1 no' } });
    await deliver(by, job(to));
    to.program({ script: {} });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(laterVerbs(to)).toBe('MAIL RCPT BDAT . RSET MAIL RCPT DATA .');
    expect(to.sessions).toHaveLength(1);
  });

  it('is not the one to RCPT after an unsolicited reply', async () => {
    const { to, by } = await warm();
    to.program({
      script: { mail: '250 2.0.0 taken again\r\n250 2.1.0 sender ok', dot: '554 5.7.1 spam' },
    });
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe('unanswered dot');
    expect(lastError(report)).toBe(
      'the server replied to the message with a status of an address (sent with BDAT)',
    );
    expect(to.count).toBe(1);
    to.program({ script: {} });
    for (let n = 0; n < 2; n++) await deliver(by, job(to));
    expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
  });
});

describe('a server that does not support BDAT', () => {
  it.each([500, 501, 502, 503, 504, 555])(
    'gets the message with DATA after %i, and only DATA after that',
    async (code) => {
      const { to, by } = await warm({ script: { bdat: `${code} 5.5.1 no` } });
      for (let n = 0; n < 2; n++) expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
      expect(laterVerbs(to)).toBe('MAIL RCPT BDAT . RSET MAIL RCPT DATA . MAIL RCPT DATA .');
      expect(to.count).toBe(3);
    },
  );

  it('and executes the chunk gets the message with DATA over another connection', async () => {
    const { to, by } = await warm({ chunks: 'executed' });
    for (let n = 0; n < 2; n++) {
      const report = await deliver(by, job(to));
      expect(summary(report)).toBe('replied dot 250');
      expect(report.sessions).toHaveLength(1);
    }
    expect(laterVerbs(to)).toMatch(/^MAIL RCPT BDAT SUBJECT: {2}HOW/);
    expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
    expect(to.messages.map(({ raw }) => raw)).toEqual([BODY, BODY, BODY]);
  });

  it('does not keep another server from getting BDAT', async () => {
    const [one, two] = await sinks(
      { keywords: KEYWORDS, script: { bdat: '502 5.5.1 no' } },
      { keywords: KEYWORDS },
    );
    const by = client();
    for (let n = 0; n < 2; n++) await deliver(by, job(one!, { slot: 'one' }));
    for (let n = 0; n < 2; n++)
      await deliver(by, job(one!, { slot: 'two', hosts: [host('two', two!.host)] }));
    expect(two!.sessions[0]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT BDAT .');
  });

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
  it.each(['unsolicited', 'closed'] as const)(
    'before anything was sent (%s): the message is sent again',
    async (event) => {
      const { to, by } = await warm();
      const next = job(to);
      const prepare = async () => {
        if (to.sessions.length === 1) {
          if (event === 'closed') to.disconnect();
          else to.send('451 4.4.2 timeout\r\n');
          await expect.poll(() => by.open.size === 0 || event === 'unsolicited').toBe(true);
          await sleep(50);
        }
        return message(next);
      };
      const report = await attempt(next, prepare, by);
      expect(report === null ? null : summary(report)).toBe('replied dot 250');
      expect(to.count).toBe(2);
      await deliver(by, job(to));
      expect(to.sessions[1]?.verbs).toContain('BDAT');
    },
  );

  it('ended with 421 in place of the reply to MAIL: the message is sent again', async () => {
    const { to, by } = await warm();
    const mail: Answer = { reply: '421 4.7.0 enough messages', close: true };
    to.program({ script: { mail: (session) => (session.number === 1 ? mail : undefined) } });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    await deliver(by, job(to));
    expect(to.sessions[1]?.verbs).toContain('BDAT');
  });

  const LOST: [phase: 'mail' | 'rcpt' | 'dot', answer: Answer][] = [
    ['mail', 'drop'],
    ['mail', 'reset'],
    ['mail', '354 go on'],
    ['rcpt', '354 go on'],
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
      const { to, by } = await warm({}, { dot: 1000 });
      to.program({ script: { [phase]: 'silent' } });
      const report = await deliver(by, job(to));
      expect(summary(report)).toBe('unanswered dot');
      expect(lastError(report)).toMatch(/ \(sent with BDAT\)$/);
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
    expect(lastError(report)).toBe('the delivery worker was stopped (sent with BDAT)');
  });
});

describe('a server that refuses the recipient and executes the chunk', () => {
  it('gets no more chunks, and its refusal stands', async () => {
    const { to, by } = await warm({
      recipients: { 'nobody@': '550 5.1.1 nobody' },
      chunks: 'executed-if-refused',
    });
    const body: Partial<OutgoingMessage> = { body: Buffer.from('a line\r\n'.repeat(20)) };
    const refused = job(to, { envelope: { from: '', to: 'nobody@example.test' } });
    expect(summary(await deliver(by, refused, body))).toBe('replied rcpt 550');
    await expect.poll(() => to.sessions[0]?.closed).toBe(true);
    for (let n = 0; n < 2; n++) expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions[1]?.verbs.join(' ')).toBe('EHLO MAIL RCPT DATA . MAIL RCPT DATA .');
  });
});
