import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { searchKeys } from '../../src/audience/search-key.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../../src/mail/identifier.ts';
import { TRANSFER_TYPES, type TransferKind, transferKind } from '../../src/store/transfer/kinds.ts';
import { enqueue, startStore } from '../support/store.ts';
import { ACCOUNT, accepted, type Installation, linesOf, startEmpty, startFull } from './setup.ts';

/** The records of a file in any order, without the values that depend on the installation. */
function recordsOf(file: string): string[] {
  return linesOf(file)
    .slice(1, -1)
    .map((line) =>
      JSON.stringify(line, (field, value) =>
        ['private_key', 'secret', 'signing_secret', 'headers'].includes(field) ? 'sealed' : value,
      ),
    )
    .toSorted();
}

let files = 0;

/** The settings of public pages. */
const PAGES = {
  name: 'Shop',
  logoUrl: null,
  colors: { accent: null, background: null },
  language: null,
  profileFields: [],
  texts: {},
};

/** Everything that an installation has of the account. Leaves it disabled. */
async function contentOf(installation: Installation): Promise<string[]> {
  const file = `content-${++files}.gz`;
  accepted(await installation.export(file, { withoutQueue: true }));
  return recordsOf(join(installation.dir, file));
}

/** A full account that was exported while it was in use, and imported elsewhere. */
async function moving() {
  const from = await startFull();
  const to = await startEmpty();
  const first = join(from.dir, 'first.gz');
  accepted(await from.export('first.gz', { part: 'first' }));
  accepted(await to.import(first, { portionRecords: 100 }));
  return { from, to, first };
}

/** Exports the difference; returns its file. */
async function difference(
  { dir, export: write }: Installation,
  name = `rest-${++files}.gz`,
): Promise<string> {
  accepted(await write(name, { part: 'difference', withoutQueue: true }));
  return join(dir, name);
}

const changes: Record<string, (from: Installation) => unknown> = {
  nothing: () => {},
  'the account, its limits and its pages': ({ db }) =>
    db.exec(`UPDATE accounts SET name = 'Other'; UPDATE account_limits SET domains = 7;
      INSERT INTO public_pages VALUES ('${ACCOUNT}', '${JSON.stringify(PAGES)}', 1)`),
  keys: ({ db }) =>
    db.exec(`UPDATE api_keys SET revoked_at = 1 WHERE key_id = 'key_one';
      INSERT INTO api_keys (key_id, account_id, name, hash, scopes, allow_ips, allow_from, created_at)
        VALUES ('key_two', '${ACCOUNT}', 'Two', x'${'ab'.repeat(32)}', '["setup"]', '[]', '[]', 2)`),
  'a domain that is registered again in another group': ({ db }) =>
    db.exec(`INSERT INTO domain_groups SELECT 'dgroup_new', account_id, 'New', description, color, icon, 0,
        created_at, updated_at FROM domain_groups LIMIT 1;
      UPDATE domains SET group_id = 'dgroup_new', status = 'FAILED';
      UPDATE dkim_keys SET changed_at = 5`),
  'names that are exchanged': ({ db }) =>
    db.exec(`INSERT INTO partials (partial_id, account_id, name, html, created_at, updated_at)
        VALUES ('partial_two', '${ACCOUNT}', 'other', '', 1, 1);
      UPDATE partials SET name = 'third' WHERE partial_id = 'partial_two';
      UPDATE partials SET name = 'other' WHERE name = 'header';
      UPDATE partials SET name = 'header' WHERE name = 'third'`),
  'templates, segments, routes and compliance templates': ({ db }) =>
    db.exec(`UPDATE templates SET html = '<p>Other</p>'; DELETE FROM segments; DELETE FROM inbound_routes;
      UPDATE compliance_templates SET html_content = '{{unsubscribe_url}}'`),
  'a webhook': ({ db }) => db.exec(`UPDATE webhooks SET url = 'https://other.example/'`),
  'a deleted webhook': ({ db }) => db.exec('DELETE FROM webhooks'),
  'a campaign': ({ db }) =>
    db.exec(`UPDATE campaigns SET name = 'Other'; UPDATE campaign_links SET clicks = 9;
      UPDATE campaign_counts SET delivered = 8; DELETE FROM campaign_variants`),
  'a deleted campaign': ({ db }) => db.exec('DELETE FROM campaigns'),
  'a sequence': ({ db }) =>
    db.exec(
      `UPDATE sequences SET status = 'paused', version = 1; DELETE FROM sequence_versions WHERE version = 2`,
    ),
  'a deleted sequence': ({ db }) => db.exec('UPDATE sequences SET deleted_at = 1'),
  'a group': ({ db }) => db.exec(`UPDATE subscription_groups SET name = 'Other'`),
  'a deleted group': ({ db }) => db.exec('UPDATE subscription_groups SET deleted_at = 1'),
  'a deleted image': ({ db }) => db.exec("DELETE FROM media; UPDATE media_contents SET state = 'deleting'"),
  'an image with another name': ({ db }) => db.exec("UPDATE media SET alt = 'Other'"),
  'fields of contacts': ({ db }) => db.exec(`UPDATE contacts SET custom_fields = '{"a":1}', language = NULL`),
  'contacts that exchange their addresses': ({ tables }) => {
    const [ada, bob] = ['ada', 'bob'].map((name) =>
      tables.contacts.byIdentifier(ACCOUNT, emailIdentifier(`${name}@example.net`)),
    );
    if (ada === undefined || ada === null || bob === undefined || bob === null)
      throw new Error('no such contact');
    const withEmail = (row: typeof ada, email: string) =>
      tables.contacts.update({ ...row, email, email_hash: emailIdentifier(email) });
    withEmail(ada, 'third@example.net');
    withEmail(bob, 'ada@example.net');
    withEmail(ada, 'bob@example.net');
  },
  'a contact that is erased': (installation) => removeContact(installation, 'zoe@example.net'),
  'a contact that is removed and added again': (installation) => {
    const { tables } = installation;
    const before = tables.contacts.byIdentifier(ACCOUNT, emailIdentifier('ada@example.net'));
    if (before === null) throw new Error('no such contact');
    removeContact(installation, 'ada@example.net');
    tables.contacts.insert({ ...before, user_id: 'user-again', consent_n: null });
  },
  consent: ({ db }) =>
    db.exec(`INSERT INTO consents SELECT contact_seq, 3, 'withdrawn', NULL, 'page', NULL, NULL, NULL, NULL, 9, 'recipient', NULL
        FROM consents WHERE n = 1;
      UPDATE contacts SET consent_n = NULL, global_status = 'unsubscribed'`),
  memberships: ({ db }) => db.exec('UPDATE subscriptions SET is_active = 1 - is_active'),
  'deleted memberships': ({ db }) => db.exec('DELETE FROM subscriptions'),
  engagement: ({ db }) =>
    db.exec('INSERT INTO contact_engagement (contact_seq, opened_at) SELECT seq, 5 FROM contacts'),
  'what contacts did with a campaign': ({ db }) =>
    db.exec('INSERT INTO campaign_contacts SELECT c.seq, t.seq, 3 FROM campaigns c, contacts t'),
  'people in sequences': ({ db }) => db.exec(`UPDATE sequence_people SET step = 2, due_at = 7`),
  'opt-outs': ({ db }) =>
    db.exec(`DELETE FROM group_opt_outs;
      INSERT INTO group_opt_outs SELECT seq, '${emailIdentifier('new@example.org')}', 'page', 3 FROM subscription_groups`),
  'suppressions and strikes': ({ db }) =>
    db.exec(`UPDATE suppressions SET email = NULL; DELETE FROM strikes;
      INSERT INTO suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
        VALUES ('${ACCOUNT}', '${emailIdentifier('new@example.org')}', 'mk', 'unsubscribe', NULL, NULL, 3);
      INSERT INTO strikes VALUES ('${ACCOUNT}', '${emailIdentifier('new@example.org')}', 'soft', 3)`),
  'a suppression that is removed': ({ db }) => db.exec('DELETE FROM suppressions'),
  'answers to requests': ({ db }) =>
    db.exec(`UPDATE idempotency SET body = '{}';
      INSERT INTO idempotency SELECT account_id, 'batch', 'a key', fingerprint, status, body, expires_at FROM idempotency`),
  'an answer that is removed': ({ db }) => db.exec('DELETE FROM idempotency'),
  counts: ({ db }) => db.exec('UPDATE message_counts SET messages = 9; DELETE FROM spam_rates'),
};

/** Gives every column and every list a value that an import without it would not write. */
function fill({ db, tables, clock }: Installation): void {
  const now = clock.now();
  const audience = JSON.stringify({ filter: { field: 'language', op: 'exists' } });
  db.exec(`
    UPDATE accounts SET abuse_email = 'abuse@example.com', logo_url = 'https://shop.example/logo.png';
    UPDATE account_limits SET domains = 1, webhooks = 2, templates = 3, contacts = 4, messages_per_hour = 5, messages_per_day = 6,
      concurrent_requests = 7, stored_bytes = 8000000, campaigns = 9, subscription_groups = 10, suppressions = 11;
    INSERT INTO public_pages VALUES ('${ACCOUNT}', '${JSON.stringify(PAGES)}', 1);
    UPDATE api_keys SET allow_from = '["a@example.com"]', strict_compliance = 1, simulates = 1, revoked_at = ${now}
      WHERE key_id = 'key_one';
    UPDATE domain_groups SET description = 'd', color = '#000000', icon = 'i';
    UPDATE domains SET tracking_domain = 'go.example.com', tracking_host = 'go.example.com', last_checked_at = 3,
      failing_since = 4, track_opens = 1, track_clicks = 1;
    UPDATE dkim_keys SET slot = 'a';
    UPDATE templates SET text = 't';
    UPDATE compliance_templates SET domain = 'example.com';
    UPDATE subscription_groups SET description = 'd', report_abuse_template_id = 'ctemplate_one',
      company_address_template_id = 'ctemplate_one';
    UPDATE webhooks SET description = 'd', is_active = 0, off_reason = 'failing', failing_since = 5,
      filter = '{"tags":["a"]}';
    UPDATE webhook_secrets SET expires_at = ${now + 1000};
    UPDATE campaigns SET description = 'd';
    UPDATE campaign_sends SET scheduled_at = 6, per_hour = 7, paused_reason = 'p', simulated = 1,
      without_email = 1, not_eligible = 2, not_renderable = 3, audience = '${audience}';
    UPDATE sequences SET paused_reason = 'p', missed = 2, offset_days = -1;
    UPDATE consents SET subscription_group_id = 'sgroup_1700000000000_abcdefghijkl';
    UPDATE subscriptions SET consent_details = 'd';
    INSERT INTO contact_engagement SELECT seq, 1, 2, 3, 4, 5, 6 FROM contacts;
    INSERT INTO campaign_contacts SELECT c.seq, t.seq, 3 FROM campaigns c, contacts t;
    UPDATE sequence_people SET state = 'ended', reason = 'completed', ended_at = 7, event_ended_at = 8`);
  for (const name of ['ada', 'bob', 'zoe']) {
    const contact = tables.contacts.byIdentifier(ACCOUNT, emailIdentifier(`${name}@example.net`));
    if (contact === null) throw new Error('no such contact');
    const phone = `+4930123456${contact.seq}`;
    const filled = { ...contact, phone, phone_hash: phoneIdentifier(phone), last_name: 'L' };
    tables.contacts.update({ ...filled, erasure_requested_at: 9, source: 'import', ...searchKeys(filled) });
  }
}

/** The names of columns that no record in the file has a value for, and of lists that every record has empty. */
function emptyFields(file: string): string[] {
  const isFilled = new Map<string, boolean>();
  const visit = (path: string, record: object) => {
    for (const [field, value] of Object.entries(record)) {
      const name = `${path}.${field}`;
      const has = Array.isArray(value) ? value.length > 0 : value !== null;
      isFilled.set(name, has || isFilled.get(name) === true);
      if (Array.isArray(value)) for (const row of value) visit(name, row);
    }
  };
  for (const { type, record } of linesOf(file).slice(1, -1))
    if (typeof type === 'string' && typeof record === 'object' && record !== null) visit(type, record);
  return [...isFilled].filter(([, has]) => !has).map(([name]) => name);
}

function removeContact({ tables }: Installation, email: string): void {
  const seq = tables.contacts.byIdentifier(ACCOUNT, emailIdentifier(email))?.seq ?? 0;
  tables.subscriptions.removeOfContact(seq);
  tables.sequencePeople.removeOfContact(seq);
  tables.consents.removeAll(seq);
  tables.contacts.remove(seq);
}

describe('a first file and its difference', () => {
  it.each(Object.entries(changes))('bring %s', async (_, change) => {
    const { from, to } = await moving();
    change(from);
    accepted(await to.import(await difference(from), { portionRecords: 100 }));
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it.each(['difference', 'whole'] as const)('bring every column by a %s file', async (part) => {
    const { from, to } = await moving();
    fill(from);
    accepted(await from.export('filled.gz', { part, withoutQueue: true }));
    accepted(await to.import(join(from.dir, 'filled.gz'), { portionRecords: 100 }));
    accepted(await from.export('all.gz', { withoutQueue: true }));
    expect(emptyFields(join(from.dir, 'all.gz'))).toEqual([]);
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it('bring everything at once, also after interruptions at any place', async () => {
    const { from, to } = await moving();
    for (const change of Object.values(changes)) change(from);
    const file = await difference(from);
    const expected = await contentOf(from);
    let isComplete = false;
    for (let cut = 1; !isComplete; cut += 4) {
      let commits = cut;
      const failing = to.withWriter((unit, share) => {
        if (commits-- > 0) return to.writer.run(unit, share);
        return Promise.reject(new Error('killed'));
      });
      await failing.import(file).catch(() => null);
      isComplete = to.tables.accountImports.get(ACCOUNT) === null;
      const enabled = await createAccounts(to).setStatus(ACCOUNT, 'active');
      if (!isComplete) expect(isRefusal(enabled) && enabled.message).toMatch(/is not complete/);
    }
    expect(await contentOf(to)).toEqual(expected);
  });

  it('write changed contacts over their rows, so that their entries in the search index stay', async () => {
    const { from, to } = await moving();
    changes['fields of contacts']?.(from);
    removeContact(from, 'zoe@example.net');
    const seqs = () =>
      ['ada', 'bob', 'zoe'].map((name) =>
        to.tables.contacts.seqOf(ACCOUNT, emailIdentifier(`${name}@example.net`)),
      );
    const [ada, bob] = seqs();
    accepted(await to.import(await difference(from)));
    expect(seqs()).toEqual([ada, bob, null]);
  });

  it('bring the messages that were sent meanwhile, and those in the queue', async () => {
    const { from, to } = await moving();
    const { message_id: id } = enqueue(from.tables, from.clock.now(), { message_id: from.ids.make('msg') });
    const file = await difference(from);
    const moved = linesOf(file).filter(({ type }) => type === 'moved_message');
    expect(moved).toMatchObject([{ record: { message_id: id } }]);
    accepted(await to.import(file));
    expect(to.tables.movedMessages.byId(id)).toMatchObject({ account_id: ACCOUNT });
    expect(to.tables.movedMessages.byId(from.message.message_id)).toMatchObject({ account_id: ACCOUNT });
  });

  it('leave nothing of a contact that was erased, and have few records', async () => {
    const { from, to } = await moving();
    removeContact(from, 'zoe@example.net');
    const file = await difference(from);
    expect(linesOf(file).some(({ type }) => type === 'contact')).toBe(false);
    expect(JSON.stringify(linesOf(file))).not.toContain('zoe');
    accepted(await to.import(file));
    expect(to.tables.contacts.byIdentifier(ACCOUNT, emailIdentifier('zoe@example.net'))).toBeNull();
    expect(to.tables.accountLimits.count('contacts', ACCOUNT)).toBe(2);
  });

  it('can be written again when the account was enabled in between', async () => {
    const { from, to } = await moving();
    changes['suppressions and strikes']?.(from);
    await difference(from);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    changes['memberships']?.(from);
    accepted(await to.import(await difference(from)));
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it('are imported in this order only, and belong together', async () => {
    const { from, to, first } = await moving();
    const refused = async (file: string, at = to) => {
      const result = await at.import(file);
      return isRefusal(result) && result.message;
    };
    expect(await refused(first)).toMatch(/is imported: import its difference/);
    const rest = await difference(from);
    expect(await refused(rest, await startEmpty())).toMatch(/import its first file before/);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    accepted(await from.export('second.gz', { part: 'first' }));
    const other = await difference(from);
    expect(await refused(other)).toMatch(/does not belong to the first file/);
    // The newer first file replaces the earlier one.
    accepted(await to.import(join(from.dir, 'second.gz')));
    accepted(await to.import(other));
    expect(await refused(other)).toMatch(/import its first file before/);
    expect(await contentOf(to)).toEqual(await contentOf(from));
  });

  it('need each other: without a complete first file nothing is exported, and the account stays enabled', async () => {
    const from = await startFull();
    const refused = await from.export('rest.gz', { part: 'difference', withoutQueue: true });
    expect(isRefusal(refused) && refused.message).toMatch(/has no complete first file/);
    const stop = new AbortController();
    stop.abort(new Error('stopped'));
    await expect(from.export('first.gz', { part: 'first', signal: stop.signal })).rejects.toThrow();
    expect(isRefusal(await from.export('rest.gz', { part: 'difference', withoutQueue: true }))).toBe(true);
    expect(from.tables.accounts.get(ACCOUNT)).toMatchObject({ status: 'active', moved_at: null });
  });
});

describe('an account that returns', () => {
  /** An account that was moved, is in use at its new place, and is exported from there. */
  async function away() {
    const { from, to } = await moving();
    accepted(await to.import(await difference(from)));
    accepted(await createAccounts(to).setStatus(ACCOUNT, 'active'));
    return { from, to };
  }

  it('replaces the copy that it left, whose messages stay', async () => {
    const { from, to } = await away();
    accepted(await to.export('back.gz', { part: 'first' }));
    accepted(await from.import(join(to.dir, 'back.gz'), { portionRecords: 100 }));
    for (const change of Object.values(changes)) change(to);
    accepted(await from.import(await difference(to)));
    const expected = await contentOf(to);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    expect(await contentOf(from)).toEqual(expected);
    expect(from.tables.messages.byId(from.message.message_id)).not.toBeNull();
    expect(from.tables.movedMessages.byId(from.message.message_id)).toBeNull();
    // A key for the whole installation does not belong to the account.
    expect(from.tables.apiKeys.get('key_operator')).not.toBeNull();
    expect(from.tables.accountMoves.get(ACCOUNT)).toBeNull();
  });

  it('replaces it after interruptions at any place, and the copy cannot be removed or enabled', async () => {
    const { from, to } = await away();
    for (const change of Object.values(changes)) change(to);
    accepted(await to.export('back.gz'));
    const file = join(to.dir, 'back.gz');
    let isComplete = false;
    for (let cut = 1; !isComplete; cut += 5) {
      let commits = cut;
      const failing = from.withWriter((unit, share) => {
        if (commits-- > 0) return from.writer.run(unit, share);
        return Promise.reject(new Error('killed'));
      });
      await failing.import(file).catch(() => null);
      isComplete = cut > 1 && from.tables.accountImports.get(ACCOUNT) === null;
      if (from.tables.accountImports.get(ACCOUNT) === null) continue;
      const enabled = await createAccounts(from).setStatus(ACCOUNT, 'active');
      expect(isRefusal(enabled) && enabled.message).toMatch(/is not complete/);
      const cancelled = await from.cancel();
      expect(isRefusal(cancelled) && cancelled.message).toMatch(/replaces its former copy/);
    }
    const expected = await contentOf(to);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    expect(await contentOf(from)).toEqual(expected);
  });

  it('replaces it with a newer file when the import of an earlier one was not completed', async () => {
    const { from, to } = await away();
    accepted(await to.export('back.gz', { part: 'first' }));
    let commits = 12;
    const failing = from.withWriter((unit, share) =>
      commits-- > 0 ? from.writer.run(unit, share) : Promise.reject(new Error('killed')),
    );
    await expect(failing.import(join(to.dir, 'back.gz'))).rejects.toThrow('killed');
    for (const change of Object.values(changes)) change(to);
    accepted(await to.export('newer.gz'));
    expect(accepted(await from.import(join(to.dir, 'newer.gz')))).toMatchObject({ resumed: false });
    const expected = await contentOf(to);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    expect(await contentOf(from)).toEqual(expected);
  });

  it('does not replace an account that is in use', async () => {
    const { from, to } = await away();
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'active'));
    accepted(await to.export('back.gz'));
    const refused = await from.import(join(to.dir, 'back.gz'));
    expect(isRefusal(refused) && refused.message).toMatch(/account acct_one already exists/);
    accepted(await createAccounts(from).setStatus(ACCOUNT, 'disabled'));
    expect(isRefusal(await from.import(join(to.dir, 'back.gz')))).toBe(true);
  });
});

describe('what arrives at the former place of an account', () => {
  it('is added where it is now, and nothing that was changed there is lost', async () => {
    const { from, to } = await moving();
    accepted(await to.import(await difference(from)));
    accepted(await createAccounts(to).setStatus(ACCOUNT, 'active'));
    changes['suppressions and strikes']?.(to);
    from.clock.advance(1000);
    const at = from.clock.now();
    const add = { account_id: ACCOUNT, stream: 'all', message_seq: null, created_at: at } as const;
    const recipient = { recipient_hash: emailIdentifier('late@example.org'), email: 'late@example.org' };
    from.tables.suppressions.add({ ...add, ...recipient, reason: 'complaint' });
    from.db.exec(
      `INSERT INTO group_opt_outs SELECT seq, '${emailIdentifier('ada@example.net')}', 'one_click', ${at} FROM subscription_groups`,
    );
    accepted(await from.export('late.gz', { part: 'late' }));
    const file = join(from.dir, 'late.gz');
    expect(accepted(await to.import(file, { dryRun: true })).added).toBe(0);
    expect(accepted(await to.import(file)).added).toBe(2);
    expect(accepted(await to.import(file)).added).toBe(0);
    expect(to.tables.suppressions.of(ACCOUNT, recipient.recipient_hash)).toMatchObject([
      { reason: 'complaint', email: 'late@example.org' },
    ]);
    const ada = to.tables.contacts.byIdentifier(ACCOUNT, emailIdentifier('ada@example.net'));
    expect(to.tables.consents.history(ada?.seq ?? 0, null, 10)[0]).toMatchObject({
      action: 'left_group',
      method: 'one_click',
      recorded_at: at,
    });
    expect(to.tables.suppressions.of(ACCOUNT, emailIdentifier('new@example.org'))).toHaveLength(1);
  });

  it('is exported only where the account was, and imported only where it is', async () => {
    const { from, to } = await moving();
    const early = await from.export('late.gz', { part: 'late' });
    expect(isRefusal(early) && early.message).toMatch(/was not moved away/);
    await difference(from);
    accepted(await from.export('late.gz', { part: 'late' }));
    for (const installation of [from, to, await startEmpty()]) {
      const refused = await installation.import(join(from.dir, 'late.gz'));
      expect(isRefusal(refused) && refused.message).toMatch(/is not at home on this machine/);
    }
  });
});

it('notes every insertion, change and deletion in the tables of which a difference has only the changed rows', () => {
  const { db } = startStore();
  const tables = TRANSFER_TYPES.flatMap((type) => {
    const kind: TransferKind = transferKind(type);
    // Contents do not change.
    if (kind.changed === undefined || type === 'media_content') return [];
    return [kind.table, ...Object.values(kind.children ?? {}).map(({ table }) => table)];
  });
  expect(tables).toHaveLength(10);
  const events = db
    .prepare<[], { tbl_name: string; sql: string }>(
      "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'moving_*'",
    )
    .all()
    .map(({ tbl_name: table, sql }) => `${/AFTER (\w+)/.exec(sql)?.[1]} ${table}`);
  const expected = tables.flatMap((table) =>
    ['INSERT', 'UPDATE', 'DELETE'].map((event) => `${event} ${table}`),
  );
  expect(events.toSorted()).toEqual(expected.toSorted());
});
