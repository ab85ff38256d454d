import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { importFile } from '../../../src/audience/import/file.ts';
import { createImporter, type ImportCounts } from '../../../src/audience/import/import.ts';
import { openSource } from '../../../src/audience/import/source.ts';
import { eventLoopTurns } from '../../../src/core/concurrency/slices.ts';
import { isRefusal, refuse } from '../../../src/core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../../../src/mail/identifier.ts';
import { PartlyDone, storageFailure } from '../../../src/store/database/failure.ts';
import { granted } from '../../support/refusal.ts';
import { CALLER, codeOf, startAudience } from '../setup.ts';

type AudienceSetup = Awaited<ReturnType<typeof startAudience>>;

async function* chunks(text: string, size = 100) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function importText(
  setup: AudienceSetup,
  text: string,
  input: { format?: 'csv' | 'ndjson'; groupId?: string; account?: string; pauseShare?: number } = {},
) {
  const source = await openSource(chunks(text), input.format ?? 'csv');
  if (typeof source === 'string') return { refused: source };
  if (isRefusal(source)) return { refused: source.message };
  const result = await setup.importer.run({
    accountId: input.account ?? 'acct_one',
    groupId: input.groupId ?? null,
    actor: CALLER,
    reader: source.reader,
    records: source.records,
    signal: new AbortController().signal,
    batchRows: 500,
    pauseShare: input.pauseShare ?? 0,
  });
  return isRefusal(result) ? { refused: result.code } : { ...result, ignored: [...source.reader.ignored] };
}

const counts = (given: Partial<ImportCounts>): Partial<ImportCounts> => ({
  created: 0,
  updated: 0,
  unchanged: 0,
  rejected: 0,
  subscribed: 0,
  optedOut: 0,
  ...given,
});

const person = (setup: AudienceSetup, email: string) =>
  setup.tables.contacts.byIdentifier('acct_one', emailIdentifier(email));

describe('an import of CSV', () => {
  it('continues after a batch that took very long, as when the process was stopped', async () => {
    const setup = await startAudience();
    // A pause of the whole share would take hours.
    const imported = await importText(setup, 'email\nada@example.net\n', { pauseShare: 1e6 });
    expect(imported).toMatchObject({ counts: counts({ rows: 1, created: 1 }) });
  });

  it('recognizes the names of columns in any spelling', async () => {
    const setup = await startAudience();
    const text = `E-Mail;Phone;First Name;last_name;consentMethod;consentDetails;consentTimestamp;customFields.plan;customFields.Home City
ada@example.net;+44 20 7946 0000;Ada;Lovelace;double_opt_in;"Form 7; page 2";2025-05-01;gold;London
`;
    expect(await importText(setup, text)).toMatchObject({
      counts: counts({ rows: 1, created: 1 }),
      rejected: [],
      ignored: [],
    });
    expect(person(setup, 'ada@example.net')).toMatchObject({
      phone: '+442079460000',
      first_name: 'Ada',
      last_name: 'Lovelace',
      custom_fields: '{"plan":"gold","Home City":"London"}',
      source: 'import',
      added_by: 'key_one',
      consent_method: 'double_opt_in',
      consent_details: 'Form 7; page 2',
      consented_at: Date.UTC(2025, 4, 1),
    });
  });

  it('records `imported` without a method, and keeps known fields', async () => {
    const setup = await startAudience();
    await setup.add('ada@example.net', { firstName: 'Ada', customFields: { plan: 'gold' } });
    const text =
      'email,firstName,lastName,customFields.city\nADA@example.net,,Lovelace,London\nbob@example.net,Bob,,\n';
    expect(await importText(setup, text)).toMatchObject({
      counts: counts({ rows: 2, created: 1, updated: 1 }),
    });
    expect(person(setup, 'ada@example.net')).toMatchObject({
      email: 'ada@example.net',
      first_name: 'Ada',
      last_name: 'Lovelace',
      custom_fields: '{"plan":"gold","city":"London"}',
      consent_method: 'implicit_api',
      source: 'api',
    });
    expect(person(setup, 'bob@example.net')).toMatchObject({ consent_method: 'imported', last_name: null });
  });

  it('changes nothing when repeated', async () => {
    const setup = await startAudience();
    const text = 'email,firstName,consentMethod\nada@example.net,Ada,web_form\nbob@example.net,Bob,\n';
    await importText(setup, text);
    const before = person(setup, 'ada@example.net');
    setup.clock.advance(1000);
    expect(await importText(setup, text)).toMatchObject({ counts: counts({ rows: 2, unchanged: 2 }) });
    expect(person(setup, 'ada@example.net')).toEqual(before);
  });

  it('reports the line and reason of every rejected row, and imports the others', async () => {
    const setup = await startAudience();
    await setup.add('one@example.net', { phone: '+4930000001' });
    await setup.add('two@example.net', { phone: '+4930000002' });
    const text = [
      'email,phone,firstName,consentMethod,consentTimestamp,customFields.x',
      'no-address,,,,,',
      'Ada <ada@example.net>,,,,,',
      ',,Nobody,,,',
      'a@example.net,12345,,,,',
      'a@example.net,,,telepathy,,',
      'a@example.net,,,web_form,yesterday,',
      'a@example.net,,,web_form,2999-01-01,',
      'a@example.net,,,,,,extra',
      'one@example.net,+4930000002,,,,',
      'three@example.net,+4930000002,,,,',
      `a@example.net,,${'x'.repeat(201)},,,`,
      'a@example.net,,"unclosed,,,',
      'good@example.net,,Good,,,',
    ].join('\n');
    const result = await importText(setup, text);
    expect(result).toMatchObject({ counts: counts({ rows: 13, created: 1, rejected: 12 }) });
    expect('rejected' in result ? result.rejected : []).toEqual([
      { line: 2, reason: 'email: has no "@"' },
      { line: 3, reason: 'email: must be an address without a display name' },
      { line: 4, reason: 'has neither email nor phone' },
      { line: 5, reason: 'phone: must be an international phone number such as +442071838750' },
      { line: 6, reason: expect.stringMatching(/^consentMethod: must be one of "double_opt_in", /) },
      { line: 7, reason: expect.stringMatching(/^consentTimestamp: must be a time such as /) },
      { line: 8, reason: 'consentTimestamp: is in the future' },
      { line: 9, reason: 'has 7 columns, the header has 6' },
      { line: 10, reason: 'email and phone are those of two different contacts' },
      { line: 11, reason: 'the phone is that of a contact with another email address' },
      { line: 12, reason: 'firstName: must have at most 200 characters' },
      { line: 13, reason: 'a quote is not closed' },
    ]);
    expect(JSON.stringify(result)).not.toMatch(/no-address|telepathy|12345/);
  });

  it('keeps the first hundred rejected rows, and counts them all', async () => {
    const result = await importText(await startAudience(), `email\n${'x\n'.repeat(1234)}`);
    expect(result).toMatchObject({ counts: { rows: 1234, rejected: 1234 } });
    expect('rejected' in result ? result.rejected.map(({ line }) => line) : []).toEqual(
      Array.from({ length: 100 }, (_, n) => n + 2),
    );
  });

  it('ignores unknown columns, and reports their names', async () => {
    const result = await importText(await startAudience(), 'email,shoe size,\nada@example.net,39,x\n');
    expect(result).toMatchObject({ counts: { created: 1 }, ignored: ['shoe size'] });
  });

  it.each([
    ['', 'there is no header line'],
    ['\n\n', 'there is no header line'],
    ['name,city\nAda,London\n', 'the header names neither email nor phone; its columns are "name", "city"'],
    ['email,E-Mail\na@example.net,b@example.net\n', 'the header names email twice'],
    [`email${',x'.repeat(2000)}\n`, 'the header names more than 2000 columns'],
  ])('refuses %j', async (text, refused) => {
    expect(await importText(await startAudience(), text)).toEqual({ refused });
  });

  it('recognizes a contact that is twice in one file, and adds the address to one known by phone alone', async () => {
    const setup = await startAudience();
    granted(await setup.contacts.create('acct_one', { phone: '+4930123456' }, CALLER));
    const text = 'email,phone,firstName\na@example.net,,A\nA@example.net,,B\nb@example.net,+4930123456,\n';
    expect(await importText(setup, text)).toMatchObject({
      counts: counts({ rows: 3, created: 1, updated: 2 }),
    });
    expect(person(setup, 'a@example.net')?.first_name).toBe('B');
    expect(setup.tables.contacts.byIdentifier('acct_one', phoneIdentifier('+4930123456'))?.email).toBe(
      'b@example.net',
    );
  });
});

describe('an import of NDJSON', () => {
  it('accepts the fields of the API', async () => {
    const setup = await startAudience();
    const lines = [
      JSON.stringify({
        email: 'ada@example.net',
        firstName: 'Ada',
        lastName: null,
        customFields: { tags: ['a', { b: 1 }] },
        shoe: 39,
      }),
      '{"email": 7}',
      '[]',
      '{"email": "bob@example.net"',
      '{"email": "c@example.net", "customFields": {"a": {"__proto__": 1}}}',
      '{"email": "d@example.net", "customFields": "x"}',
      '',
      '{"phone": "+44 20 7946 0000"}',
    ];
    const result = await importText(setup, lines.join('\n'), { format: 'ndjson' });
    expect(result).toMatchObject({ counts: counts({ rows: 7, created: 2, rejected: 5 }), ignored: ['shoe'] });
    expect('rejected' in result ? result.rejected : []).toEqual([
      { line: 2, reason: 'email: must be a string' },
      { line: 3, reason: 'is not a JSON object' },
      { line: 4, reason: 'is not a JSON object' },
      { line: 5, reason: 'customFields.a: must not have a field __proto__' },
      { line: 6, reason: 'customFields: must be an object' },
    ]);
    expect(person(setup, 'ada@example.net')?.custom_fields).toBe('{"tags":["a",{"b":1}]}');
  });
});

describe('an import of records with many names', () => {
  const record = (names: number) =>
    JSON.stringify({
      email: 'ada@example.net',
      ...Object.fromEntries(Array.from({ length: names }, (_, n) => [`x${n}`, 1])),
    });

  it('rejects a record above the limits of a JSON body before it is parsed, and imports the others', async () => {
    const setup = await startAudience();
    const parse = vi.spyOn(JSON, 'parse');
    const values = JSON.stringify({
      email: 'ada@example.net',
      customFields: { list: Array(10_000).fill(1) },
    });
    const text = [record(1999), record(2000), values].join('\n');
    try {
      expect(await importText(setup, text, { format: 'ndjson' })).toMatchObject({
        counts: counts({ rows: 3, created: 1, rejected: 2 }),
        rejected: [
          { line: 2, reason: 'must not have an object with more than 2000 names' },
          { line: 3, reason: 'must have at most 10000 values' },
        ],
      });
      expect(
        parse.mock.calls.filter(([parsed]) => text.includes(parsed) && parsed.length > 9000),
      ).toHaveLength(1);
    } finally {
      parse.mockRestore();
    }
  });

  it('takes a turn of the account for each 64 KiB', async () => {
    const setup = await startAudience();
    const next = vi.spyOn(eventLoopTurns, 'next');
    const rejected = record(8000);
    try {
      await importText(setup, `${rejected}\n`.repeat(10), { format: 'ndjson' });
      expect(rejected.length).toBeGreaterThan(64 * 1024);
      expect(next.mock.calls).toEqual(Array.from({ length: 10 }, () => ['acct_one']));
    } finally {
      next.mockRestore();
    }
  });
});

describe('the rows of a unit of work', () => {
  /** Sizes of the batches of 250 rows, each of which takes `rowMs`. */
  async function sizes(rowMs: number): Promise<number[]> {
    const setup = await startAudience();
    const rows = setup.db.prepare<[], number>('SELECT count(*) FROM contacts').pluck();
    const monotonic = { now: () => rowMs * (rows.get() ?? 0) };
    const importer = createImporter({ ...setup, monotonic }, setup.limits.mayAdd.contacts);
    const text = Array.from({ length: 250 }, (_, n) => `p${n}@example.net`).join('\n');
    const source = await openSource(chunks(`email\n${text}\n`), 'csv');
    if (typeof source === 'string' || isRefusal(source)) throw new Error(JSON.stringify(source));
    const ends: number[] = [0];
    await importer.run({
      accountId: 'acct_one',
      groupId: null,
      actor: CALLER,
      reader: source.reader,
      records: source.records,
      signal: new AbortController().signal,
      pauseShare: 0,
      afterBatch: (batch) => void ends.push(batch.counts.rows),
    });
    return ends.slice(1).map((end, n) => end - (ends[n] ?? 0));
  }

  it('are few where they take long, because everything else waits for them', async () => {
    expect(await sizes(1)).toEqual([20, ...Array.from({ length: 23 }, () => 10)]);
    expect((await sizes(100)).slice(0, 3)).toEqual([20, 5, 5]);
  });

  it('are at most 100', async () => {
    expect(await sizes(0.001)).toEqual([20, 100, 100, 30]);
  });
});

describe('an import into a group', () => {
  it('subscribes every contact once, and ends no opt-out', async () => {
    const setup = await startAudience();
    const { groupId, subscriptions } = setup;
    for (const name of ['out', 'gone', 'member']) await setup.add(`${name}@example.net`);
    const put = (name: string, isActive: boolean) =>
      subscriptions
        .put('acct_one', groupId, emailIdentifier(`${name}@example.net`), { isActive }, CALLER)
        .then(granted);
    await put('out', false);
    await put('gone', false);
    await subscriptions.remove('acct_one', groupId, emailIdentifier('gone@example.net'));
    await put('member', true);
    const text =
      'email,consentMethod\nout@example.net,\ngone@example.net,\nmember@example.net,\nnew@example.net,web_form\n';
    expect(await importText(setup, text, { groupId })).toMatchObject({
      counts: counts({ rows: 4, created: 1, unchanged: 3, subscribed: 2, optedOut: 2 }),
    });
    const isActive = (name: string) =>
      granted(subscriptions.get('acct_one', groupId, emailIdentifier(`${name}@example.net`))).subscription;
    expect(isActive('out')).toMatchObject({ is_active: 0, source: 'api' });
    expect(isActive('gone')).toMatchObject({ is_active: 0, source: 'import', consent_method: 'imported' });
    expect(isActive('new')).toMatchObject({ is_active: 1, source: 'import', consent_method: 'web_form' });
    expect(granted(setup.groups.get('acct_one', groupId))).toMatchObject({
      total_subscribers: 4,
      active_subscribers: 2,
      import_status: 'completed',
    });
  });

  it('refuses a group of another account before the first row', async () => {
    const setup = await startAudience();
    const refused = await importText(setup, 'email\na@example.net\n', {
      account: 'acct_two',
      groupId: setup.groupId,
    });
    expect(refused).toEqual({ refused: 'SUBSCRIPTION_GROUP_NOT_FOUND' });
    expect(setup.tables.contacts.list({ accountId: 'acct_two', beforeSeq: null, limit: 9 }).rows).toEqual([]);
  });
});

describe('an import of a file', () => {
  const rows = Array.from({ length: 1750 }, (_, n) =>
    n % 100 === 99 ? `bad row ${n}` : `p${n}@example.net`,
  );
  const text = `email,firstName\n${rows.map((email) => `${email},N`).join('\n')}\n`;

  async function startWithFile() {
    const setup = await startAudience();
    const file = join(setup.dir, 'people.csv');
    const reportFile = join(setup.dir, 'people.rejected.csv');
    writeFileSync(file, text);
    const starts: number[] = [];
    const run = (options: { stopAfter?: number; crashAfter?: number; accountId?: string } = {}) => {
      const stop = new AbortController();
      let batches = 0;
      return importFile(
        { ...setup, now: setup.clock.now },
        {
          file,
          format: 'csv',
          accountId: options.accountId ?? 'acct_one',
          groupId: null,
          rows: {},
          dryRun: false,
          reportFile,
          signal: stop.signal,
          onStart: ({ position }) => void starts.push(position.line),
          onProgress: () => {
            batches++;
            if (batches === options.stopAfter) stop.abort();
            if (batches === options.crashAfter) throw new Error('killed');
          },
        },
      );
    };
    const listed = () =>
      setup.tables.contacts.list({ accountId: 'acct_one', beforeSeq: null, limit: 5000 }).rows;
    return { ...setup, file, reportFile, run, starts, listed };
  }

  const reported = rows.flatMap((row, n) => (row.startsWith('bad') ? [String(n + 2)] : []));
  const linesOf = (file: string) =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(',')[0]);

  it('counts and lists the rows of all runs when it is resumed', async () => {
    const { run } = await startWithFile();
    const first = granted(await run({ stopAfter: 2 }));
    expect(first).toMatchObject({ complete: false, counts: { rows: 1000 } });
    const second = granted(await run());
    expect(second).toMatchObject({ complete: true, resumed: true, counts: { rows: 1750, rejected: 17 } });
    expect(second.rejected.map(({ line }) => String(line))).toEqual(reported);
    expect(second.rejected.slice(0, first.rejected.length)).toEqual(first.rejected);
  });

  it('reports every rejected row in a separate file', async () => {
    const { run, reportFile, listed } = await startWithFile();
    expect(granted(await run())).toMatchObject({
      complete: true,
      resumed: false,
      counts: { rows: 1750, created: 1733, rejected: 17 },
    });
    expect(readFileSync(reportFile, 'utf8')).toMatch(/^line,reason\n101,"email: .*"\n/);
    expect(linesOf(reportFile)).toEqual(reported);
    expect(listed()).toHaveLength(1733);
  });

  it.each([
    ['stopped', { stopAfter: 1 }],
    ['killed between two batches', { crashAfter: 2 }],
  ])('continues at its position when %s', async (_, cut) => {
    const { run, reportFile, listed, starts } = await startWithFile();
    const first = await run(cut).then(granted, (error: Error) => error.message);
    expect(first === 'killed' || (typeof first === 'object' && !first.complete)).toBe(true);
    const stored = listed().length;
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(1733);
    // A batch whose report was written, but which was never committed.
    writeFileSync(reportFile, '9999,"never committed"\n', { flag: 'a' });
    expect(granted(await run())).toMatchObject({
      complete: true,
      resumed: true,
      counts: { rows: 1750, created: 1733, rejected: 17, updated: 0, unchanged: 0 },
    });
    expect(starts[1]).toBeGreaterThan(1);
    expect(linesOf(reportFile)).toEqual(reported);
    expect(listed()).toHaveLength(1733);
  });

  it('starts again after completion, for a changed file, and for another account', async () => {
    const { run, starts, file } = await startWithFile();
    await run({ stopAfter: 1 });
    await run({ accountId: 'acct_two', stopAfter: 1 });
    utimesSync(file, 1, 1);
    await run();
    await run();
    expect(starts).toEqual([1, 1, 1, 1]);
  });

  it('writes no report without rejected rows', async () => {
    const { run, reportFile, file } = await startWithFile();
    writeFileSync(file, 'email\na@example.net\n');
    granted(await run());
    expect(existsSync(reportFile)).toBe(false);
  });

  it('refuses a file without contacts', async () => {
    const { run, file } = await startWithFile();
    writeFileSync(file, 'name\nAda\n');
    expect(codeOf(await run())).toBe('VALIDATION_ERROR');
  });
});

describe('an import that fails after some batches', () => {
  /** 1,000 contacts; the database has space for some of them. */
  async function failing(batchRows: number) {
    const setup = await startAudience();
    const text = Array.from({ length: 1000 }, (_, n) => `p${n}@example.net,${'x'.repeat(400)}`).join('\n');
    const source = await openSource(chunks(`email,customFields.note\n${text}\n`, 4000), 'csv');
    if (typeof source === 'string' || isRefusal(source)) throw new Error(JSON.stringify(source));
    const pages = Number(setup.db.pragma('page_count', { simple: true }));
    setup.db.pragma(`max_page_count = ${pages + 100}`);
    const imported = setup.importer.run({
      accountId: 'acct_one',
      groupId: setup.groupId,
      actor: CALLER,
      reader: source.reader,
      records: source.records,
      signal: new AbortController().signal,
      batchRows,
      pauseShare: 0,
    });
    const error = await imported.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    setup.db.pragma('max_page_count = 1000000');
    const { contacts = -1 } =
      setup.db.prepare<[], { contacts: number }>('SELECT count(*) AS contacts FROM contacts').get() ?? {};
    return { error, contacts };
  }

  it('states how many rows it has stored', async () => {
    const { error, contacts } = await failing(50);
    expect(contacts).toBeGreaterThan(0);
    expect(contacts).toBeLessThan(1000);
    expect(error).toBeInstanceOf(PartlyDone);
    expect(error).toMatchObject({ done: `${contacts} rows were imported; it may be repeated` });
    expect(storageFailure(error)).toMatchObject({ kind: 'full' });
  });

  it('does not state it when nothing was stored', async () => {
    const { error, contacts } = await failing(1000);
    expect(contacts).toBe(0);
    expect(error).not.toBeInstanceOf(PartlyDone);
    expect(storageFailure(error)).toMatchObject({ kind: 'full' });
  });
});

it('ends before the batch for which there is no storage, and states how far it came', async () => {
  const setup = await startAudience();
  const full = refuse('UNAVAILABLE', 'Nothing more is stored: the disk is nearly full', { retryAfter: 30 });
  const source = await openSource(chunks('email\na@example.net\nb@example.net\nc@example.net\n'), 'csv');
  if (typeof source === 'string' || isRefusal(source)) throw new Error(JSON.stringify(source));
  let asked = 0;
  const imported = await setup.importer.run({
    accountId: 'acct_one',
    groupId: null,
    actor: CALLER,
    reader: source.reader,
    records: source.records,
    storageRefusal: () => (++asked > 2 ? full : null),
    signal: new AbortController().signal,
    batchRows: 1,
    pauseShare: 0,
  });
  expect(imported).toMatchObject({
    code: 'UNAVAILABLE',
    message:
      'Nothing more is stored: the disk is nearly full. Before that, 2 rows were imported; it may be repeated',
    extras: { retryAfter: 30 },
  });
  expect(person(setup, 'b@example.net')).not.toBeNull();
  expect(person(setup, 'c@example.net')).toBeNull();
});
