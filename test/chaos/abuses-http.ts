import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { AbuseJob, Attack, Attacker, Count } from './abuse-process.ts';

/** Abuse of the HTTP listeners, by clients without and with valid keys. */

/** The domain that abusive accounts send to: the ledger does not count it. */
export const ATTACKED_DOMAIN = 'attacked.example';

const FLOOD_CONNECTIONS = 300;
const RETRY_DELAY_MS = 100;
/** The public listener accepts 8192 connections. */
const HALF_REQUESTS = 9000;

/** A loopback address of the n-th attacker; ordinary clients have other addresses. */
export function attackerAddress(n: number): string {
  return `127.66.${n % 4}.1`;
}

/** Connections that send a header byte by byte, and others that send nothing. */
function slowHeaders(port: number, count: Count): void {
  const slow = (n: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attackerAddress(n) });
    socket.write('GET / HTTP/1.1\r\nHost: mx.postrider.example\r\nX-Slow: ');
    const timer = setInterval(() => socket.write('x'), 1000);
    count('slow connections');
    socket.on('error', () => count('broken'));
    socket.on('data', () => socket.destroy());
    socket.on('close', () => {
      clearInterval(timer);
      setTimeout(slow, RETRY_DELAY_MS, n);
    });
  };
  const brief = (n: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attackerAddress(n) });
    count('brief connections');
    socket.on('error', () => count('broken'));
    setTimeout(() => socket.destroy(), RETRY_DELAY_MS);
    socket.on('close', () => setTimeout(brief, RETRY_DELAY_MS, n));
  };
  for (let n = 0; n < FLOOD_CONNECTIONS; n++) slow(n);
  for (let n = 0; n < FLOOD_CONNECTIONS / 3; n++) brief(n);
}

/** More connections than the listener has, each with the beginning of a request; a closed one is opened again. */
function halfRequests(port: number, count: Count): void {
  let opened = 0;
  const half = (n: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attackerAddress(n) });
    socket.write('GET / HTTP/1.1\r\nHost: mx.postrider.example\r\nX-Half: ');
    count('half requests');
    socket.on('error', () => count('broken'));
    socket.on('data', () => socket.destroy());
    socket.on('close', () => setTimeout(half, 10 * RETRY_DELAY_MS, n));
  };
  const timer = setInterval(() => {
    for (let each = 0; each < FLOOD_CONNECTIONS; each++) half(opened++);
    if (opened >= HALF_REQUESTS) clearInterval(timer);
  }, RETRY_DELAY_MS);
}

/** Endless requests whose responses are never read. */
function unread({ ports }: AbuseJob, count: Count): void {
  const requests = 'GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(100);
  const begin = (n: number) => {
    const socket = connect({ port: ports.api, host: '127.0.0.1', localAddress: attackerAddress(n) });
    socket.pause();
    count('connections');
    const write = () => {
      if (socket.destroyed || socket.writableLength > 0) return;
      socket.write(requests);
      count('hundreds of requests');
    };
    const timer = setInterval(write, 50);
    socket.on('error', () => count('broken'));
    socket.on('close', () => {
      clearInterval(timer);
      setTimeout(begin, RETRY_DELAY_MS, n);
    });
  };
  for (let n = 0; n < FLOOD_CONNECTIONS; n++) begin(n);
}

/** One request of an account; the response is counted by its status, its body is discarded. */
export function call(
  job: AbuseJob,
  account: Attacker,
  count: Count,
  what: { method?: string; path: string; body: Buffer; type?: string; agent: Agent },
): Promise<void> {
  const { method = 'POST', path, body, type = 'application/json', agent } = what;
  const key = path.startsWith('/transactional') ? account.keys.transactional : account.keys.setup;
  return new Promise((resolve) => {
    const req = request(
      {
        host: '127.0.0.1',
        port: job.ports.api,
        method,
        path,
        agent,
        headers: {
          'X-Api-Key': key,
          'X-Id': account.accountId,
          'Content-Type': type,
          'Content-Length': body.length,
        },
      },
      (res) => {
        count(res.statusCode ?? 0);
        res.on('error', () => count('broken'));
        res.resume().on('close', resolve);
      },
    );
    req.on('error', () => {
      count('broken');
      setTimeout(resolve, RETRY_DELAY_MS);
    });
    req.end(body);
    count('requests');
  });
}

/** Each account repeats the same request endlessly, `concurrent` at a time. */
export function repeatEndlessly(
  job: AbuseJob,
  concurrent: number,
  act: (account: Attacker, agent: Agent, n: number) => Promise<void>,
): void {
  for (const [index, account] of job.accounts.entries()) {
    const agent = new Agent({ keepAlive: true, localAddress: attackerAddress(index) });
    let n = 0;
    const worker = async () => {
      for (;;) await act(account, agent, n++);
    };
    for (let each = 0; each < concurrent; each++) void worker();
  }
}

const MB = 1024 * 1024;
const BATCH = '/transactional/send-batch';
const SINGLE = '/transactional/send';
/** The account has a verified domain, so that nothing is refused before it is validated and rendered. */
export const mail = ({ domain }: Attacker) =>
  `"from":"a@${domain}","to":"b@${ATTACKED_DOMAIN}","subject":"s"`;

const json = (text: string) => Buffer.from(text);
/** As many copies of a text as fit into `bytes`. */
const filled = (bytes: number, part: (n: number) => string) => {
  const length = part(100_000).length + 1;
  return Array.from({ length: Math.floor(bytes / length) }, (_, n) => part(n)).join(',');
};

/** One body for each account, built once. */
function bodyPerAccount(job: AbuseJob, build: (from: Attacker) => Buffer): (account: Attacker) => Buffer {
  const bodies = new Map(job.accounts.map((account) => [account.domain, build(account)]));
  return ({ domain }) => bodies.get(domain) ?? json('');
}

/** Large error responses: each attachment of a batch is invalid in several ways. */
const invalidAttachments = (from: Attacker) =>
  json(
    `{"messages":[{${mail(from)},"html":"h","attachments":[${filled(31 * MB, () => '{"name":1,"contentType":2,"content":3}')}]}]}`,
  );

/** Bodies that are valid JSON and expensive to check. */
const HOSTILE_BODIES: [path: string, body: (from: Attacker) => Buffer][] = [
  [BATCH, () => json(`{${filled(31 * MB, (n) => `"field${n}":1`)},"messages":[]}`)],
  [SINGLE, (from) => json(`{${mail(from)},"html":"h",${filled(3.9 * MB, (n) => `"field${n}":1`)}}`)],
  [SINGLE, (from) => json(`{${mail(from)},"html":"${'{{v1}}{{w22}}{{x333}}'.repeat(190_000)}"}`)],
  [
    SINGLE,
    (from) => json(`{${mail(from)},"html":"h","templateVariables":{"a":[${filled(3.9 * MB, () => '[]')}]}}`),
  ],
  [SINGLE, (from) => json(`{${mail(from)},"html":"${'<a href=x>'.repeat(390_000)}"}`)],
  [
    SINGLE,
    (from) => json(`{${mail(from)},"html":"h","headers":{${filled(3.9 * MB, (n) => `"X-H${n}":"v"`)}}}`),
  ],
  [
    SINGLE,
    ({ domain }) =>
      json(
        `{"from":"a@${domain}","subject":"s","html":"h","to":[${filled(3.9 * MB, (n) => `"u${n}@d0.example"`)}]}`,
      ),
  ],
];

const LARGE = 32 * MB - 1;
const LARGE_UPLOADS = 9;
const SMALL_UPLOADS = 30;

/** A body that is sent immediately except for its last bytes, which never follow. */
function slowUpload(job: AbuseJob, account: Attacker, bytes: number, count: Count): void {
  const socket = connect({ port: job.ports.api, host: '127.0.0.1', localAddress: attackerAddress(0) });
  socket.write(
    `POST ${BATCH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: ${account.keys.transactional}\r\n` +
      `X-Id: ${account.accountId}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  socket.write(Buffer.alloc(bytes - 100, ' '));
  count('uploads');
  const timer = setInterval(() => socket.write(' '), 1000);
  socket.on('data', (data) => count(data.toString('latin1', 9, 12)));
  socket.on('error', () => count('broken'));
  socket.on('close', () => {
    clearInterval(timer);
    setTimeout(slowUpload, 10 * RETRY_DELAY_MS, job, account, bytes, count);
  });
}

/** Large bodies, and small ones for the rest of a shared budget. */
function slowUploads(job: AbuseJob, count: Count): void {
  for (let n = 0; n < LARGE_UPLOADS + SMALL_UPLOADS; n++) {
    const account = job.accounts[n % job.accounts.length];
    if (account !== undefined) slowUpload(job, account, n < LARGE_UPLOADS ? LARGE : 200, count);
  }
}

export const ABUSES_HTTP = {
  'flood-api': ({ ports }, count) => slowHeaders(ports.api, count),
  'flood-public': ({ ports }, count) => slowHeaders(ports.public, count),
  'half-requests': ({ ports }, count) => halfRequests(ports.public, count),
  unread,
  keys: (job, count) =>
    repeatEndlessly(job, 10, (account, agent, n) =>
      call(job, account, count, {
        method: 'PUT',
        path: '/web-setup/domains',
        body: json(
          `{"domain":"h${n}-${account.accountId.replace(/[\W_]/g, '').toLowerCase()}.example","useCaseId":"tx-local"}`,
        ),
        agent,
      }),
    ),
  errors: (job, count) => {
    const bodyOf = bodyPerAccount(job, invalidAttachments);
    repeatEndlessly(job, 3, (account, agent) =>
      call(job, account, count, { path: BATCH, body: bodyOf(account), agent }),
    );
  },
  json: (job, count) => {
    const bodies = HOSTILE_BODIES.map(([path, body]) => ({ path, bodyOf: bodyPerAccount(job, body) }));
    repeatEndlessly(job, 3, (account, agent, n) => {
      const { path, bodyOf } = bodies[n % bodies.length] ?? { path: SINGLE, bodyOf: () => json('') };
      return call(job, account, count, { path, body: bodyOf(account), agent });
    });
  },
  uploads: slowUploads,
  requests: (job, count) => {
    const html = `${'<p>text</p>'.repeat(2000)}<p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>`;
    const bodyOf = bodyPerAccount(job, (from) => json(`{${mail(from)},"html":"${html}"}`));
    repeatEndlessly(job, 60, (account, agent) =>
      call(job, account, count, { path: SINGLE, body: bodyOf(account), agent }),
    );
  },
} satisfies Record<string, Attack>;
