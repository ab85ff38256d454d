import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { signingSecretSealContext } from '../../src/accounts/keys.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSigningKeys } from '../../src/domains/signing-keys.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { sentMailOf } from '../../src/mail/sent-mail.ts';
import { clickTokens } from '../../src/mail/tokens.ts';
import { createWebhookSecrets } from '../../src/webhooks/secrets.ts';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { enqueue, insertAccount, insertDomain, temporaryDir } from '../support/store.ts';
import {
  ACCOUNT,
  accepted,
  forge,
  type Installation,
  type InstallationOptions,
  linesOf,
  startEmpty,
  startFull,
  WEBHOOK_HEADERS,
} from './setup.ts';

/** The records of a file, without the values that depend on the installation. */
function comparable(file: string): unknown[] {
  return linesOf(file)
    .slice(1, -1)
    .map((line) =>
      JSON.parse(
        JSON.stringify(line, (field, value) =>
          ['private_key', 'secret', 'signing_secret', 'headers'].includes(field) ? 'sealed' : value,
        ),
      ),
    );
}

/** An exported account with all kinds of records. */
async function exported(
  options: InstallationOptions = {},
): Promise<{ file: string; from: Awaited<ReturnType<typeof startFull>> }> {
  const from = await startFull(options);
  from.tables.queue.remove(from.message.seq);
  accepted(await from.export('account.gz'));
  return { file: join(from.dir, 'account.gz'), from };
}

/** The number of rows of each table that has rows, without the search index, which cannot be counted, and numbers, which stay assigned. */
function traces({ db }: Installation): Record<string, number> {
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'contact_search*' AND name NOT GLOB '*_numbers'",
    )
    .pluck()
    .all();
  const counts = tables.map((table): [string, number] => [
    table,
    db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0,
  ]);
  return Object.fromEntries(counts.filter(([, rows]) => rows > 0));
}

describe('an exported account', () => {
  it('is the same in another installation', async () => {
    const { file, from } = await exported({ withScrypt: true });
    const to = await startEmpty(2, { withScrypt: true });
    const { header, resumed } = accepted(await to.import(file));
    expect(resumed).toBe(false);
    expect(header.counts).toMatchObject({ account: 1, api_key: 1, contact: 3, moved_message: 1 });
    expect(to.tables.accounts.get(ACCOUNT)?.status).toBe('disabled');
    expect(to.tables.accountImports.get(ACCOUNT)).toBeNull();
    accepted(await to.export('again.gz'));
    expect(comparable(join(to.dir, 'again.gz'))).toEqual(comparable(file));
    expect(header.counts).toEqual(linesOf(join(to.dir, 'again.gz'))[0]?.['counts']);
    // Every kind of record occurs.
    expect(Object.entries(header.counts).filter(([, count]) => count === 0)).toEqual([]);
    expect(from.tables.accounts.get(ACCOUNT)?.status).toBe('disabled');
  });

  it('has its counts, consent, keys, secrets and search in another installation', async () => {
    const { file, from } = await exported();
    const to = await startEmpty();
    accepted(await to.import(file));
    const { tables } = to;
    const group = tables.subscriptionGroups.get(ACCOUNT, 'sgroup_1700000000000_abcdefghijkl');
    expect(group).toMatchObject({ total_subscribers: 3, active_subscribers: 2 });
    const contact = tables.contacts.byIdentifier(ACCOUNT, emailIdentifier('ada@example.net'));
    expect(contact).toMatchObject({ consent_method: 'double_opt_in', consent_n: 2, email_key: 'ada@exam' });
    expect(tables.consents.history(contact?.seq ?? 0, null, 10)).toHaveLength(2);
    const [key] = createSigningKeys(
      { tables, seal: to.seal },
      { hostname: 'mail.example', signs: false, keyPolicy: { ed25519: false, rotationMs: null } },
    )('domain_one', 'primary');
    expect(key?.key.export({ type: 'pkcs8', format: 'pem' })).toBe(
      RSA_KEY.export({ type: 'pkcs8', format: 'pem' }),
    );
    const webhook = tables.webhooks.list(ACCOUNT)[0] ?? { number: 0, webhook_id: '', headers: null };
    const secrets = createWebhookSecrets({ seal: to.seal, random: systemRandom });
    expect(secrets.keys(tables, webhook, to.clock.now())).toEqual([Buffer.alloc(32, 9)]);
    expect(secrets.headers(webhook)).toEqual(WEBHOOK_HEADERS);
    expect(tables.apiKeys.list(ACCOUNT).map(({ hash }) => hash)).toEqual([
      from.tables.apiKeys.get('key_one')?.hash,
    ]);
    const secret = tables.apiKeys.bySigner('key_one')?.signing_secret ?? Buffer.alloc(0);
    expect(to.seal.open(secret, signingSecretSealContext('key_one')).toString()).toBe('secret');
    expect(tables.accountLimits.count('contacts', ACCOUNT)).toBe(3);
    expect(tables.domains.byId('domain_one')).toMatchObject({
      status: 'SUCCESS',
      alt_status: 'PENDING',
      next_check_at: to.clock.now(),
    });
  });

  it('accepts the tokens of mail that was sent before', async () => {
    const { file, from } = await exported();
    const { message } = from;
    const to = await startEmpty();
    const sent = from.tokens.of(ACCOUNT);
    expect(to.tokens.returnPath(sent.returnPath(message.message_id))).toBeNull();
    accepted(await to.import(file));
    expect(to.tokens.returnPath(sent.returnPath(message.message_id))).toBe(message.message_id);
    expect(to.tokens.unsubscribeUrl(sent.unsubscribeUrl(sentMailOf(message)))).toEqual(sentMailOf(message));
    const click = clickTokens(sent.click, message.message_id, 'link.example.com')('https://shop.example/');
    expect(to.tokens.click(click, 'link.example.com')).toMatchObject({ url: 'https://shop.example/' });
    expect(to.tokens.of(ACCOUNT).signedId(message.message_id)).toBe(sent.signedId(message.message_id));
    // Also in a third installation.
    accepted(await to.export('second.gz'));
    const third = await startEmpty(3);
    accepted(await third.import(join(to.dir, 'second.gz')));
    expect(third.tokens.returnPath(sent.returnPath(message.message_id))).toBe(message.message_id);
  });

  it('has no key for the whole installation, and no secret that is not sealed', async () => {
    const { file, from } = await exported();
    const text = JSON.stringify(linesOf(file));
    expect(text).not.toContain('key_operator');
    expect(text).not.toContain(WEBHOOK_HEADERS.Authorization);
    const secret = RSA_KEY.export({ type: 'pkcs8', format: 'der' });
    for (const bytes of [secret.subarray(100, 160), Buffer.alloc(30, 9)])
      expect(text).not.toContain(bytes.toString('base64').slice(0, 30));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(from.dir).filter((name) => name.includes('partial'))).toEqual([]);
  });
});

describe('an export', () => {
  it('is refused while messages are queued, unless this installation sends them', async () => {
    const from = await startFull();
    enqueue(from.tables, from.clock.now());
    const refused = await from.export('a.gz');
    expect(isRefusal(refused) && refused.message).toMatch(/has 1 message in the queue.*--without-queue/);
    expect(from.tables.accounts.get(ACCOUNT)?.status).toBe('active');
    expect(from.tables.domains.sendingStop('domain_one')).toBeNull();
    expect(accepted(await from.export('a.gz', { withoutQueue: true }))).toMatchObject({
      queued: 1,
      disabled: true,
    });
    expect(from.tables.accounts.get(ACCOUNT)?.status).toBe('disabled');
    // This installation sends what it has accepted.
    expect(from.tables.domains.sendingStop('domain_one')).toBeNull();
    await createAccounts(from).setStatus(ACCOUNT, 'active');
    await createAccounts(from).setStatus(ACCOUNT, 'disabled');
    expect(from.tables.domains.sendingStop('domain_one')).toBe('account_disabled');
  });

  it('is refused while a campaign is being sent or a person is being erased', async () => {
    const from = await startFull();
    from.tables.erasures.begin({ account_id: ACCOUNT, person: '{}', created_at: 0 });
    const erasing = await from.export('a.gz', { withoutQueue: true });
    expect(isRefusal(erasing) && erasing.message).toMatch(/being erased/);
    const send = from.tables.campaignSends.get(1);
    if (send === null) throw new Error('there is no send');
    from.tables.campaignSends.update({ ...send, open: 1 });
    from.db.exec('UPDATE campaign_sends SET open = 1');
    const running = await from.export('a.gz', { withoutQueue: true });
    expect(isRefusal(running) && running.message).toMatch(/Campaign campaign_\S+ is sent: wait/);
    expect(existsSync(join(from.dir, 'a.gz'))).toBe(false);
  });

  it('enables the account again when the file cannot be written', async () => {
    const { file, from } = await exported();
    await createAccounts(from).setStatus(ACCOUNT, 'active');
    const before = readFileSync(file);
    const progress: number[] = [];
    const onProgress = (done: number) => void progress.push(done);
    await expect(from.export('account.gz', { onProgress })).rejects.toThrow(/account\.gz already exists/);
    expect(progress).toEqual([]);
    expect(readFileSync(file).equals(before)).toBe(true);
    await expect(from.export('missing/account.gz')).rejects.toThrow(/cannot be written/);
    await expect(from.export('b.gz', { passphrase: 'short' })).rejects.toThrow(/at least 16 characters/);
    expect(from.tables.accounts.get(ACCOUNT)?.status).toBe('active');
    expect(readdirSync(from.dir)).not.toContain('account.gz.partial');
  });
});

describe('an import', () => {
  it('names everything that is in conflict, and changes nothing', async () => {
    const { file } = await exported();
    const to = await startEmpty();
    insertAccount(to.tables, 'acct_two', to.clock.now());
    insertDomain(
      to.tables,
      { account_id: 'acct_two', domain_id: 'domain_two', name: 'example.com' },
      to.clock.now(),
    );
    const before = traces(to);
    const refused = await to.import(file);
    expect(isRefusal(refused) && refused.message).toMatch(
      /domain example\.com is registered by account acct_two/,
    );
    insertAccount(to.tables, ACCOUNT, to.clock.now());
    const twice = await to.import(file, { dryRun: true });
    expect(isRefusal(twice) && twice.message).toMatch(/account acct_one already exists; domain example\.com/);
    expect({ ...before, accounts: 2, domain_groups: 2 }).toEqual(traces(to));
  });

  it('with --dry-run checks everything and imports nothing', async () => {
    const { file } = await exported();
    const to = await startEmpty();
    const before = traces(to);
    accepted(await to.import(file, { dryRun: true }));
    expect(traces(to)).toEqual(before);
  });

  it('continues where it was interrupted, and can be removed', async () => {
    const { file } = await exported();
    const to = await startEmpty();
    const before = traces(to);
    const stop = new AbortController();
    const interrupted = to.import(file, {
      signal: stop.signal,
      onProgress: (step) => {
        if (step === 'import') stop.abort(new Error('stopped'));
      },
    });
    await expect(interrupted).rejects.toThrow('stopped');
    expect(traces(to)).toEqual(before);
    const { header } = accepted(await to.import(file, { dryRun: true }));
    // As a process that was killed leaves it: some of the records, and the position.
    const total = Object.values(header.counts).reduce((sum, count) => sum + count, 0);
    for (let cut = 1; cut < total; cut += 3) {
      await expect((async () => accepted(await failAfter(to, cut).import(file)))()).rejects.toThrow(
        /is not complete \(killed\): run the command again/,
      );
      const enabled = await createAccounts(to).setStatus(ACCOUNT, 'active');
      expect(isRefusal(enabled) && enabled.message).toMatch(/import of account acct_one is not complete/);
      if (cut % 2 === 0) {
        expect(await to.cancel()).toBeGreaterThan(0);
        expect(traces(to)).toEqual(before);
        continue;
      }
      expect(accepted(await to.import(file)).resumed).toBe(true);
      expect(to.tables.accountLimits.count('contacts', ACCOUNT)).toBe(3);
      accepted(await to.export(`again-${cut}.gz`));
      expect(comparable(join(to.dir, `again-${cut}.gz`))).toEqual(comparable(file));
      await to.writer.run((tx) =>
        tx.accountImports.put({
          account_id: ACCOUNT,
          digest: '',
          records: 0,
          started_at: 0,
          updated_at: 0,
          move_id: null,
        }),
      );
      await to.cancel();
      expect(traces(to)).toEqual(before);
    }
  });

  it('of another file does not continue an interrupted one', async () => {
    const { file, from } = await exported();
    accepted(await from.export('later.gz'));
    const to = await startEmpty();
    await expect((async () => accepted(await failAfter(to, 2).import(file)))()).rejects.toThrow(
      /is not complete/,
    );
    const refused = await to.import(join(from.dir, 'later.gz'));
    expect(isRefusal(refused) && refused.message).toMatch(/from another file is not complete/);
    const unknown = await to.cancel('acct_two');
    expect(isRefusal(unknown) && unknown.message).toMatch(/No import of account acct_two/);
  });
});

/** The installation with a writer that commits one record at a time and fails after `commits` of them. */
function failAfter(to: Installation, commits: number): Pick<Installation, 'import'> {
  return to.withWriter((unit, share) => {
    if (commits-- > 0) return to.writer.run(unit, share);
    return Promise.reject(new Error('killed'));
  });
}

describe('an invalid file', () => {
  const damage: [string, RegExp, (content: Buffer) => Buffer][] = [
    ['empty', /unexpected end of file/, () => Buffer.alloc(0)],
    ['not gzip', /incorrect header check/, () => Buffer.from('{"format":"postrider-account"}\n')],
    ['cut off', /unexpected end of file/, (content) => content.subarray(0, content.length - 40)],
    ['another format', /is not an exported account/, () => gzipSync('{"format":"other"}\n')],
    ['of a newer version', /newer version/, () => gzipSync('{"format":"postrider-account","version":2}\n')],
    ['not JSON', /line 1 is not a JSON object/, () => gzipSync('hello\n')],
    [
      'one line that is too long',
      /has a line that is longer than/,
      () => gzipSync(Buffer.alloc(40 * 2 ** 20, 0x20)),
    ],
  ];
  it.each(damage)('(%s) is refused, and changes nothing', async (_, message, change) => {
    const { file } = await exported();
    const to = await startEmpty();
    const before = traces(to);
    const damaged = join(temporaryDir(), 'damaged.gz');
    writeFileSync(damaged, change(readFileSync(file)));
    await expect(to.import(damaged)).rejects.toThrow(message);
    expect(traces(to)).toEqual(before);
  });

  it('that was changed by someone without the passphrase is refused', async () => {
    const { file } = await exported();
    const to = await startEmpty();
    const before = traces(to);
    const changed = join(temporaryDir(), 'changed.gz');
    const text = linesOf(file).map((line) => JSON.stringify(line));
    writeFileSync(changed, gzipSync(`${text.join('\n').replace('Zürich', 'Genève')}\n`));
    await expect(to.import(changed)).rejects.toThrow(/checksum does not match/);
    await expect(to.import(file, { passphrase: 'the wrong passphrase' })).rejects.toThrow(
      /passphrase does not match/,
    );
    await expect(to.import(temporaryDir())).rejects.toThrow(/is not a regular file/);
    await expect(to.import('/nowhere/x.gz')).rejects.toThrow(/x\.gz does not exist/);
    expect(traces(to)).toEqual(before);
  });

  type Line = Record<string, unknown>;
  const recordOf = (line: Line | undefined) => (line?.['record'] ?? {}) as Line; // as exported
  const edit =
    (type: string, changes: Line) =>
    (lines: Line[]): Line[] => {
      const at = lines.findIndex((line) => line['type'] === type);
      return lines.map((line, index) =>
        index === at ? { ...line, record: { ...recordOf(line), ...changes } } : line,
      );
    };
  const repeat =
    (type: string, changes: Line = {}) =>
    (lines: Line[]): Line[] => {
      const at = lines.findIndex((line) => line['type'] === type);
      const counts = { ...(lines[0]?.['counts'] as Record<string, number>) }; // the header
      counts[type] = (counts[type] ?? 0) + 1;
      return [
        { ...lines[0], counts },
        ...lines.slice(1, at + 1),
        { ...lines[at], record: { ...recordOf(lines[at]), ...changes } },
        ...lines.slice(at + 1),
      ];
    };
  const hostile: [string, RegExp, (lines: Line[]) => Line[]][] = [
    [
      'has too few records',
      /fewer records of type contact/,
      (lines) => lines.filter((line) => recordOf(line)['user_id'] !== 'user-bob'),
    ],
    [
      'has too many records',
      /more records of type strike/,
      (lines) => lines.flatMap((line) => (line['type'] === 'strike' ? [line, line] : [line])),
    ],
    [
      'is in another order',
      /is out of order/,
      (lines) => [...lines.slice(0, 1), ...lines.slice(1).toReversed()],
    ],
    [
      'has an unknown type',
      /unknown type "message"/,
      (lines) => lines.map((line) => (line['type'] === 'strike' ? { ...line, type: 'message' } : line)),
    ],
    ['has an unknown column', /Unrecognized key: "account_id"/, edit('contact', { account_id: 'acct_two' })],
    ['has a path as id', /is not an id/, edit('template', { template_id: '../../etc/passwd' })],
    ['has a path as account', /accountId/, edit('account', {})],
    [
      'has a key for the whole installation',
      /scopes: is not JSON of/,
      edit('api_key', { scopes: '["operator"]' }),
    ],
    ['has an id twice', /template .* occurs twice/, repeat('template')],
    [
      'has an address twice',
      /identifier email_\S+ occurs twice/,
      repeat('contact', { user_id: 'user-other' }),
    ],
    ['has a message twice', /message msg_\S+ occurs twice/, repeat('moved_message')],
    [
      'is compressed too much',
      /is compressed more than 250 times/,
      (lines) =>
        [1, 2, 3, 4, 5, 6].reduce(
          (tx, number) =>
            repeat('template', { template_id: `large_${number}`, html: ' '.repeat(15 * 2 ** 20) })(tx),
          lines,
        ),
    ],
    ['has two accounts', /it has 2 accounts/, repeat('account')],
    ['has the hash of another address', /hash of contact/, edit('contact', { email: 'eve@example.net' })],
    [
      'refers to a group of another account',
      /subscription group sgroup_x is not in/,
      edit('group_opt_out', { group_seq: 'sgroup_x' }),
    ],
    [
      'refers to a domain group of another account',
      /domain group dgroup_two/,
      edit('domain', { group_id: 'dgroup_two' }),
    ],
    ['registers a public suffix', /co\.uk cannot be registered/, edit('domain', { name: 'co.uk' })],
    [
      'calls a private address',
      /must not have the address 127\.0\.0\.1/,
      edit('webhook', { url: 'http://127.0.0.1/' }),
    ],
    ['has a running campaign', /status/, edit('campaign', { status: 'sending' })],
    [
      'has a secret of another row',
      /the secret webhook:webhook_two cannot be opened/,
      edit('webhook', { webhook_id: 'webhook_two' }),
    ],
    [
      'has the signing secret of another key',
      /the secret signing-secret:key_two cannot be opened/,
      edit('api_key', { key_id: 'key_two' }),
    ],
    [
      'has a signing secret that is not that of the key',
      /secret of API key key_one does not match its hash/,
      edit('api_key', { hash: Buffer.alloc(32, 1).toString('base64') }),
    ],
    [
      'has a time that is not a number',
      /created_at/,
      edit('contact', { created_at: '1; DROP TABLE contacts' }),
    ],
    ['has lines after the end', /follows the end|checksum/, (lines) => lines],
  ];
  it.each(hostile)('that %s is refused, and changes nothing', async (title, message, change) => {
    const { file } = await exported();
    const to = await startEmpty();
    const before = traces(to);
    const forged = join(temporaryDir(), 'forged.gz');
    const lines = linesOf(file);
    const [header] = lines;
    if (title === 'has a path as account') lines[0] = { ...header, accountId: '../../etc' };
    await forge(forged, change(lines));
    if (title === 'has lines after the end') {
      const text = linesOf(forged).map((line) => JSON.stringify(line));
      writeFileSync(forged, gzipSync(`${[...text, text[1]].join('\n')}\n`));
    }
    await expect(to.import(forged)).rejects.toThrow(message);
    expect(traces(to)).toEqual(before);
  });

  it('that has messages of another account is refused', async () => {
    const { file } = await exported();
    const to = await startEmpty();
    insertAccount(to.tables, 'acct_two', to.clock.now());
    const { message_id: id } = enqueue(to.tables, to.clock.now(), {
      account_id: 'acct_two',
      message_id: to.ids.make('msg'),
    });
    const before = traces(to);
    const forged = await forge(
      join(temporaryDir(), 'forged.gz'),
      edit('moved_message', { message_id: id })(linesOf(file)),
    );
    const refused = await to.import(forged);
    expect(isRefusal(refused) && refused.message).toContain(`message ${id} already exists`);
    expect(traces(to)).toEqual(before);
  });
});
