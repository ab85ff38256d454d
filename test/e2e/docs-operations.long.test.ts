// Long: runs the commands of documents, each on a new installation.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { type Child, startChild } from '../support/child.ts';
import type { CodeBlock } from '../support/documentation.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { findProgram, requirePrograms } from '../support/required-programs.ts';
import { type RunningServer, startServer } from '../support/server-reader.ts';

/*
 * The commands of the documents for operators, each on its own server:
 *
 *   root ──▶ postrider, curl, promtool, systemctl ──▶ service ◀──scrape── Prometheus
 */
const required = requirePrograms('curl', 'jq', 'prometheus');
/** Checks that need the internet. */
const OFFLINE = { 'doctor.mailHosts': [], 'doctor.blocklists': [] };

describe.skipIf(required.missing)(`the documents for operators${required.reason}`, () => {
  let server: RunningServer | null = null;
  let prometheus: Child | null = null;
  afterEach(async () => {
    await prometheus?.kill('SIGKILL');
    await server?.close();
  });

  it.each(['docs/operations.md', 'docs/reference/large-databases.md'])('%s', async (document) => {
    server = await startServer({ settings: OFFLINE });
    await server.reader.follow(document);
  });

  it('docs/monitoring.md', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const { reader, root } = (server = await startServer({
      replace: { '127.0.0.1:9090': address },
      services: { prometheus: { reload: () => startPrometheus() } },
    }));
    const dir = join(root, 'etc/prometheus');
    mkdirSync(dir);
    /** Debian's package has started it; a reload reads the new configuration. */
    async function startPrometheus(): Promise<void> {
      const file = join(dir, 'prometheus.yml');
      writeFileSync(file, reader.adapted(readFileSync(file, 'utf8')));
      prometheus = startChild(findProgram('prometheus') ?? 'prometheus', [
        `--config.file=${file}`,
        `--web.listen-address=${address}`,
        `--storage.tsdb.path=${join(root, 'var/lib/prometheus')}`,
      ]);
      await eventually('Prometheus to answer', () =>
        fetch(`http://${address}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      );
    }
    await reader.follow('docs/monitoring.md', async ({ text, language }) => {
      if (text.includes('promtool query')) {
        const value = () => reader.run(reader.adapted(text));
        await eventually('a scrape', async () => (await value()).includes('=> 1 @'), {
          everyMs: 500,
        });
        return true;
      }
      if (language === 'toml') {
        addToSection(join(root, 'etc/postrider/postrider.toml'), reader.adapted(text));
        return true;
      }
      return false;
    });
    const metrics = `http://${reader.adapted('127.0.0.1:8080')}/metrics`;
    expect((await fetch(metrics)).status).toBe(401);
  });

  it('docs/upgrade.md', async () => {
    const { reader, dataDir } = (server = await startServer({
      replace: { '/var/tmp/postrider-new/usr/bin/postrider': 'postrider' },
      // The package of a new version is the built program.
      programs: { 'dpkg-deb': 'mkdir "$3"' },
    }));
    await reader.run('systemctl stop postrider');
    for (const name of readdirSync(dataDir)) if (name !== 'master.key') rmSync(join(dataDir, name));
    openDatabase(dataDir).close();
    await reader.follow('docs/upgrade.md', async ({ text, kind }: CodeBlock) => {
      if (kind === 'run by') return true;
      if (text.includes('--dry-run')) {
        expect(await reader.run(reader.adapted(text))).toContain('already has schema');
        return true;
      }
      // There is no older version yet: the copy that its migration would leave.
      const file = join(dataDir, 'postrider.db');
      if (text.includes('before-*')) copyFileSync(file, `${file}.before-2-${Date.now()}`);
      return false;
    });
    expect(readdirSync(dataDir).filter((name) => name.includes('before'))).toEqual([]);
  });
});

/** Adds the settings of a TOML text with one table to that table of a file. */
function addToSection(file: string, text: string): void {
  const [heading = '', ...settings] = text.trim().split('\n');
  const before = readFileSync(file, 'utf8');
  const after = before.replace(`${heading}\n`, `${text.trim()}\n`);
  if (after === before || settings.length === 0) throw new Error(`${file} has no ${heading}`);
  writeFileSync(file, after);
}
