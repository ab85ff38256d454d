import { describe, expect, it } from 'vitest';
import type { SinkStage } from '../../support/smtp-sink-session.ts';
import type { Answer } from '../../support/smtp-sink-voice.ts';
import { client, deliver, gist, job, lastError, sink } from './rig.ts';

const KEYWORDS = ['SIZE 1000000', 'ENHANCEDSTATUSCODES'];
const LINE_UP: [name: string, keywords: string[]][] = [
  ['one command at a time', KEYWORDS],
  ['pipelined', [...KEYWORDS, 'PIPELINING']],
];

interface Case {
  stage: SinkStage;
  answer: Answer;
  gist: string;
  error?: RegExp;
}

const CLOSED = 'server (closed|reset) the connection';

const CASES: Case[] = [
  // Any 2xx will do (RFC 5321 §4.2.1: the first digit decides), but DATA wants its 354.
  { stage: 'greeting', answer: '250 odd but willing', gist: 'replied dot 250' },
  { stage: 'ehlo', answer: '251 odd but willing', gist: 'replied dot 250' },
  { stage: 'mail', answer: '252 odd but willing', gist: 'replied dot 250' },
  { stage: 'rcpt', answer: '251 2.1.5 will forward', gist: 'replied dot 250' },
  { stage: 'dot', answer: '299 2.0.0 odd', gist: 'replied dot 299' },
  { stage: 'data', answer: '250 odd', gist: 'unreachable data', error: /^unexpected reply to DATA: 250/ },
  { stage: 'mail', answer: '354 odd', gist: 'unreachable mail', error: /^unexpected reply to MAIL: 354/ },
  { stage: 'rcpt', answer: '354 odd', gist: 'unreachable rcpt', error: /^unexpected reply to RCPT: 354/ },
  { stage: 'greeting', answer: '354 odd', gist: 'unreachable greeting', error: /^unexpected reply: 354 odd/ },

  { stage: 'greeting', answer: '450 4.3.2 later', gist: 'replied greeting 450' },
  { stage: 'ehlo', answer: '450 4.3.2 later', gist: 'replied ehlo 450' },
  { stage: 'mail', answer: '450 4.1.8 later', gist: 'replied mail 450' },
  { stage: 'rcpt', answer: '450 4.2.1 later', gist: 'replied rcpt 450' },
  { stage: 'data', answer: '450 4.3.0 later', gist: 'replied data 450' },
  { stage: 'dot', answer: '450 4.3.0 later', gist: 'replied dot 450' },

  { stage: 'greeting', answer: '554 5.7.1 not you', gist: 'replied greeting 554' },
  { stage: 'mail', answer: '550 5.7.1 not you', gist: 'replied mail 550' },
  { stage: 'rcpt', answer: '550 5.1.1 nobody', gist: 'replied rcpt 550' },
  { stage: 'data', answer: '554 5.5.1 no', gist: 'replied data 554' },
  { stage: 'dot', answer: '554 5.6.0 no', gist: 'replied dot 554' },

  // 421 ends the session, it is no verdict; its text is kept.
  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'] as const).map((stage) => ({
    stage,
    answer: { reply: '421 4.7.0 too much from you', close: true as const },
    gist: `unreachable ${stage} 421`,
    error: /^the server ended the session$/,
  })),
  { stage: 'mail', answer: '421 4.7.0 still open', gist: 'unreachable mail 421', error: /^the server ended/ },

  {
    stage: 'greeting',
    answer: 'drop',
    gist: 'unreachable greeting',
    error: new RegExp(`^${CLOSED} before the greeting$`),
  },
  { stage: 'ehlo', answer: 'drop', gist: 'unreachable ehlo', error: new RegExp(`^${CLOSED} during EHLO$`) },
  { stage: 'mail', answer: 'drop', gist: 'unreachable mail', error: new RegExp(`^${CLOSED} during MAIL$`) },
  { stage: 'rcpt', answer: 'drop', gist: 'unreachable rcpt', error: new RegExp(`^${CLOSED} during RCPT$`) },
  { stage: 'data', answer: 'drop', gist: 'unreachable data', error: new RegExp(`^${CLOSED} during DATA$`) },
  {
    stage: 'mail',
    answer: 'reset',
    gist: 'unreachable mail',
    error: /^server reset the connection during MAIL$/,
  },
  { stage: 'dot', answer: 'drop', gist: 'unanswered dot', error: /after the message, without a reply$/ },
  { stage: 'dot', answer: 'reset', gist: 'unanswered dot', error: /after the message, without a reply$/ },

  ...(['greeting', 'ehlo', 'mail', 'rcpt', 'data'] as const).map((stage) => ({
    stage,
    answer: 'HTTP/1.1 400 Bad Request',
    gist: `unreachable ${stage}`,
    error: /^not an SMTP reply: HTTP\/1.1 400 Bad Request$/,
  })),
  { stage: 'dot', answer: 'what?', gist: 'unanswered dot', error: /^not an SMTP reply: what\?$/ },
  { stage: 'dot', answer: '354 go on', gist: 'unanswered dot', error: /^unexpected reply: 354/ },
];

describe.each(LINE_UP)('a session, %s', (_, keywords) => {
  it('delivers', async () => {
    const to = await sink({ keywords });
    const report = await deliver(client(), job(to));
    expect(report).toMatchObject({
      conclusion: 'replied',
      stage: 'dot',
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

  it.each(CASES)('$answer at $stage: $gist', async ({ stage, answer, gist: expected, error }) => {
    const to = await sink({ keywords, script: { [stage]: answer } });
    const report = await deliver(client({ courtesy: 100 }), job(to));
    expect(gist(report)).toBe(expected);
    expect(lastError(report)).toMatch(error ?? /^$/);
    expect(report.sessions).toHaveLength(1);
    expect(report.sessions[0]?.reply).toEqual(report.reply);
    expect(to.count).toBe(gist(report) === 'replied dot 250' ? 1 : 0);
  });

  it('reads replies of many lines', async () => {
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
  ])('believes a reply in spite of %s', async (_, dot, expected) => {
    const to = await sink({ keywords, script: { dot } });
    expect(gist(await deliver(client(), job(to)))).toBe(expected);
  });

  it('sends the null reverse path as <>', async () => {
    const to = await sink({ keywords });
    await deliver(client(), job(to, { envelope: { from: '', to: 'ann@example.test' } }));
    expect(to.sessions[0]?.commands[1]).toMatch(/^MAIL FROM:<>/);
  });
});

describe('pipelining (RFC 2920)', () => {
  it('sends MAIL, RCPT and DATA in one go where it is offered', async () => {
    const to = await sink({ keywords: ['PIPELINING'] });
    await deliver(client(), job(to));
    expect(to.sessions[0]).toMatchObject({ pipelined: 2 });
  });

  it('waits for every reply where it is not', async () => {
    const to = await sink({ keywords: [] });
    await deliver(client(), job(to));
    expect(to.sessions[0]).toMatchObject({ pipelined: 0 });
  });

  it('sends an empty message to a server that wants data though it refused the recipient', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 nobody', data: '354 never mind' } });
    const by = client();
    const report = await deliver(by, job(to));
    expect(gist(report)).toBe('replied rcpt 550');
    expect(to.messages).toMatchObject([{ raw: '' }]);

    to.program({ script: {} });
    expect(gist(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
  });

  it('takes the verdict at RCPT even when the connection is lost behind it', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 nobody', data: 'drop' } });
    expect(gist(await deliver(client(), job(to)))).toBe('replied rcpt 550');
  });

  it('does not let a server hold the slot with replies that no longer matter', async () => {
    const to = await sink({ script: { mail: '550 5.7.1 not you', rcpt: 'silent' } });
    expect(gist(await deliver(client({ courtesy: 50 }), job(to)))).toBe('replied mail 550');
  });

  it('does not mistake a reply to nothing for the reply to the message', async () => {
    const to = await sink({ script: { data: '354 go ahead\r\n250 2.0.0 taken, honestly' } });
    const report = await deliver(client(), job(to));
    expect(gist(report)).toBe('unreachable data');
    expect(lastError(report)).toMatch(/^the server replied before it had the whole message: 250/);
  });

  it('hangs up on a server that cannot stop replying', async () => {
    const to = await sink({ script: { ehlo: Array.from({ length: 20 }, () => '250 hi') } });
    expect(lastError(await deliver(client(), job(to)))).toBe('the server sends replies to nothing');
  });
});

describe('a server that replies before it is asked', () => {
  it.each(['greeting', 'ehlo', 'mail', 'rcpt'] as const)(
    'at %s, one command at a time: is left',
    async (stage) => {
      const early = `250 2.0.0 yes\r\n250 2.0.0 and whatever comes next, yes`;
      const to = await sink({ keywords: [], script: { [stage]: early } });
      const report = await deliver(client(), job(to));
      expect(report.conclusion).toBe('unreachable');
      expect(lastError(report)).toMatch(
        /^(the server sends replies to nothing|unexpected reply to DATA: 250)$/,
      );
      expect(to.count).toBe(0);
    },
  );

  it('with 421: the session is over', async () => {
    const to = await sink({ keywords: [], script: { ehlo: '250 hello\r\n421 4.3.2 going down' } });
    expect(gist(await deliver(client(), job(to)))).toBe('unreachable mail 421');
  });
});

describe('greeting', () => {
  it.each(['500 what?', '502 5.5.1 no', '550 5.5.1 no'])('falls back to HELO after %s', async (refusal) => {
    const to = await sink({ script: { ehlo: refusal } });
    expect(gist(await deliver(client(), job(to)))).toBe('replied dot 250');
    expect(to.sessions[0]?.commands.slice(0, 3)).toEqual([
      'EHLO out.example.org',
      'HELO out.example.org',
      'MAIL FROM:<b-1@return-a.example.org>',
    ]);
  });

  it('gives up when HELO is refused too', async () => {
    const to = await sink({ script: { ehlo: '500 no', helo: '504 5.5.2 not you either' } });
    expect(gist(await deliver(client(), job(to)))).toBe('replied ehlo 504');
  });

  it('takes no offer from a reply to HELO', async () => {
    const to = await sink({
      script: { ehlo: '500 no', helo: ['250-hello', '250-PIPELINING', '250 SIZE 1'] },
    });
    expect(gist(await deliver(client(), job(to)))).toBe('replied dot 250');
    expect(to.sessions[0]).toMatchObject({ pipelined: 0 });
  });

  it('takes leave with QUIT where it was refused', async () => {
    const to = await sink({ script: { greeting: '554 5.7.1 not you' } });
    await deliver(client(), job(to));
    await expect.poll(() => to.sessions[0]?.commands).toEqual(['QUIT']);
  });
});

describe('AUTH', () => {
  const auth = { user: 'relay', password: 'päss', allowUnverified: true };

  it.each(['AUTH PLAIN LOGIN', 'AUTH LOGIN', 'AUTH=LOGIN PLAIN'])(
    'logs in where the server says %s',
    async (offer) => {
      const to = await sink({ keywords: [offer] });
      expect(gist(await deliver(client(), job(to, { auth })))).toBe('replied dot 250');
      expect(to.sessions[0]?.login).toBe('relay:päss');
    },
  );

  it('reports a refused login with its stage', async () => {
    const to = await sink({ keywords: ['AUTH PLAIN'], script: { auth: '535 5.7.8 wrong' } });
    expect(gist(await deliver(client(), job(to, { auth })))).toBe('replied auth 535');
  });

  it('needs a mechanism that both know', async () => {
    const to = await sink({ keywords: ['AUTH CRAM-MD5'] });
    const report = await deliver(client(), job(to, { auth }));
    expect(lastError(report)).toBe('server offers neither AUTH PLAIN nor LOGIN');
  });
});
