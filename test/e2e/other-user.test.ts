import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * The built program, called by a user who may not use the files of the daemon. It must name the permission: "there is no
 * database" or "no configuration file was found" would make the operator set up the machine again.
 */
const required = requirePrograms('root');
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
/** A user who owns nothing. */
const OTHER_USER = { uid: 54_321, gid: 54_321 };

describe.skipIf(required.missing)(`a command of another user${required.reason}`, () => {
  let dir: string;
  let config: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-other-user-'));
    chmodSync(dir, 0o755);
    config = join(dir, 'postrider.toml');
    writeFileSync(
      config,
      'hostname = "mail.example.net"\n[data]\ndir = "data"\n[dns]\nresolvers = ["127.0.0.1:1"]\n',
    );
    const created = await run({}, '--config', config, 'account', 'create', '--name', 'Shop');
    expect(created).toMatchObject({ code: 0 });
  });

  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  function run(
    user: { uid?: number; gid?: number },
    ...args: string[]
  ): Promise<{ code: number; output: string }> {
    return new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [PROGRAM, ...args],
        { cwd: dir, ...user },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
      );
      child.stdin?.end();
    });
  }

  it('names the data directory that this user may not use', async () => {
    const { code, output } = await run(OTHER_USER, '--config', config, 'account', 'list');
    expect(code).toBe(1);
    expect(output).toContain(
      `${join(dir, 'data/postrider.db')} cannot be accessed: permission denied for user 54321. Run the command as the user of the daemon`,
    );
  });

  it('names the configuration file that this user may not read', async () => {
    const etc = join(dir, 'etc');
    mkdirSync(etc, { mode: 0o750 });
    const { code, output } = await run(
      OTHER_USER,
      '--config',
      join(etc, 'postrider.toml'),
      'account',
      'list',
    );
    expect(code).toBe(1);
    expect(output).toContain(
      `${join(etc, 'postrider.toml')}: cannot be read: permission denied for user 54321. Run the command as root`,
    );
  });

  it('reports in doctor that the data directory belongs to another user', async () => {
    const { code, output } = await run(OTHER_USER, '--config', config, 'doctor', '--json');
    expect(code).toBe(3);
    const findings: { check: string; status: string; reason: string }[] = JSON.parse(output);
    expect(findings.filter(({ check }) => check === 'data-directory')).toMatchObject([
      { status: 'failure', reason: expect.stringContaining('belongs to user 0, not to user 54321') },
    ]);
    expect(findings.filter(({ reason }) => reason.includes('There is no database'))).toEqual([]);
  });
});
