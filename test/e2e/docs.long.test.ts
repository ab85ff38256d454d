// Long: runs the commands of documents, with clients in eight languages.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { DOCUMENTS } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { writeRails, writeWordPress } from '../support/frameworks.ts';
import { freePort } from '../support/free-port.ts';
import { type Reader, startReader } from '../support/reader.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * The way from an empty directory to an application that sends: over HTTP in eight languages, and over SMTP.
 *
 *   curl, node, python3, java, php, ruby, go ───────HTTP────┐
 *   curl, swaks, Django, Action Mailer, PHPMailer ──SMTP────┴─▶ postrider ──SMTP──▶ sink
 */
const required = requirePrograms(
  'curl',
  'jq',
  'python3',
  'java',
  'php',
  'phpmailer',
  'ruby',
  'actionmailer',
  'go',
  'django',
  'swaks',
);
/** In first-message.md 1, in smtp-submission.md 2, in clients.md 1, in programs.md 7, in frameworks.md 3. */
const MESSAGES = 14;

describe.skipIf(required.missing)(`the commands of the documents${required.reason}`, () => {
  const files = mkdtempSync(join(tmpdir(), 'postrider-docs-files-'));
  let reader: Reader;
  beforeAll(async () => {
    const authority = createAuthority();
    const { cert, key } = authority.issue(['mail.example.net', 'localhost']);
    writeFileSync(join(files, 'ca.pem'), authority.cert);
    writeFileSync(join(files, 'fullchain.pem'), cert);
    writeFileSync(join(files, 'privkey.pem'), key, { mode: 0o600 });
    const port = await freePort();
    reader = await startReader({
      replace: {
        '/etc/ssl/mail.example.net': files,
        '0.0.0.0:587': `127.0.0.1:${port}`,
        '127.0.0.1:587': `127.0.0.1:${port}`,
        'smtp://mail.example.net:587': `smtp://localhost:${port}`,
        'EMAIL_HOST = "mail.example.net"': 'EMAIL_HOST = "localhost"',
        'address: "mail.example.net"': 'address: "localhost"',
        "Host = 'mail.example.net'": "Host = 'localhost'",
        'EMAIL_PORT = 587': `EMAIL_PORT = ${port}`,
        'port: 587': `port: ${port}`,
        'Port = 587': `Port = ${port}`,
      },
      env: { SSL_CERT_FILE: join(files, 'ca.pem') },
      programs: { wp: writeWordPress(files) },
    });
    writeRails(reader.dir);
  });
  afterAll(async () => {
    await reader?.close();
    rmSync(files, { recursive: true, force: true });
  });

  for (const document of DOCUMENTS['test/e2e/docs.long.test.ts']) {
    it(`of ${document} work as written`, async () => {
      reader.newShell();
      await reader.follow(document);
    });
  }

  it('deliver every message that they send', async () => {
    const { messages } = reader.sink;
    await eventually('the messages', () => messages.length >= MESSAGES);
    expect(messages.flatMap(({ to }) => to)).toEqual(Array(MESSAGES).fill('ada@example.org'));
  });
});
