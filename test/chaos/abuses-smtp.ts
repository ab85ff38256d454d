import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type ClientOptions, type SmtpClient, smtpClient } from '../support/smtp-client.ts';
import type { AbuseJob, Attack, Count } from './abuse-process.ts';
import { attackerAddress } from './abuses-http.ts';
import { pause } from './context.ts';

/** Abuse of the MX and the submission listener. */

const RETRY_DELAY_MS = 200;
const MB = 1024 * 1024;

/** Repeats the same dialog, on a new connection when the last one ended. */
function sessions(
  port: number,
  connections: number,
  count: Count,
  dialog: (client: SmtpClient, n: number) => Promise<void>,
  options: (n: number) => ClientOptions = (n) => ({ from: attackerAddress(n) }),
): void {
  const repeat = async (n: number) => {
    for (;;) {
      try {
        const client = await smtpClient(port, options(n));
        count(client.greeting.slice(0, 3));
        await dialog(client, n);
        client.destroy();
      } catch {
        count('broken'); // The server closed or refused the connection.
      }
      await pause(RETRY_DELAY_MS);
    }
  };
  for (let n = 0; n < connections; n++) void repeat(n);
}

/** Holds a connection open with a minimum of commands. */
async function hold(client: SmtpClient, count: Count): Promise<void> {
  await client.say('EHLO hostile.example');
  for (;;) {
    count((await client.say('MAIL FROM:<>')).slice(0, 3));
    await client.say('RSET');
    await pause(3500);
  }
}

/** Endless transactions without mail, as fast as the server reads them. */
function recipients({ ports, addresses }: AbuseJob, count: Count): void {
  const [address = 'nobody@mx.postrider.example'] = addresses;
  const turn = `MAIL FROM:<>\r\n${`RCPT TO:<${address}>\r\n`.repeat(90)}RSET\r\n`;
  const begin = () => {
    const socket: Socket = connect({ port: ports.mx, host: '127.0.0.1', localAddress: attackerAddress(0) });
    count('connections');
    socket.write('EHLO hostile.example\r\n');
    const write = () => {
      if (socket.writableLength > 0 || socket.destroyed) return;
      socket.write(turn);
      count('transactions');
    };
    const timer = setInterval(write, 20);
    socket.resume().on('error', () => count('broken'));
    socket.on('close', () => {
      clearInterval(timer);
      setTimeout(begin, RETRY_DELAY_MS);
    });
  };
  for (let n = 0; n < 300; n++) begin();
}

/** `mx.mailBytes` by default. */
const LARGEST = 20 * MB;
const LARGE_UPLOADS = 8;
const SMALL_UPLOADS = 30;

/** A mail whose final dot is never sent. */
async function holdUpload(client: SmtpClient, address: string, bytes: number, count: Count): Promise<void> {
  await client.say('EHLO hostile.example');
  await client.say('MAIL FROM:<>');
  count(`rcpt ${(await client.say(`RCPT TO:<${address}>`)).slice(0, 3)}`);
  count(`data ${(await client.say('DATA')).slice(0, 3)}`);
  const head = 'Subject: held\r\n\r\n';
  const line = `${'x'.repeat(98)}\r\n`;
  client.write(Buffer.from(head + line.repeat(Math.floor((bytes - 1000) / line.length))));
  while (!client.closed) {
    client.write('x\r\n');
    await pause(1000);
  }
}

/** Large mails, and small ones for the rest of a shared budget. */
function holdUploads({ ports, addresses }: AbuseJob, count: Count): void {
  sessions(ports.mx, LARGE_UPLOADS + SMALL_UPLOADS, count, (client, n) =>
    holdUpload(client, addresses[n % addresses.length] ?? '', n < LARGE_UPLOADS ? LARGEST : 2000, count),
  );
}

/** A mail with a small attachment like a report that unpacks to 10 MB of tiny XML elements. */
function reportBomb(): string {
  const xml = `<?xml version="1.0"?><feedback><report_metadata>${'<a>1</a>'.repeat((10 * MB) / 8)}</report_metadata></feedback>`;
  return [
    'From: reports@hostile.example',
    'Subject: Report domain: kunde.example Submitter: hostile.example Report-ID: <1>',
    'MIME-Version: 1.0',
    'Content-Type: application/gzip; name="hostile.example!kunde.example!1!2.xml.gz"',
    'Content-Transfer-Encoding: base64',
    '',
    gzipSync(xml).toString('base64').replace(/.{76}/g, '$&\r\n'),
    '',
  ].join('\r\n');
}

export const ABUSES_SMTP = {
  'flood-mx': ({ ports }, count) => sessions(ports.mx, 1200, count, (client) => hold(client, count)),
  'flood-submission': (job, count) => {
    const wrong = Buffer.from('\0acc_0000000000000000\0wrong password').toString('base64');
    sessions(job.ports.submission, 600, count, async (client, n) => {
      if (n % 2 === 0) return hold(client, count);
      await client.say('EHLO hostile.example');
      while (!client.closed) count(`auth ${(await client.say(`AUTH PLAIN ${wrong}`)).slice(0, 3)}`);
    });
  },
  recipients,
  'held-uploads': holdUploads,
  'report-bombs': ({ ports, addresses }, count) => {
    const bomb = reportBomb();
    sessions(ports.mx, 100, count, async (client, n) => {
      await client.say('EHLO hostile.example');
      while (!client.closed) {
        const reply = await client.mail('', addresses[n % addresses.length] ?? '', bomb);
        count(`bomb ${reply.slice(0, 3)}`);
      }
    });
  },
} satisfies Record<string, Attack>;
