import { appendFileSync, chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
let dir: string;
beforeEach(() => {
  shell = createShell();
  dir = dirname(shell.file);
});
afterEach(() => shell.remove());

const { cert, key } = createAuthority().issue(['mx.postrider.example']);

/** Writes files into the directory of the configuration. */
function put(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text, { mode: 0o600 });
}

const MX_TLS = '[mx.tls]\ncertificateFile = "cert.pem"\nkeyFile = "mx.key"\n';

describe('config check', () => {
  it('exits with 0 for a configuration whose files can be used', async () => {
    put({ 'cert.pem': cert, 'mx.key': key });
    appendFileSync(shell.file, MX_TLS);
    expect(await shell.run('config', 'check', shell.file)).toMatchObject({ status: 0, err: '' });
  });

  it.each([
    ['a missing key', { 'cert.pem': cert }, MX_TLS, /error: mx\.tls\.keyFile: .*mx\.key does not exist/],
    ['an empty key', { 'cert.pem': cert, 'mx.key': '' }, MX_TLS, /error: mx\.tls: .*the key file is empty/],
    ['half a key', { 'cert.pem': cert, 'mx.key': key.slice(0, 90) }, MX_TLS, /the key file is incomplete/],
    [
      'an empty password file',
      { password: '' },
      '[[delivery.routes]]\nmatch = "*"\nhost = "smtp.example.net"\nuser = "u"\npasswordFile = "password"\n',
      /error: delivery\.routes.*password is empty/,
    ],
    [
      'an empty file of authorities',
      { 'ca.pem': '' },
      '[delivery.tls]\ncaFile = "ca.pem"\n',
      /error: delivery\.tls\.caFile: .*ca\.pem cannot be used: the file is empty/,
    ],
    [
      'two listeners with one address',
      {},
      '[api]\nlisten = "127.0.0.1:8081"\n',
      /error: public\.listen: 127\.0\.0\.1:8081 is also used by api\.listen/,
    ],
    ['an unknown key', {}, '[metrics]\nport = 1\n', /error: metrics: unknown key/],
  ])('exits with 1 for %s', async (_, files, lines, message) => {
    put(files);
    appendFileSync(shell.file, lines);
    const { status, out } = await shell.run('config', 'check', shell.file);
    expect(out).toMatch(message);
    expect(out).toMatch(/is invalid: 1 error$/);
    expect(status).toBe(1);
  });

  it('exits with 1 for a key that this user cannot read', async () => {
    put({ 'cert.pem': cert });
    // Like a file without permissions, it cannot be read; root may read those.
    appendFileSync(shell.file, MX_TLS.replace('mx.key', '.'));
    const { status, out } = await shell.run('config', 'check', shell.file);
    expect(out).toMatch(/error: mx\.tls\.keyFile: .* is a directory/);
    expect(status).toBe(1);
  });

  it.each([
    [
      'of the wrong size',
      (file: string) => writeFileSync(file, 'short', { mode: 0o600 }),
      /must have 32 bytes/,
    ],
    [
      'that others can read',
      (file: string) => {
        writeFileSync(file, Buffer.alloc(32));
        chmodSync(file, 0o644);
      },
      /can be read by others/,
    ],
  ])('exits with 1 for a master key %s', async (_, write, message) => {
    write(join(dir, 'data', 'master.key'));
    const { status, out } = await shell.run('config', 'check', shell.file);
    expect(out).toMatch(message);
    expect(status).toBe(1);
  });

  it('exits with 1 for a data directory that cannot be created', async () => {
    put({ blocked: '' });
    writeFileSync(shell.file, `[data]\ndir = ${JSON.stringify(join(dir, 'blocked', 'data'))}\n`);
    const { status, out } = await shell.run('config', 'check', shell.file);
    expect(out).toMatch(/error: data\.dir: /);
    expect(status).toBe(1);
  });

  it.each(['', '  \n\n'])('exits with 1 for an empty file (%j)', async (text) => {
    writeFileSync(shell.file, text);
    const { status, out } = await shell.run('config', 'check', shell.file);
    expect(out).toMatch(/error: is empty/);
    expect(status).toBe(1);
  });

  it('prints the findings as JSON', async () => {
    put({ 'cert.pem': cert });
    const before = readFileSync(shell.file, 'utf8').split('\n').length;
    appendFileSync(shell.file, MX_TLS);
    rmSync(join(dir, 'cert.pem'));
    const { status, out } = await shell.run('config', 'check', shell.file, '--json');
    expect(status).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      valid: false,
      findings: expect.arrayContaining([
        {
          level: 'error',
          key: 'mx.tls.certificateFile',
          message: expect.stringContaining('does not exist'),
          line: before + 1,
        },
      ]),
    });
  });
});
