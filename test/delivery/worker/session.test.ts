import { describe, expect, it } from 'vitest';
import type { Answer } from '../../support/smtp-sink-replies.ts';
import type { SinkPhase } from '../../support/smtp-sink-session.ts';
import { client, deliver, job, lastError, sink, summary } from './setup.ts';

const KEYWORDS = ['SIZE 1000000', 'ENHANCEDSTATUSCODES'];
const LINE_UP: [name: string, keywords: string[]][] = [
  ['one command at a time', KEYWORDS],
  ['pipelined', [...KEYWORDS, 'PIPELINING']],
];

interface Case {
  phase: SinkPhase;
  answer: Answer;
  summary: string;
  error?: RegExp;
}

const CLOSED = 'server (closed|reset) the connection';

const CASES: Case[] = [
  // Each 2xx is positive (RFC 5321 §4.2.1: the first digit decides), but DATA requires 354.
  { phase: 'greeting', answer: '250 odd but willing', summary: 'replied dot 250' },
  { phase: 'ehlo', answer: '251 odd but willing', summary: 'replied dot 250' },
  { phase: 'mail', answer: '252 odd but willing', summary: 'replied dot 250' },
  { phase: 'rcpt', answer: '251 2.1.5 will forward', summary: 'replied dot 250' },
  { phase: 'dot', answer: '299 2.0.0 odd', summary: 'replied dot 299' },
  { phase: 'data', answer: '250 odd', summary: 'unreachable data', error: /^unexpected reply to DATA: 250/ },
  { phase: 'mail', answer: '354 odd', summary: 'unreachable mail', error: /^unexpected reply to MAIL: 354/ },
  { phase: 'rcpt', answer: '354 odd', summary: 'unreachable rcpt', error: /^unexpected reply to RCPT: 354/ },
  {
    phase: 'greeting',
    answer: '354 odd',
    summary: 'unreachable greeting',
    error: /^unexpected reply: 354 odd/,
  },

  { phase: 'greeting', answer: '450 4.3.2 later', summary: 'replied greeting 450' },
  { phase: 'ehlo', answer: '450 4.3.2 later', summary: 'replied ehlo 450' },
  { phase: 'mail', answer: '450 4.1.8 later', summary: 'replied mail 450' },
  { phase: 'rcpt', answer: '450 4.2.1 later', summary: 'replied rcpt 450' },
  { phase: 'data', answer: '450 4.3.0 later', summary: 'replied data 450' },
  { phase: 'dot', answer: '450 4.3.0 later', summary: 'replied dot 450' },

  { phase: 'greeting', answer: '554 5.7.1 not you', summary: 'replied greeting 554' },
  { phase: 'mail', answer: '550 5.7.1 not you', summary: 'replied mail 550' },
  { phase: 'rcpt', answer: '550 5.1.1 nobody', summary: 'replied rcpt 550' },
  { phase: 'data', answer: '554 5.5.1 no', summary: 'replied data 554' },
  { phase: 'dot', answer: '554 5.6.0 no', summary: 'replied dot 554' },

  // 421 ends the session and does not decide; its text is reported.
  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const).map((phase) => ({
    phase,
    answer: { reply: '421 4.7.0 too much from you', close: true as const },
    summary: `unreachable ${phase} 421`,
    error: /^the server ended the session$/,
  })),
  {
    phase: 'mail',
    answer: '421 4.7.0 still open',
    summary: 'unreachable mail 421',
    error: /^the server ended/,
  },

  {
    phase: 'greeting',
    answer: 'drop',
    summary: 'unreachable greeting',
    error: new RegExp(`^${CLOSED} before the greeting$`),
  },
  {
    phase: 'ehlo',
    answer: 'drop',
    summary: 'unreachable ehlo',
    error: new RegExp(`^${CLOSED} during EHLO$`),
  },
  {
    phase: 'mail',
    answer: 'drop',
    summary: 'unreachable mail',
    error: new RegExp(`^${CLOSED} during MAIL$`),
  },
  {
    phase: 'rcpt',
    answer: 'drop',
    summary: 'unreachable rcpt',
    error: new RegExp(`^${CLOSED} during RCPT$`),
  },
  {
    phase: 'data',
    answer: 'drop',
    summary: 'unreachable data',
    error: new RegExp(`^${CLOSED} during DATA$`),
  },
  {
    phase: 'mail',
    answer: 'reset',
    summary: 'unreachable mail',
    error: /^server reset the connection during MAIL$/,
  },
  { phase: 'dot', answer: 'drop', summary: 'unanswered dot', error: /after the message, without a reply$/ },
  { phase: 'dot', answer: 'reset', summary: 'unanswered dot', error: /after the message, without a reply$/ },

  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data'] as const).map((phase) => ({
    phase,
    answer: 'HTTP/1.1 400 Bad Request',
    summary: `unreachable ${phase}`,
    error: /^not an SMTP reply: HTTP\/1.1 400 Bad Request$/,
  })),
  { phase: 'dot', answer: 'what?', summary: 'unanswered dot', error: /^not an SMTP reply: what\?$/ },
  { phase: 'dot', answer: '354 go on', summary: 'unanswered dot', error: /^unexpected reply: 354/ },
];

describe.each(LINE_UP)('a session, %s', (_, keywords) => {
  it('delivers', async () => {
    const to = await sink({ keywords });
    const report = await deliver(client(), job(to));
    expect(report).toMatchObject({
      conclusion: 'replied',
      phase: 'dot',
      reply: { code: 250, enhanced: '2.0.0', text: 'taken' },
    });
    expect(report.sessions).toMatchObject([
      {
        host: 'mx1.example.test',
        address: to.host,
        port: to.port,
        localAddress: '127.0.0.1',
        tls: null,
        error: null,
      },
    ]);
    expect(to.messages).toMatchObject([{ from: 'b-1@return-a.example.org', to: ['ann@example.test'] }]);
    expect(to.sessions[0]?.hello).toBe('out.example.org');
  });

  it.each(CASES)('$answer at $phase: $summary', async ({ phase, answer, summary: expected, error }) => {
    const to = await sink({ keywords, script: { [phase]: answer } });
    const by = client({ trailing: 100 });
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe(expected);
    expect(lastError(report)).toMatch(error ?? /^$/);
    expect(report.sessions).toHaveLength(1);
    expect(report.sessions[0]?.reply).toEqual(report.reply);
    expect(to.count).toBe(summary(report) === 'replied dot 250' ? 1 : 0);
    // No connection stays open that the idle connections do not have.
    by.idle.closeAll();
    await expect.poll(() => by.open.size).toBe(0);
  });

  it('reads replies with many lines', async () => {
    const to = await sink({
      keywords,
      recipients: { 'ann@': ['550-5.1.1 There is', '550 5.1.1 no such person'] },
    });
    const report = await deliver(client(), job(to));
    expect(report.reply).toEqual({ code: 550, enhanced: '5.1.1', text: 'There is no such person' });
  });

  it.each([
    ['nonsense behind it', '250 2.0.0 taken\r\nnonsense', 'replied dot 250'],
    [
      'the end of the connection behind it',
      { reply: '550 5.7.1 no', close: true as const },
      'replied dot 550',
    ],
  ])('accepts a reply in spite of %s', async (_, dot, expected) => {
    const to = await sink({ keywords, script: { dot } });
    expect(summary(await deliver(client(), job(to)))).toBe(expected);
  });

  it('sends the null reverse path as <>', async () => {
    const to = await sink({ keywords });
    await deliver(client(), job(to, { envelope: { from: '', to: 'ann@example.test' } }));
    expect(to.sessions[0]?.commands[1]).toMatch(/^MAIL FROM:<>/);
  });
});

describe('pipelining (RFC 2920)', () => {
  it('sends MAIL, RCPT and DATA in one write when the server offers it', async () => {
    const to = await sink({ keywords: ['PIPELINING'] });
    await deliver(client(), job(to));
    expect(to.sessions[0]).toMatchObject({ pipelined: 2 });
  });

  it('waits for each reply when the server does not offer it', async () => {
    const to = await sink({ keywords: [] });
    await deliver(client(), job(to));
    expect(to.sessions[0]).toMatchObject({ pipelined: 0 });
  });

  it('sends an empty message to a server that accepts DATA after it refused the recipient', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 nobody', data: '354 never mind' } });
    const by = client();
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe('replied rcpt 550');
    expect(to.messages).toMatchObject([{ raw: '' }]);

    to.program({ script: {} });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
  });

  it('reports the reply to RCPT although the connection is lost after it', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 nobody', data: 'drop' } });
    expect(summary(await deliver(client(), job(to)))).toBe('replied rcpt 550');
  });

  it('bounds the wait for replies after the deciding one', async () => {
    const to = await sink({ script: { mail: '550 5.7.1 not you', rcpt: 'silent' } });
    expect(summary(await deliver(client({ trailing: 50 }), job(to)))).toBe('replied mail 550');
  });

  it('does not take an unsolicited reply for the reply to the message', async () => {
    const to = await sink({ script: { data: '354 go ahead\r\n250 2.0.0 taken, honestly' } });
    const report = await deliver(client(), job(to));
    expect(summary(report)).toBe('unreachable data');
    expect(lastError(report)).toMatch(/^the server replied before the end of the message: 250/);
  });

  it('closes the connection to a server that does not stop replying', async () => {
    const to = await sink({ script: { ehlo: Array.from({ length: 20 }, () => '250 hi') } });
    expect(lastError(await deliver(client(), job(to)))).toBe('the server sent an unsolicited reply');
  });
});

describe('a server that sends unsolicited replies', () => {
  it.each(['greeting', 'ehlo', 'mail', 'rcpt'] as const)(
    'at %s, one command at a time: is closed',
    async (phase) => {
      const early = `250 2.0.0 yes\r\n250 2.0.0 and whatever comes next, yes`;
      const to = await sink({ keywords: [], script: { [phase]: early } });
      const report = await deliver(client(), job(to));
      expect(report.conclusion).toBe('unreachable');
      expect(lastError(report)).toMatch(
        /^(the server sent an unsolicited reply|unexpected reply to DATA: 250)$/,
      );
      expect(to.count).toBe(0);
    },
  );

  it('ends the session with 421', async () => {
    const to = await sink({ keywords: [], script: { ehlo: '250 hello\r\n421 4.3.2 going down' } });
    expect(summary(await deliver(client(), job(to)))).toBe('unreachable mail 421');
  });
});

describe('greeting', () => {
  it.each(['500 what?', '502 5.5.1 no', '550 5.5.1 no'])('falls back to HELO after %s', async (refusal) => {
    const to = await sink({ script: { ehlo: refusal } });
    expect(summary(await deliver(client(), job(to)))).toBe('replied dot 250');
    expect(to.sessions[0]?.commands.slice(0, 3)).toEqual([
      'EHLO out.example.org',
      'HELO out.example.org',
      'MAIL FROM:<b-1@return-a.example.org>',
    ]);
  });

  it('ends when HELO is also refused', async () => {
    const to = await sink({ script: { ehlo: '500 no', helo: '504 5.5.2 not you either' } });
    expect(summary(await deliver(client(), job(to)))).toBe('replied ehlo 504');
  });

  it('ends with the reply to EHLO when the server closes the connection after it', async () => {
    const to = await sink({ script: { ehlo: '550 5.7.1 blocked using zen.example', helo: 'drop' } });
    const report = await deliver(client(), job(to));
    expect(summary(report)).toBe('replied ehlo 550');
    expect(report.reply?.text).toBe('blocked using zen.example');
  });

  it('reads no extensions from a reply to HELO', async () => {
    const to = await sink({
      script: { ehlo: '500 no', helo: ['250-hello', '250-PIPELINING', '250 SIZE 1'] },
    });
    expect(summary(await deliver(client(), job(to)))).toBe('replied dot 250');
    expect(to.sessions[0]).toMatchObject({ pipelined: 0 });
  });

  it('sends QUIT after a refused greeting', async () => {
    const to = await sink({ script: { greeting: '554 5.7.1 not you' } });
    await deliver(client(), job(to));
    await expect.poll(() => to.sessions[0]?.commands).toEqual(['QUIT']);
  });
});

describe('AUTH', () => {
  const auth = { user: 'relay', password: 'päss', allowUnverified: true };

  it.each(['AUTH PLAIN LOGIN', 'AUTH LOGIN', 'AUTH=LOGIN PLAIN'])(
    'logs in to a server that announces %s',
    async (offer) => {
      const to = await sink({ keywords: [offer] });
      expect(summary(await deliver(client(), job(to, { auth })))).toBe('replied dot 250');
      expect(to.sessions[0]?.login).toBe('relay:päss');
    },
  );

  it('reports a refused login with its phase', async () => {
    const to = await sink({ keywords: ['AUTH PLAIN'], script: { auth: '535 5.7.8 wrong' } });
    expect(summary(await deliver(client(), job(to, { auth })))).toBe('replied auth 535');
  });

  it('requires a mechanism that both sides support', async () => {
    const to = await sink({ keywords: ['AUTH CRAM-MD5'] });
    const by = client();
    const report = await deliver(by, job(to, { auth }));
    expect(lastError(report)).toBe('server offers neither AUTH PLAIN nor LOGIN');
    await expect.poll(() => by.open.size).toBe(0);
  });
});
