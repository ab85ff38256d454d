import { createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket, type TLSSocketOptions } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { TlsMode } from '../../../src/delivery/worker/protocol.ts';
import { type Dial, dialTcp } from '../../../src/delivery/worker/socket.ts';
import { createAuthority, selfSigned } from '../../support/certificates.ts';
import type { Sink, SinkOptions } from '../../support/smtp-sink.ts';
import type { SinkBehavior } from '../../support/smtp-sink-session.ts';
import { client, deliver, host, job, lastError, sink, sinks, summary } from './setup.ts';

const authority = createAuthority();
const NAME = 'mx1.example.test';
const VALID = authority.issue([NAME]);
const EXPIRED = authority.issue([NAME], new Date(Date.now() - 86_400_000));
const OTHER_NAME = authority.issue(['mx.elsewhere.test']);
const SELF_SIGNED = selfSigned([NAME]);

const trusting = () => client({ handshake: 500 }, { authorities: [authority.cert] });

describe('STARTTLS by TLS mode and server', () => {
  /** sent: over TLS with a verified certificate, over TLS, in plain text, or not, with this error. */
  type Sent = 'verified' | 'tls' | 'plain' | RegExp;
  const CASES: [has: string, tls: SinkBehavior['tls'], sent: Record<TlsMode, Sent>][] = [
    [
      'a valid certificate',
      VALID,
      { none: 'plain', opportunistic: 'verified', required: 'verified', verified: 'verified' },
    ],
    [
      'an expired certificate',
      EXPIRED,
      {
        none: 'plain',
        opportunistic: 'tls',
        required: 'tls',
        verified: /^TLS handshake failed: certificate has expired$/,
      },
    ],
    [
      'a certificate for another name',
      OTHER_NAME,
      {
        none: 'plain',
        opportunistic: 'tls',
        required: 'tls',
        verified: /^TLS handshake failed: .*mx1\.example\.test/,
      },
    ],
    [
      'a self-signed certificate',
      SELF_SIGNED,
      {
        none: 'plain',
        opportunistic: 'tls',
        required: 'tls',
        verified: /^TLS handshake failed: self-signed certificate$/,
      },
    ],
    [
      'garbage for a handshake',
      'garbage',
      {
        none: 'plain',
        opportunistic: 'plain',
        required: /^TLS handshake failed: wrong version number$/,
        verified: /^TLS handshake failed: wrong version number$/,
      },
    ],
    [
      'a dropped handshake',
      'drop',
      {
        none: 'plain',
        opportunistic: 'plain',
        required: /^TLS handshake failed: server (closed|reset) the connection during STARTTLS$/,
        verified: /^TLS handshake failed: server (closed|reset) the connection during STARTTLS$/,
      },
    ],
    [
      'a silent handshake',
      'silent',
      {
        none: 'plain',
        opportunistic: 'plain',
        required: /^TLS handshake failed: timed out after 500 ms waiting for TLS$/,
        verified: /^TLS handshake failed: timed out after 500 ms waiting for TLS$/,
      },
    ],
    [
      'no STARTTLS',
      null,
      {
        none: 'plain',
        opportunistic: 'plain',
        required: /^mx1\.example\.test does not offer STARTTLS$/,
        verified: /^mx1\.example\.test does not offer STARTTLS$/,
      },
    ],
  ];

  for (const [has, tls, modes] of CASES) {
    describe(has, () => {
      it.each(Object.entries(modes) as [TlsMode, Sent][])('%s: %s', async (mode, sent) => {
        const to = await sink({ tls });
        const report = await deliver(trusting(), job(to, { tls: mode }));
        const last = report.sessions.at(-1);
        if (sent instanceof RegExp) {
          expect(report).toMatchObject({
            conclusion: 'refused-locally',
            phase: 'starttls',
            reply: { code: 454, enhanced: '4.7.5', text: last?.error },
          });
          expect(last?.error).toMatch(sent);
          expect(last?.reply).toBeNull();
          expect(to.count).toBe(0);
        } else {
          expect(summary(report)).toBe('replied dot 250');
          expect(to.messages[0]?.tls !== null).toBe(sent !== 'plain');
          expect(last?.tls ?? null).toEqual(
            sent === 'plain'
              ? null
              : {
                  protocol: 'TLSv1.3',
                  cipher: expect.stringMatching(/^TLS_/),
                  verified: sent === 'verified',
                  policy: mode,
                  requiredBy: 'default',
                  verification: sent === 'verified' ? 'webpki' : 'none',
                },
          );
        }
      });
    });
  }

  it('sends EHLO again after the handshake and drops the extensions announced before it', async () => {
    const to = await sink({
      tls: VALID,
      script: { ehlo: (session) => (session.tls ? '250 a new man' : undefined) },
    });
    await deliver(trusting(), job(to));
    expect(to.sessions[0]).toMatchObject({ pipelined: 0 });
    expect(to.sessions[0]?.commands.slice(0, 4)).toEqual([
      'EHLO out.example.org',
      'STARTTLS',
      'EHLO out.example.org',
      'MAIL FROM:<b-1@return-a.example.org>',
    ]);
  });

  it('sends the host name in the handshake, but never an address (RFC 6066 §3)', async () => {
    const to = await sink({ tls: VALID });
    await deliver(trusting(), job(to));
    await deliver(trusting(), job(to, { hosts: [host('127.0.0.1', '127.0.0.1')] }));
    expect(to.sessions.map(({ tls }) => tls?.servername)).toEqual([NAME, null]);
  });

  it('verifies a host that is known by its address only', async () => {
    const to = await sink({ tls: authority.issue(['127.0.0.1']) });
    const report = await deliver(
      trusting(),
      job(to, { tls: 'verified', hosts: [host('127.0.0.1', '127.0.0.1')] }),
    );
    expect(report.sessions[0]?.tls?.verified).toBe(true);
  });
});

describe('a handshake that fails', () => {
  it('opportunistic: tries a new connection in plain text and records both', async () => {
    const to = await sink({ tls: 'garbage' });
    const report = await deliver(trusting(), job(to));
    expect(report.sessions).toMatchObject([
      { phase: 'starttls', error: 'TLS handshake failed: wrong version number', tls: null },
      { phase: 'dot', error: null, tls: null },
    ]);
    expect(to.sessions[1]?.commands).not.toContain('STARTTLS');
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'opportunistic: tries plain text when the server refuses the handshake of %s',
    async (version) => {
      const strict = await startStrictServer(version);
      const target = { port: strict.port, hosts: [host(NAME, '127.0.0.1')] };
      const report = await deliver(trusting(), job(await sink(), target));
      expect(summary(report)).toBe('replied dot 250');
      expect(report.sessions.map(({ tls }) => tls !== null)).toEqual([version === 'TLSv1.3', false]);
    },
  );

  it.each(['TLSv1', 'TLSv1.1'] as const)(
    'opportunistic: sends over %s where the server knows nothing newer, and does not where TLS is required',
    async (version) => {
      const { port } = await startOldServer(version);
      const target = { port, hosts: [host(NAME, '127.0.0.1')] };
      const report = await deliver(trusting(), job(await sink(), target));
      expect(summary(report)).toBe('replied dot 250');
      expect(report.sessions.map(({ tls }) => tls?.protocol)).toEqual([version]);
      const required = await deliver(trusting(), job(await sink(), { ...target, tls: 'required' }));
      expect(required).toMatchObject({ conclusion: 'refused-locally', sessions: [{ tls: null }] });
    },
  );

  it('opportunistic: reuses the plain-text connection for the next job', async () => {
    const to = await sink({ tls: 'garbage' });
    const by = trusting();
    await deliver(by, job(to));
    await deliver(by, job(to));
    expect(to.sessions).toHaveLength(2);
  });

  it('opportunistic: does not count as a full session', async () => {
    const all = await sinks({ tls: 'garbage', script: { rcpt: '450 later' } }, { tls: 'garbage' });
    const report = await deliver(trusting(), job(all));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toHaveLength(4);
  });

  it('required: tries the next host', async () => {
    const [one, two] = await sinks({ tls: 'garbage' }, { tls: SELF_SIGNED });
    const report = await deliver(trusting(), job([one!, two!], { tls: 'required' }));
    expect(summary(report)).toBe('replied dot 250');
    expect(one?.count).toBe(0);
  });

  it('required: reports a deferral by another host instead', async () => {
    const all = await sinks({ tls: 'garbage' }, { tls: VALID, script: { rcpt: '450 4.2.1 later' } });
    expect(summary(await deliver(trusting(), job(all, { tls: 'required' })))).toBe('replied rcpt 450');
  });
});

describe('STARTTLS refused', () => {
  const REFUSES: SinkOptions = { tls: VALID, script: { starttls: '454 4.7.0 no certificate today' } };

  it('opportunistic: continues in plain text over the same connection', async () => {
    const to = await sink(REFUSES);
    expect(summary(await deliver(trusting(), job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
  });

  it.each(['required', 'verified'] as const)('%s: not sent', async (tls) => {
    const to = await sink(REFUSES);
    const report = await deliver(trusting(), job(to, { tls }));
    expect(summary(report)).toBe('refused-locally starttls 454');
    expect(lastError(report)).toBe('mx1.example.test refuses STARTTLS: 454 no certificate today');
  });
});

describe('data before the handshake', () => {
  it('is ignored after it (CVE-2011-0411)', async () => {
    const injected = '220 2.0.0 ready\r\n250-evil\r\n250-SIZE 1\r\n250 AUTH PLAIN\r\n250 2.1.0 evil ok';
    const to = await sink({ tls: VALID, script: { starttls: injected, rcpt: '550 5.1.1 nobody' } });
    const report = await deliver(trusting(), job(to, { tls: 'verified' }));
    expect(report).toMatchObject({
      conclusion: 'replied',
      phase: 'rcpt',
      reply: { code: 550, text: 'nobody' },
    });
  });

  it('is ignored when it precedes the reply to STARTTLS', async () => {
    const ahead = '250-sink\r\n250 STARTTLS\r\n220 2.0.0 ready\r\n250 AUTH PLAIN';
    const to = await sink({ tls: VALID, script: { ehlo: (session) => (session.tls ? undefined : ahead) } });
    const report = await deliver(trusting(), job(to, { tls: 'required' }));
    expect(summary(report)).toBe('unreachable starttls');
    expect(to.count).toBe(0);
  });

  it('is ignored when STARTTLS is refused', async () => {
    const to = await sink({
      tls: VALID,
      script: { starttls: '454 4.7.0 not today\r\n250 evil\r\nnonsense' },
    });
    expect(summary(await deliver(trusting(), job(to)))).toBe('replied dot 250');
  });

  it.each(['250-SIZE 1', 'nonsense'])(
    'half a reply (%s) does not join the first one behind it',
    async (half) => {
      const to = await sink({
        tls: VALID,
        script: { starttls: `220 2.0.0 ready\r\n250-PIPELINING\r\n${half}` },
      });
      const report = await deliver(trusting(), job(to, { tls: 'verified' }));
      expect(summary(report)).toBe('replied dot 250');
    },
  );
});

describe('TLS sessions', () => {
  const noReuse = { idleMs: 0 };

  it('are resumed and stay verified', async () => {
    const to = await sink({ tls: VALID });
    const by = trusting();
    const reports = [];
    for (let round = 0; round < 3; round++)
      reports.push(await deliver(by, job(to, { tls: 'verified', ...noReuse })));
    expect(to.sessions.map(({ tls }) => tls?.resumed)).toEqual([false, true, true]);
    expect(reports.map(({ sessions }) => sessions[0]?.tls?.verified)).toEqual([true, true, true]);
  });

  it('are resumed and stay unverified', async () => {
    const to = await sink({ tls: OTHER_NAME });
    const by = trusting();
    const reports = [];
    for (let round = 0; round < 2; round++) reports.push(await deliver(by, job(to, noReuse)));
    expect(to.sessions.map(({ tls }) => tls?.resumed)).toEqual([false, true]);
    expect(reports.map(({ sessions }) => sessions[0]?.tls?.verified)).toEqual([false, false]);
  });

  it('of one mode are never resumed in another', async () => {
    const to = await sink({ tls: OTHER_NAME });
    const by = trusting();
    await deliver(by, job(to, noReuse));
    expect((await deliver(by, job(to, { tls: 'verified', ...noReuse }))).conclusion).toBe('refused-locally');
  });
});

describe('AUTH and TLS', () => {
  const auth = { user: 'relay', password: 'secret', allowUnverified: false };
  const SECRETS = [
    'secret',
    ...['\0relay\0secret', 'secret'].map((text) => Buffer.from(text).toString('base64')),
  ];
  /** Everything that the server received outside of messages, on all connections. */
  const received = (to: Sink) =>
    to.sessions.flatMap(({ commands, login }) => [...commands, login]).join('\n');
  const expectNoPassword = (to: Sink) => {
    expect(to.sessions.length).toBeGreaterThan(0);
    expect(received(to)).not.toMatch(/AUTH/i);
    for (const secret of SECRETS) expect(received(to)).not.toContain(secret);
    expect(to.count).toBe(0);
  };
  const keywords = ['AUTH PLAIN LOGIN'];

  it.each<[what: string, tls: SinkBehavior['tls']]>([
    ['a self-signed certificate', SELF_SIGNED],
    ['a certificate for another name', OTHER_NAME],
    ['an expired certificate', EXPIRED],
    ['garbage for a handshake', 'garbage'],
    ['no STARTTLS', null],
  ])('sends no password to a server with %s in any mode', async (_, tls) => {
    for (const mode of ['none', 'opportunistic', 'required', 'verified'] as const) {
      const to = await sink({ tls, keywords });
      const report = await deliver(trusting(), job(to, { auth, tls: mode }));
      expectNoPassword(to);
      expect(report).toMatchObject({
        conclusion: 'refused-locally',
        reply: { code: 454, enhanced: '4.7.5' },
      });
      for (const secret of SECRETS) expect(JSON.stringify(report)).not.toContain(secret);
    }
  });

  it('reports the certificate as the reason', async () => {
    const to = await sink({ tls: SELF_SIGNED, keywords });
    const report = await deliver(trusting(), job(to, { auth, tls: 'required' }));
    expect(lastError(report)).toBe(
      'no password is sent to mx1.example.test: its certificate was not verified',
    );
  });

  it('sends no password over a resumed session that was not verified', async () => {
    const to = await sink({ tls: SELF_SIGNED, keywords });
    const by = trusting();
    await deliver(by, job(to, { tls: 'required', idleMs: 0 }));
    const report = await deliver(by, job(to, { auth, tls: 'required', idleMs: 0 }));
    expect(to.sessions.map(({ tls }) => tls?.resumed)).toEqual([false, true]);
    expect(received(to)).not.toContain('AUTH');
    expect(summary(report)).toBe('refused-locally auth 454');
  });

  it('sends no password over an idle connection of a job without a login', async () => {
    const to = await sink({ tls: SELF_SIGNED, keywords });
    const by = trusting();
    await deliver(by, job(to, { tls: 'required' }));
    expect(summary(await deliver(by, job(to, { auth, tls: 'required' })))).toBe('refused-locally auth 454');
    expect(received(to)).not.toContain('AUTH');
  });

  it.each(['none', 'opportunistic'] as const)(
    '%s: sends no password in plain text off loopback, not even where unverified servers are allowed',
    async (tls) => {
      const to = await sink({ keywords });
      const dial: Dial = (options) => dialTcp({ ...options, host: to.host });
      const hosts = [host('relay.example.test', '192.0.2.25')];
      const allowing = { ...auth, allowUnverified: true };
      const report = await deliver(client({}, { dial }), job(to, { auth: allowing, hosts, tls }));
      expect(summary(report)).toBe('refused-locally auth 454');
      expect(lastError(report)).toBe(
        'no password is sent to relay.example.test: the connection is not encrypted',
      );
      expectNoPassword(to);
    },
  );

  it('logs in to a server without a valid certificate when the route allows it', async () => {
    const to = await sink({ tls: SELF_SIGNED, keywords });
    const allowing = { ...auth, allowUnverified: true };
    expect(summary(await deliver(trusting(), job(to, { auth: allowing, tls: 'required' })))).toBe(
      'replied dot 250',
    );
    expect(to.sessions[0]?.login).toBe('relay:secret');
  });

  it('logs in after the handshake', async () => {
    const to = await sink({ tls: VALID, keywords: ['AUTH PLAIN'] });
    expect(summary(await deliver(trusting(), job(to, { auth, tls: 'verified' })))).toBe('replied dot 250');
    expect(to.sessions[0]?.login).toBe('relay:secret');
    expect(to.sessions[0]?.commands.slice(0, 3)).toEqual([
      'EHLO out.example.org',
      'STARTTLS',
      'EHLO out.example.org',
    ]);
  });

  it.each(['AUTH PLAIN', 'AUTH LOGIN'])('stores no password that the server repeats (%s)', async (offer) => {
    const to = await sink({
      tls: VALID,
      keywords: [offer],
      script: {
        auth: (_, line) => (line === 'AUTH LOGIN' ? undefined : `535 5.7.8 refused: ${line} (secret)`),
      },
    });
    const report = await deliver(trusting(), job(to, { auth, tls: 'verified' }));
    expect(summary(report)).toBe('replied auth 535');
    for (const secret of SECRETS) expect(JSON.stringify(report)).not.toContain(secret);
  });
});

/** A server that requires a certificate of the client, which it has none of: it refuses every handshake. */
function startStrictServer(maxVersion: 'TLSv1.2' | 'TLSv1.3'): Promise<{ port: number }> {
  const secureContext = createSecureContext({ ...SELF_SIGNED, maxVersion });
  return startServer({ secureContext, requestCert: true, rejectUnauthorized: true });
}

/** A server that knows nothing newer than TLS 1.0 or 1.1. */
function startOldServer(maxVersion: 'TLSv1' | 'TLSv1.1'): Promise<{ port: number }> {
  const ciphers = 'DEFAULT@SECLEVEL=0';
  return startServer({
    secureContext: createSecureContext({ ...SELF_SIGNED, minVersion: 'TLSv1', maxVersion, ciphers }),
  });
}

async function startServer(options: TLSSocketOptions): Promise<{ port: number }> {
  const REPLIES: readonly [RegExp, string][] = [
    [/^EHLO/, '250-strict\r\n250 STARTTLS\r\n'],
    [/^(?:MAIL|RCPT)/, '250 ok\r\n'],
    [/^DATA/, '354 go\r\n'],
    [/\.\r\n$/, '250 taken\r\n'],
  ];
  const answer = (to: Socket, text: string) =>
    to.write(REPLIES.find(([command]) => command.test(text))?.[1] ?? '500 what\r\n');
  const server = createServer((socket) => {
    const onData = (chunk: Buffer) => {
      const text = chunk.toString();
      if (!text.startsWith('STARTTLS')) {
        answer(socket, text);
        return;
      }
      socket.off('data', onData);
      socket.write('220 go\r\n');
      const encrypted = new TLSSocket(socket, { isServer: true, ...options });
      encrypted.on('error', () => socket.destroy());
      encrypted.on('data', (data: Buffer) => void answer(encrypted, data.toString()));
    };
    socket.on('data', onData).on('error', () => socket.destroy());
    socket.write('220 strict\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return { port: address.port };
}
