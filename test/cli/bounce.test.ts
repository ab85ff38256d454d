import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bounceCommand } from '../../src/cli/bounce.ts';
import { createContext } from '../../src/cli/context.ts';

const DSN = `From: MAILER-DAEMON@x.example
X-Failed-Recipients: a@x.example

a@x.example
  SMTP error from remote mail server after RCPT TO:<a@x.example>:
  550 5.1.1 user unknown`;

describe('bounce parse', () => {
  let folder: string;
  let out: string;
  let err: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bounce-'));
    out = '';
    err = '';
    vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => ((out += String(chunk)), true));
    vi.spyOn(console, 'error').mockImplementation((line) => void (err += `${line}\n`));
    process.exitCode = undefined;
  });

  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = undefined;
    rmSync(folder, { recursive: true });
  });

  const parse = async (...files: string[]) => {
    const context = createContext(() => undefined, { json: files.includes('--json') });
    await bounceCommand(context).parseAsync(['parse', ...files], { from: 'user' });
    return out.split('\n').filter((line) => line !== '');
  };
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  it('prints one JSON line per file', async () => {
    const [first, second, ...more] = await parse(file('a', DSN), file('b', 'Subject: hello\n\nhello'));
    expect(JSON.parse(first ?? '')).toEqual({
      kind: 'dsn',
      reports: [
        {
          recipient: 'a@x.example',
          action: 'failed',
          status: '5.1.1',
          bounceType: 'hard',
          classification: 'invalid-recipient',
          replyCode: '550',
          diagnostic:
            'SMTP error from remote mail server after RCPT TO:<a@x.example>: 550 5.1.1 user unknown',
          remoteMta: null,
        },
      ],
      originalMessageId: null,
      originalEnvelopeId: null,
    });
    expect(JSON.parse(second ?? '')).toEqual({
      kind: 'unknown',
      reports: [],
      originalMessageId: null,
      originalEnvelopeId: null,
    });
    expect(more).toEqual([]);
    expect(process.exitCode).toBeUndefined();
  });

  it('names unreadable files and parses the others', async () => {
    const lines = await parse(join(folder, 'missing'), folder, file('a', DSN));
    expect(lines).toHaveLength(1);
    expect(err).toContain('missing');
    expect(err.trim().split('\n')).toHaveLength(2);
    expect(process.exitCode).toBe(3);
  });

  it('fails when no file is readable', async () => {
    expect(await parse(join(folder, 'missing'))).toEqual([]);
    expect(process.exitCode).toBe(1);
  });

  it('accepts --json, and then writes errors as JSON', async () => {
    const [line] = await parse('--json', join(folder, 'missing'), file('a', DSN));
    expect(JSON.parse(line ?? '')).toMatchObject({ kind: 'dsn' });
    expect(JSON.parse(err)).toMatchObject({ success: false, error: { code: 'PARTIAL' } });
  });
});
