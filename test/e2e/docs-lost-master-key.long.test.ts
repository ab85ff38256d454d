// Long: runs the commands of a document, like the other documents.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requirePrograms } from '../support/required-programs.ts';
import { type RunningServer, startServer } from '../support/server-reader.ts';

/*
 * The commands of docs/lost-master-key.md, after the key was deleted: what a new installation takes from the old database.
 */
const required = requirePrograms('sqlite3');

describe.skipIf(required.missing)(`docs/lost-master-key.md${required.reason}`, () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  }, 240_000);
  afterAll(() => server?.close());

  it('leads from a lost key to a new installation with contacts, consent and suppressions', async () => {
    const { reader, dataDir } = server;
    await reader.run(`ACCOUNT_ID=$(postrider account list --json | sed -n 's/.*"accountId": "\\(.*\\)".*/\\1/p')
printf 'email,firstName,customFields.city,consentMethod,consentTimestamp\\nada@example.net,Ada,Köln,web_form,2026-01-02T03:04:05Z\\n' > in.csv
postrider contacts import in.csv --account "$ACCOUNT_ID"
postrider suppression add bob@example.net --account "$ACCOUNT_ID" --stream mk
postrider suppression add email_${'0123456789abcdef'.repeat(2)} --account "$ACCOUNT_ID"
systemctl stop postrider`);
    rmSync(join(dataDir, 'master.key'));
    await expect(reader.run('postrider serve')).rejects.toThrow(/see docs\/lost-master-key\.md/);
    await reader.follow('docs/lost-master-key.md');
    const contact = await reader.run(
      'postrider contacts show ada@example.net --account "$ACCOUNT_ID" --json',
    );
    expect(JSON.parse(contact)).toMatchObject({
      firstName: 'Ada',
      customFields: { city: 'Köln' },
      consents: [{ method: 'web_form', timestamp: expect.stringMatching(/^2026-01-02T03:04:05/) }],
    });
    const listed = await reader.run('postrider suppression list --account "$ACCOUNT_ID" --json');
    expect(JSON.parse(listed)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ email: 'bob@example.net', stream: 'mk' }),
        expect.objectContaining({
          email: null,
          contactIdentifier: `email_${'0123456789abcdef'.repeat(2)}`,
          stream: 'all',
        }),
      ]),
    );
  }, 300_000);
});
