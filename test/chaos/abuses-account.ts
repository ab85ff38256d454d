import { createServer } from 'node:http';
import { crc32, deflateSync } from 'node:zlib';
import { type ApiClient, createApiClient } from '../support/api-client.ts';
import { smtpClient } from '../support/smtp-client.ts';
import type { AbuseJob, Attack, Attacker, Count } from './abuse-process.ts';
import { ATTACKED_DOMAIN, attackerAddress, call, mail, repeatEndlessly } from './abuses-http.ts';
import { pause } from './context.ts';

/* Features of the API that an account uses as much as it can. What a flood needs is created before its first count. */

const MB = 1024 * 1024;
const RETRY_DELAY_MS = 200;
const JSON_TYPE = 'application/json';
const SINGLE = '/transactional/send';
const COMPLIANCE = '<p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>';

/** A client for what a flood needs first. */
function clientOf({ ports }: AbuseJob, account: Attacker): ApiClient {
  return createApiClient(`http://127.0.0.1:${ports.api}`, account);
}

/** Throws when it was refused: the flood would be none. */
async function created<Data>(api: ApiClient, path: string, body: unknown): Promise<Data> {
  const answer = await api.post<Data>(path, body);
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text.slice(0, 300)}`);
  return answer.data;
}

/** Each account posts bodies endlessly, `concurrent` at a time; `n` numbers those of an account. */
function postEndlessly(
  job: AbuseJob,
  count: Count,
  concurrent: number,
  what: (account: Attacker, n: number) => { path: string; body: string | Buffer; type?: string },
): void {
  repeatEndlessly(job, concurrent, (account, agent, n) => {
    const { path, body, type = JSON_TYPE } = what(account, n);
    return call(job, account, count, { path, body: Buffer.from(body), type, agent });
  });
}

/** HTML of this size full of tags and links, the same but for one number, so that nothing is known of it. */
function distinctHtml(bytes: number): (n: number) => string {
  const part = '<div class=a><p>text <b>bold</b> <a href=https://shop.example/p>link</a></p></div>';
  const rest = part.repeat(Math.floor(bytes / part.length)) + COMPLIANCE;
  return (n) => `<p>${n}</p>${rest}`;
}

const ROWS_PER_FILE = 20_000;
/** Contacts of an account whose contacts are searched. */
const CONTACTS = 5000;

function contactRows(account: Attacker, n: number, length = ROWS_PER_FILE): string {
  const rows = Array.from(
    { length },
    (_, row) => `c${n}-${row}@${account.domain},Ada${row},Lovelace,${row % 97},text ${row} of ${n}`,
  );
  return `email,firstName,lastName,customFields.age,customFields.note\n${rows.join('\n')}\n`;
}

async function importContacts(job: AbuseJob, account: Attacker): Promise<void> {
  const { status, text } = await clientOf(job, account).call('POST', '/web-setup/contacts/import', {
    rawBody: contactRows(account, 0, CONTACTS),
    headers: { 'Content-Type': 'text/csv' },
  });
  if (status >= 300) throw new Error(`contacts: ${status} ${text.slice(0, 300)}`);
}

/** Twenty conditions that no index answers. */
function costlyFilter(n: number): object {
  const any = Array.from({ length: 20 }, (_, each) => ({
    field: each % 2 === 0 ? 'customFields.note' : 'lastName',
    op: 'contains',
    value: `${n} and ${each}`,
  }));
  return { any: [...any, { not: { opened: { withinDays: 30 } } }] };
}

/** Reads that examine many rows or find nothing. */
const READS = [
  '/web-setup/messages?limit=100&tag=none',
  '/web-setup/messages?limit=100&status=bounced,failed',
  '/web-setup/events?limit=100&tag=none',
  '/web-setup/events?limit=100&event=email_bounced',
  '/web-setup/contacts?limit=100&search=nobody',
  '/web-setup/contacts?limit=100',
  '/web-setup/suppressions?limit=100',
  '/web-setup/statistics?groupBy=tag',
  '/web-setup/reputation?days=30',
  '/web-setup/segments?limit=100',
];

/** Loops as long as the limits of a template allow, and longer. */
const LIQUID =
  '{% for a in (1..1000) %}{% for b in (1..1000) %}{{ a | times: b | append: "text" | upcase }}{% endfor %}{% endfor %}';

function mjml(sections: number): string {
  const section =
    '<mj-section><mj-column><mj-text color="#123456">text</mj-text><mj-button href="https://a.example">go</mj-button></mj-column></mj-section>';
  return `<mjml><mj-body>${section.repeat(sections)}</mj-body></mjml>`;
}

/** A mail with almost as many parts as are allowed. */
function manyParts({ domain }: Attacker, bytes: number): string {
  const parts = 90;
  const html = '<p>text <a href="https://a.example/x">link</a></p>\r\n';
  const part = `--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html.repeat(bytes / parts / html.length)}\r\n`;
  const head = `From: a@${domain}\r\nTo: b@${ATTACKED_DOMAIN}\r\nSubject: parts\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`;
  return `${head}${part.repeat(parts)}--b--\r\n`;
}

/** A mail with HTML and an attachment of this size. */
function largeMail(from: string, to: string, bytes: number): string {
  const line = `${'QUJD'.repeat(19)}\r\n`;
  const head = `From: ${from}\r\nTo: ${to}\r\nSubject: large\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`;
  const html = `--b\r\nContent-Type: text/html\r\n\r\n${'<p>text <a href="https://a.example/x">link</a></p>\r\n'.repeat(2000)}`;
  const file = `--b\r\nContent-Type: application/octet-stream; name=f.bin\r\nContent-Disposition: attachment; filename=f.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n`;
  return `${head}${html}${file}${line.repeat(Math.floor(bytes / line.length))}--b--\r\n`;
}

/** A PNG of 49 million pixels, which has a few kilobytes. */
function largeImage(): Buffer {
  const side = 7000;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  // One bit for each pixel, gray, no interlace.
  header.set([1, 0, 0, 0, 0], 8);
  const pixels = deflateSync(Buffer.alloc((1 + Math.ceil(side / 8)) * side));
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const framed = Buffer.alloc(body.length + 8);
    framed.writeUInt32BE(data.length, 0);
    body.copy(framed, 4);
    framed.writeUInt32BE(crc32(body), body.length + 4);
    return framed;
  };
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Sends the same mail endlessly over `connections` connections for each account. */
function submitEndlessly(
  job: AbuseJob,
  count: Count,
  connections: number,
  target: { port: number; login: boolean; from(account: Attacker): string; to(account: Attacker): string },
  content: (from: string, to: string) => string,
): void {
  const repeat = async (account: Attacker, n: number) => {
    const [from, to] = [target.from(account), target.to(account)];
    const text = content(from, to);
    for (;;) {
      try {
        const client = await smtpClient(target.port, { from: attackerAddress(n) });
        await client.say('EHLO hostile.example');
        if (target.login) {
          const plain = `\0${account.accountId}\0${account.keys.transactional}`;
          await client.say(`AUTH PLAIN ${Buffer.from(plain).toString('base64')}`);
        }
        while (!client.closed) count((await client.mail(from, to, text)).slice(0, 3));
      } catch {
        count('broken'); // The server closed or refused the connection.
      }
      await pause(RETRY_DELAY_MS);
    }
  };
  for (const [index, account] of job.accounts.entries())
    for (let each = 0; each < connections; each++) void repeat(account, index);
}

/** An endpoint that accepts every call and never responds. */
function silentEndpoint(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer(() => {});
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

const WEBHOOKS = 50;

export const ABUSES_ACCOUNT = {
  html: (job, count) => {
    const htmlOf = distinctHtml(MB);
    postEndlessly(job, count, 3, (account, n) => ({
      path: SINGLE,
      body: `{${mail(account)},"html":"${htmlOf(n)}"}`,
    }));
  },
  batches: (job, count) => {
    const refused = ({ domain }: Attacker) =>
      Array.from({ length: 500 }, (_, n) => `{"from":"a@${domain}","to":"b${n}@","html":"<p>{{x}}</p>"}`);
    postEndlessly(job, count, 6, (account) => ({
      path: '/transactional/send-batch',
      body: `{"messages":[${refused(account).join(',')}]}`,
    }));
  },
  imports: (job, count) =>
    postEndlessly(job, count, 2, (account, n) => ({
      path: '/web-setup/contacts/import',
      body: contactRows(account, n),
      type: 'text/csv',
    })),
  suppressions: (job, count) =>
    postEndlessly(job, count, 2, ({ domain }, n) => ({
      path: '/web-setup/suppressions/import?format=plain',
      body: Array.from({ length: ROWS_PER_FILE }, (_, row) => `s${n}-${row}@${domain}`).join('\n'),
      type: 'text/csv',
    })),
  segments: async (job, count) => {
    for (const account of job.accounts) await importContacts(job, account);
    postEndlessly(job, count, 10, (_, n) => ({
      path: '/web-setup/segments/preview',
      body: JSON.stringify({ filter: costlyFilter(n) }),
    }));
  },
  searches: async (job, count) => {
    for (const account of job.accounts) await importContacts(job, account);
    repeatEndlessly(job, 20, (account, agent, n) => {
      const path = READS[n % READS.length] ?? '';
      return call(job, account, count, { method: 'GET', path, body: Buffer.alloc(0), agent });
    });
  },
  liquid: (job, count) =>
    postEndlessly(job, count, 10, (_, n) => ({
      path: '/web-setup/templates/preview',
      body: JSON.stringify({ subject: 's', html: `${n}${LIQUID}${COMPLIANCE}`, syntax: 'liquid' }),
    })),
  mjml: (job, count) => {
    const source = mjml(500);
    postEndlessly(job, count, 10, (_, n) => ({
      path: '/web-setup/templates/preview',
      body: JSON.stringify({ subject: `s${n}`, mjml: source }),
    }));
  },
  webhooks: async (job, count) => {
    const port = await silentEndpoint();
    for (const account of job.accounts) {
      const api = clientOf(job, account);
      for (let n = 0; n < WEBHOOKS; n++)
        await created(api, '/web-setup/webhooks', {
          url: `http://127.0.0.1:${port}/${n}`,
          events: ['*'],
          name: `w${n}`,
        });
    }
    postEndlessly(job, count, 3, (account) => ({
      path: SINGLE,
      body: `{${mail(account)},"html":"<p>text</p>${COMPLIANCE}"}`,
    }));
  },
  raw: (job, count) =>
    postEndlessly(job, count, 4, (account) => ({
      path: '/transactional/send-raw',
      body: manyParts(account, 3.5 * MB),
      type: 'message/rfc822',
    })),
  submission: (job, count) =>
    submitEndlessly(
      job,
      count,
      4,
      {
        port: job.ports.submission,
        login: true,
        from: ({ domain }) => `a@${domain}`,
        to: () => `b@${ATTACKED_DOMAIN}`,
      },
      (from, to) => largeMail(from, to, 2.5 * MB),
    ),
  media: (job, count) => {
    const image = largeImage();
    postEndlessly(job, count, 6, (_, n) => ({
      path: `/web-setup/media?name=image${n}`,
      body: image,
      type: 'image/png',
    }));
  },
  contents: async (job, count) => {
    const html = distinctHtml(3 * MB)(0);
    const ids = new Map<Attacker, string>();
    for (const account of job.accounts) {
      const body = { from: `a@${account.domain}`, to: `b@${ATTACKED_DOMAIN}`, subject: 's', html };
      const { messageId } = await created<{ messageId: string }>(clientOf(job, account), SINGLE, body);
      ids.set(account, messageId);
    }
    repeatEndlessly(job, 6, (account, agent, n) => {
      const path = `/web-setup/messages/${ids.get(account)}/${n % 2 === 0 ? 'content' : 'source'}`;
      return call(job, account, count, { method: 'GET', path, body: Buffer.alloc(0), agent });
    });
  },
  inbound: async (job, count) => {
    for (const account of job.accounts) {
      const api = clientOf(job, account);
      const { data } = await api.get<{ domains: { domainId: string }[] }>('/web-setup/domains');
      await created(api, '/web-setup/inbound-routes', {
        name: 'all',
        match: `*@in.${account.domain}`,
        domainId: data.domains[0]?.domainId,
      });
    }
    submitEndlessly(
      job,
      count,
      6,
      {
        port: job.ports.mx,
        login: false,
        from: () => 'someone@sender.example',
        to: ({ domain }) => `support@in.${domain}`,
      },
      (from, to) => largeMail(from, to, MB),
    );
  },
} satisfies Record<string, Attack>;
