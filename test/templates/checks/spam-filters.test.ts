import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { monotonicClock, systemClock } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { createSpamFilters, type JudgedMail } from '../../../src/templates/checks/spam-filters.ts';
import { portOf } from '../../support/https-client.ts';
import { PATIENCE_MS } from '../../support/patience.ts';

const MAIL: JudgedMail = {
  from: 'Shop <news@shop.test>',
  to: 'ann@example.org',
  subject: 'Spring',
  html: '<p>Hello Ann</p>',
  text: 'Hello Ann',
  kind: 'marketing',
};

function start(settings: { spamassassin?: string; rspamd?: string }, timeoutMs = PATIENCE_MS) {
  const config = { checks: settings };
  const unused = () => Promise.reject(new Error('no name is looked up'));
  const filters = createSpamFilters({
    // Sound: addresses are literal.
    resolver: { a: unused, aaaa: unused } as never,
    config,
    clock: systemClock,
    monotonic: monotonicClock,
    log: createLog({ level: 'silent', hashAddresses: false }),
    userAgent: 'Postrider/1.2.3',
    timeoutMs,
  });
  onTestFinished(() => filters.close());
  return { config, check: (mail: Partial<JudgedMail> = {}) => filters.check('acct_a', { ...MAIL, ...mail }) };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${portOf(server)}`;
}

/** A spamd that responds so; its requests. */
async function startSpamd(response: string | null) {
  const requests: string[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('end', () => {
      requests.push(received);
      if (response === null) onTestFinished(() => void socket.destroy());
      else socket.end(response);
    });
  });
  return { address: await listen(server), requests };
}

async function startRspamd(body: object | string) {
  const requests: { url: string | undefined; user: string | string[] | undefined; body: string }[] = [];
  const server = createHttpServer((request, response) => {
    let received = '';
    request.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    request.on('end', () => {
      requests.push({ url: request.url, user: request.headers['user'], body: received });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  return { url: `http://${await listen(server)}`, requests };
}

const REPORT = `SPAMD/1.1 0 EX_OK\r
Content-length: 400\r
Spam: True ; 6.5 / 5.0\r
\r
Spam detection software, running on the system "mx",
has identified this incoming email as possible spam.

Content analysis details:   (6.5 points, 5.0 required)

 pts rule name              description
---- ---------------------- --------------------------------------------------
 4.0 URI_PHISH              Phishing using web form
-0.0 NO_RELAYS              Informational: message was not relayed via SMTP
 2.5 SUBJ_ALL_CAPS          Subject is all capitals
                            (continued)
`;

describe('SpamAssassin', () => {
  it('receives the message as it would be sent, and returns score, limit and rules', async () => {
    const { address, requests } = await startSpamd(REPORT);
    const { check } = start({ spamassassin: address });
    expect(await check()).toEqual([
      {
        id: 'spamassassin',
        level: 'bad',
        message:
          'SpamAssassin gives 6.5 points; spam begins with 5. It is treated as spam: change what the rules name: URI_PHISH (4), SUBJ_ALL_CAPS (2.5).',
        where: ['URI_PHISH (4)', 'SUBJ_ALL_CAPS (2.5)'],
        count: 2,
        score: 6.5,
        threshold: 5,
        rules: [
          { name: 'URI_PHISH', points: 4, description: 'Phishing using web form' },
          { name: 'SUBJ_ALL_CAPS', points: 2.5, description: 'Subject is all capitals' },
        ],
      },
    ]);
    const [request = ''] = requests;
    const length = Number(/^REPORT SPAMC\/1\.5\r\nContent-length: (\d+)\r\n\r\n/.exec(request)?.[1]);
    expect(request.slice(request.indexOf('\r\n\r\n') + 4)).toHaveLength(length);
    for (const field of [
      'From: Shop <news@shop.test>',
      'Subject: Spring',
      'List-Unsubscribe: <',
      'Hello Ann',
    ])
      expect(request).toContain(field);
  });

  it('is asked once for the same content', async () => {
    const { address, requests } = await startSpamd(REPORT.replace('True ; 6.5', 'False ; 1.5'));
    const { check } = start({ spamassassin: address });
    expect(await check()).toMatchObject([{ level: 'ok', score: 1.5 }]);
    expect(await check()).toMatchObject([{ level: 'ok', score: 1.5 }]);
    expect(requests).toHaveLength(1);
    await check({ subject: 'Summer' });
    expect(requests).toHaveLength(2);
  });

  it.each<[string, string]>([
    ['no spamd', '220 mx ESMTP\r\n'],
    ['an error', 'SPAMD/1.0 74 EX_IOERR\r\n\r\n'],
    ['no score', 'SPAMD/1.1 0 EX_OK\r\n\r\n'],
    ['an endless response', `SPAMD/1.1 0 EX_OK\r\n${'x'.repeat(400_000)}`],
  ])('that responds with %s is named', async (_, response) => {
    const { address } = await startSpamd(response);
    expect(await start({ spamassassin: address }).check()).toMatchObject([
      { id: 'spamUnavailable', level: 'warn', where: ['SpamAssassin'] },
    ]);
  });

  it('that never responds, or does not listen, is named', async () => {
    const { address } = await startSpamd(null);
    for (const spamassassin of [address, '127.0.0.1:1'])
      expect(await start({ spamassassin }, 100).check()).toMatchObject([{ id: 'spamUnavailable' }]);
  });
});

describe('Rspamd', () => {
  it('returns the score, the limit from which it rejects mail, and the rules', async () => {
    const { url, requests } = await startRspamd({
      score: 2.3456,
      required_score: 15,
      action: 'no action',
      symbols: {
        MIME_GOOD: { score: -0.1, description: 'Known content-type' },
        R_PARTS_DIFFER: { score: 1 },
        ZERO: { score: 0 },
        ODD: 'x',
      },
    });
    const { check } = start({ rspamd: `${url}/` });
    expect(await check()).toMatchObject([
      {
        id: 'rspamd',
        level: 'ok',
        count: 1,
        score: 2.35,
        threshold: 15,
        rules: [
          { name: 'R_PARTS_DIFFER', points: 1, description: '' },
          { name: 'MIME_GOOD', points: -0.1, description: 'Known content-type' },
        ],
      },
    ]);
    expect(requests).toMatchObject([{ url: '/checkv2', user: 'news@shop.test' }]);
  });

  it.each<[string, object | string]>([
    ['text', 'Unauthorized'],
    ['no score', { symbols: {} }],
    ['too much', 'x'.repeat(400_000)],
  ])('that responds with %s is named', async (_, body) => {
    const { url } = await startRspamd(body);
    expect(await start({ rspamd: url }).check()).toMatchObject([
      { id: 'spamUnavailable', where: ['Rspamd'] },
    ]);
  });
});

it('asks no filter, both, or one that a reload adds', async () => {
  const { address } = await startSpamd(REPORT);
  const { url } = await startRspamd({ score: 7, required_score: 15, action: 'add header', symbols: {} });
  const { config, check } = start({});
  expect(await check()).toEqual([]);
  config.checks = { spamassassin: address, rspamd: url };
  expect(await check()).toMatchObject([
    { id: 'spamassassin' },
    { id: 'rspamd', level: 'bad', threshold: 15 },
  ]);
});

it('sends nothing larger than a filter judges', async () => {
  const { address, requests } = await startSpamd(REPORT);
  const { check } = start({ spamassassin: address });
  expect(await check({ html: `<p>${'x '.repeat(600_000)}</p>` })).toMatchObject([{ id: 'spamUnavailable' }]);
  expect(requests).toEqual([]);
});
