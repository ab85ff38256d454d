// Long: runs the commands of a document, with a standby by Litestream.
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, startChild } from '../support/child.ts';
import type { CodeBlock } from '../support/documentation.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { LITESTREAM, requirePrograms } from '../support/required-programs.ts';
import { prepareServer, type RunningServer, type Server, startServer } from '../support/server-reader.ts';
import { verifyUnit } from '../support/systemd-unit.ts';

/*
 * The commands of docs/backup.md, in their order: backup, restore, move to another machine, and failover with Litestream.
 *
 *   primary ──Litestream──▶ replica ──restore──▶ standby, which the primary asks as its peer
 *      └──────────SMTP──────────▶ sinks ◀──────────┘
 */
const required = requirePrograms('curl', 'jq', 'rsync', 'systemd-analyze', 'litestream');

interface Held {
  messages: { messages: number }[];
}

describe.skipIf(required.missing)(`docs/backup.md${required.reason}`, () => {
  let primary: RunningServer;
  let standby: Server;
  let litestream: Child | null = null;
  beforeAll(async () => {
    const standbyApi = `127.0.0.1:${await freePort()}`;
    const programs = { litestream: `exec '${LITESTREAM}' "$@"` };
    primary = await startServer({
      // The new machine is a directory of this one.
      replace: { 'root@new.example.net:': '/var/tmp/new' },
      programs: {
        ...programs,
        rsync:
          'exec /usr/bin/rsync --mkpath $(for a in "$@"; do case $a in --chown=*) ;; *) echo "$a" ;; esac; done)',
        ssh: 'test "$*" = "root@new.example.net systemctl start postrider"',
      },
      services: {
        litestream: {
          start: async () => {
            const config = join(primary.root, 'etc/litestream.yml');
            litestream = startChild(LITESTREAM, ['replicate', '-config', config]);
          },
        },
      },
      settings: { 'standby.peers': [`http://${standbyApi}`] },
    });
    standby = await prepareServer({
      replace: { '127.0.0.1:8080': standbyApi, '/srv/': `${primary.root}/srv/` },
      programs,
      settings: { 'delivery.port': primary.reader.sink.port },
    });
    publishMailHost(standby.reader.dns, 'example.org', primary.reader.sink.host);
  });
  afterAll(async () => {
    await litestream?.kill('SIGKILL');
    await standby?.close();
    await primary?.close();
  });

  const receivedBy = (user: string) =>
    primary.reader.sink.messages.filter(({ to }) => to.includes(`${user}@example.org`)).length;
  /** Sends a message that the sink defers: unfinished at the next backup or copy. */
  async function defer(user: string): Promise<void> {
    primary.reader.sink.program({ recipients: { [`${user}@example.org`]: () => '451 4.2.0 later' } });
    const mail = { ...SHORT_MAIL, from: 'a@example.com', to: `${user}@example.org` };
    const { messageId } = (await primary.api.send(mail)).data;
    await eventually(
      'the message to be deferred',
      async () => (await primary.api.message(messageId)).status === 'deferred',
    );
  }
  async function heldAt(server: Server): Promise<number> {
    const held: Held = JSON.parse(await server.reader.run('postrider restore held --json'));
    return held.messages.reduce((sum, { messages }) => sum + messages, 0);
  }

  it('leads to a restored, moved and replicated installation that sends nothing twice', async () => {
    const { reader } = primary;
    await defer('first');
    const perform = async ({ text, language }: CodeBlock): Promise<boolean> => {
      if (language === 'ini') {
        expect(await verifyUnit(text)).toBe('');
        return true;
      }
      if (text.includes('postrider restore /var/backups')) {
        await reader.run(reader.adapted(text));
        expect(await heldAt(primary)).toBe(1);
        expect(existsSync(join(primary.root, 'var/lib/postrider.before/postrider.db'))).toBe(true);
        return true;
      }
      if (text.includes('restore release --account')) {
        expect(receivedBy('first')).toBe(0);
        reader.sink.program({ recipients: {} });
        await reader.run(reader.adapted(text));
        await eventually('the released message', () => receivedBy('first') === 1);
        return true;
      }
      if (text.includes('rsync')) {
        await reader.run(reader.adapted(text));
        await startMoved();
        await reader.serve();
        return true;
      }
      if (text.includes('litestream restore')) {
        await failover(text);
        return true;
      }
      return false;
    };
    await reader.follow('docs/backup.md', perform);
    expect(receivedBy('first')).toBe(1);
  });

  /** Starts the daemon of the new machine, which recognizes its data and holds nothing, and stops it. */
  async function startMoved(): Promise<void> {
    const { env } = primary.reader;
    const before = { ...env };
    env['POSTRIDER_DATA__DIR'] = JSON.stringify(
      primary.reader.adapted('root@new.example.net:/var/lib/postrider'),
    );
    await primary.reader.serve();
    expect(await heldAt(primary)).toBe(0);
    await primary.reader.run('systemctl stop postrider');
    delete env['POSTRIDER_DATA__DIR'];
    expect(env).toEqual(before);
  }

  /** The standby takes over with what Litestream has replicated; the primary, which still runs, stops. */
  async function failover(commands: string): Promise<void> {
    const { reader } = primary;
    await defer('second');
    const replica = reader.adapted('file:///srv/replica');
    await eventually(
      'Litestream to have replicated the message',
      async () => {
        const copy = join(primary.root, 'var/tmp', `probe-${Date.now()}.db`);
        const restored = await reader
          .run(
            `litestream restore -o '${copy}' '${replica}' && sqlite3 -readonly '${copy}' 'SELECT count(*) FROM messages'`,
          )
          .catch(() => '0');
        return Number(restored.trim()) >= 2;
      },
      { everyMs: 500 },
    );
    mkdirSync(standby.dataDir, { mode: 0o700 });
    copyFileSync(join(primary.dataDir, 'master.key'), join(standby.dataDir, 'master.key'));
    await standby.reader.run(standby.reader.adapted(commands));
    await eventually('the primary to stop', () => reader.log().includes('has taken over'));
    await reader.run('postrider serve', 4);
    reader.sink.program({ recipients: {} });
    expect(await heldAt(standby)).toBe(1);
    expect(receivedBy('second')).toBe(0);
    await standby.reader.run('postrider restore release --all --yes');
    await eventually('the released message', () => receivedBy('second') === 1);
  }
});
