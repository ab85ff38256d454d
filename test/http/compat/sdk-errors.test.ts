import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { errorOf, loadSdks, type Sdks } from '../../support/provider-sdks.ts';
import { requirePrograms } from '../../support/required-programs.ts';
import { startCompat, TX_FROM } from './setup.ts';

/*
 * What callers of the SDKs of other providers get from errors that pass, and how often a mail is sent when the SDK or the
 * program repeats the request:
 *
 *   postmark, … ──HTTP──▶ relay that may cut the connection ──▶ daemon
 */
const required = requirePrograms('provider-sdks');

const PROVIDERS = ['postmark', 'sendgrid', 'mailgun', 'resend', 'ses'] as const;
type Provider = (typeof PROVIDERS)[number];

/** Sends one mail to a user of example.net; the promise is that of the SDK. `isSingle`: without repetitions by the SDK. */
type Send = (base: string, user: string, options?: { isSingle?: boolean; key?: string }) => Promise<unknown>;

const MAIL = { subject: 'Order', html: '<p>Thank you</p>' };

describe(`SDKs of other providers${required.reason}`, { skip: required.missing }, async () => {
  if (required.missing) return;
  const sdks = await loadSdks();
  const { daemon, api } = await startCompat(...PROVIDERS);
  const path = `/web-setup/accounts/${api.accountId}/keys`;
  const { data: pair } = await api.post<{ key: { keyId: string }; secret: string }>(path, {
    name: 'SDKs',
    scopes: ['transactional'],
    sigv4: true,
  });
  const senders = sendersOf(sdks, pair.key.keyId, pair.secret);
  afterEach(() => daemon.reload());

  /** How many messages a user of example.net has. */
  const sentTo = async (user: string) => (await api.allMessages({ recipient: `${user}@example.net` })).length;

  it.each(PROVIDERS)('%s gets its own error over the rate limit', async (provider) => {
    await daemon.reload({ 'limits.sendPerSecond': 1 });
    const send = (user: string) => errorOf(senders[provider](daemon.url, user, { isSingle: true }));
    const results = await Promise.all(Array.from({ length: 8 }, () => send(`rate-${provider}`)));
    const refused = results.filter((result) => result['resolved'] !== true);
    expect(refused[0]).toMatchObject(RATE_LIMITED[provider]);
    expect(await sentTo(`rate-${provider}`)).toBe(results.length - refused.length);
  });

  it('ses repeats what is over the rate limit, and sends it once', async () => {
    await daemon.reload({ 'limits.sendPerSecond': 1 });
    const sends = Array.from({ length: 4 }, () => senders.ses(daemon.url, 'repeated'));
    await Promise.all(sends);
    expect(await sentTo('repeated')).toBe(4);
  });

  it('ses repeats a request without a response, and sends it once', async () => {
    const relay = await startRelay(daemon.url);
    await senders.ses(relay.url, 'lost-ses');
    expect(relay.requests()).toBe(2);
    expect(await sentTo('lost-ses')).toBe(1);
  });

  it.each(['postmark', 'sendgrid', 'mailgun'] as const)(
    '%s does not repeat a request without a response; the program sends it a second time',
    async (provider) => {
      const relay = await startRelay(daemon.url);
      expect(await errorOf(senders[provider](relay.url, `lost-${provider}`))).not.toHaveProperty('resolved');
      expect(relay.requests()).toBe(1);
      await senders[provider](relay.url, `lost-${provider}`);
      expect(await sentTo(`lost-${provider}`)).toBe(2);
    },
  );

  it.each(['resend', 'sendgrid'] as const)(
    '%s sends once with an idempotency key, also when the program repeats it',
    async (provider) => {
      const relay = await startRelay(daemon.url);
      const send = () => senders[provider](relay.url, `key-${provider}`, { key: `key-${provider}` });
      expect(await errorOf(send())).not.toHaveProperty('resolved');
      await send();
      expect(await sentTo(`key-${provider}`)).toBe(1);
    },
  );

  it('of each provider: a daemon that is closing answers in its form', async () => {
    const own = await startCompat(...PROVIDERS);
    const { hostname, port } = new URL(own.daemon.url);
    const open = () => {
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString();
      });
      return { socket, text: () => text, closed: once(socket, 'close') };
    };
    const health = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n';
    const connections = await Promise.all(
      PROVIDERS.map(async (provider) => {
        const connection = open();
        connection.socket.write(`${health}\r\n`);
        await eventually('the server to use the connection', () => connection.text().includes('200 OK'));
        // The request that has begun keeps the connection open.
        connection.socket.write(`POST /compat/${provider}/x HTTP/1.1\r\nHost: localhost\r\n`);
        return { provider, ...connection };
      }),
    );
    // What a connection opened later gets shows that those bytes are read.
    const later = open();
    later.socket.write(`${health}Connection: close\r\n\r\n`);
    await later.closed;
    const stopped = own.daemon.stop();
    await eventually('the listener to be closed', () =>
      fetch(`${own.daemon.url}/healthz`).then(
        () => null,
        () => true,
      ),
    );
    for (const { socket } of connections) socket.write('Content-Length: 0\r\n\r\n');
    await Promise.all(connections.map(({ closed }) => closed));
    for (const { provider, text } of connections) expect(text(), provider).toMatch(CLOSING[provider]);
    await stopped;
  });

  // The last ones: the daemon measures the disk again after a time.
  it.each(PROVIDERS)('%s gets its own error while no storage is free', async (provider) => {
    await daemon.reload({ 'limits.freeDiskBytes': 1e15 });
    await eventually('sends to be refused', async () => {
      const { status } = await api.send({ ...MAIL, from: TX_FROM, to: 'before@example.net' });
      return status === 503;
    });
    const error = await errorOf(senders[provider](daemon.url, 'full', { isSingle: true }));
    expect(error).toMatchObject(UNAVAILABLE[provider]);
    expect(await sentTo('full')).toBe(0);
  });
});

const UNAVAILABLE: Record<Provider, object> = {
  postmark: { name: 'ServiceUnavailablerError', statusCode: 503 },
  sendgrid: { code: 503, response: { body: { errors: [{ message: expect.any(String) }] } } },
  mailgun: { status: 503, details: expect.any(String) },
  resend: { name: 'application_error', statusCode: 503 },
  ses: { name: 'ServiceUnavailable', $metadata: { httpStatusCode: 503 } },
};

const RATE_LIMITED: Record<Provider, object> = {
  postmark: { name: 'RateLimitExceededError', statusCode: 429, code: 429 },
  sendgrid: { code: 429, response: { body: { errors: [{ message: expect.stringContaining('limit') }] } } },
  mailgun: { status: 429, details: expect.stringContaining('limit') },
  resend: { name: 'rate_limit_exceeded', statusCode: 429 },
  ses: { name: 'TooManyRequestsException', $metadata: { httpStatusCode: 429 } },
};

const CLOSING: Record<Provider, RegExp> = {
  postmark: /503 Service Unavailable[^]*"ErrorCode":100/,
  sendgrid: /503 Service Unavailable[^]*\{"errors":\[/,
  mailgun: /503 Service Unavailable[^]*\{"message":/,
  resend: /503 Service Unavailable[^]*"name":"application_error"/,
  ses: /503 Service Unavailable[^]*x-amzn-ErrorType: ServiceUnavailable[^]*\{"message":/,
};

function sendersOf(sdks: Sdks, keyId: string, secret: string): Record<Provider, Send> {
  const to = (user: string) => `${user}@example.net`;
  return {
    postmark: (base, user) => {
      const requestHost = `${new URL(base).host}/compat/postmark`;
      return new sdks.ServerClient(secret, { useHttps: false, requestHost }).sendEmail({
        From: TX_FROM,
        To: to(user),
        Subject: MAIL.subject,
        HtmlBody: MAIL.html,
      });
    },
    sendgrid: (base, user, { key } = {}) => {
      const client = new sdks.MailService();
      client.setApiKey(secret);
      client.client.setDefaultRequest('baseUrl', `${base}/compat/sendgrid/`);
      if (key !== undefined) client.client.setDefaultHeader('Idempotency-Key', key);
      return client.send({ ...MAIL, from: TX_FROM, to: to(user) });
    },
    mailgun: (base, user) =>
      new sdks.Mailgun(FormData)
        .client({ username: 'api', key: secret, url: `${base}/compat/mailgun` })
        .messages.create('kunde.example', { ...MAIL, from: TX_FROM, to: [to(user)] }),
    resend: async (base, user, { key } = {}) => {
      const client = new sdks.Resend(secret, { baseUrl: `${base}/compat/resend` });
      const options = key === undefined ? {} : { idempotencyKey: key };
      const { error } = await client.emails.send({ ...MAIL, from: TX_FROM, to: to(user) }, options);
      // The SDK returns errors.
      if (error !== null) throw error;
    },
    ses: (base, user, { isSingle = false } = {}) => {
      const client = new sdks.SESv2Client({
        region: 'eu-central-1',
        endpoint: `${base}/compat/ses`,
        credentials: { accessKeyId: keyId, secretAccessKey: secret },
        maxAttempts: isSingle ? 1 : 12,
      });
      const Body = { Html: { Data: MAIL.html } };
      return client.send(
        new sdks.SendEmailCommand({
          FromEmailAddress: TX_FROM,
          Destination: { ToAddresses: [to(user)] },
          Content: { Simple: { Subject: { Data: MAIL.subject }, Body } },
        }),
      );
    },
  };
}

/** A relay in front of the daemon that closes the first connection instead of returning the response. */
async function startRelay(target: string): Promise<{ url: string; requests(): number }> {
  let requests = 0;
  const relay = createServer((req, res) => {
    requests++;
    const isCut = requests === 1;
    const url = new URL(req.url ?? '/', target);
    const sent = request(
      url,
      { method: req.method ?? 'POST', headers: req.headers, agent: false },
      (answer) => {
        if (!isCut) {
          res.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(res);
          return;
        }
        answer.resume().on('end', () => req.socket.destroy());
      },
    );
    req.pipe(sent);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => {
    relay.closeAllConnections();
    relay.close();
  });
  const { port } = relay.address() as AddressInfo; // a TCP server's
  return { url: `http://127.0.0.1:${port}`, requests: () => requests };
}
