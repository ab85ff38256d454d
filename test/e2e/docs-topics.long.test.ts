// Long: runs the commands of documents, each on a new installation.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENTS } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { type Reader, startReader } from '../support/reader.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * Documents about one subject, each in a new shell after first-message.md. Mail to example.net waits: the port of its mail
 * host is closed.
 */
const required = requirePrograms('curl', 'jq');
const today = new Date().toISOString().slice(0, 10);
const UNREACHABLE = '127.0.0.2';

describe.skipIf(required.missing)(`the commands of documents about a subject${required.reason}`, () => {
  let reader: Reader;
  beforeAll(async () => {
    reader = await startReader({
      settings: {
        'delivery.egress': [
          { name: 'main', publicAddress: '192.0.2.25' },
          { name: 'new', publicAddress: '192.0.2.26', warmup: { started: today, days: 30 } },
        ],
      },
    });
    publishMailHost(reader.dns, 'example.net', UNREACHABLE);
    await reader.follow('docs/first-message.md');
    const waiting = {
      from: 'Example Shop <orders@example.com>',
      to: 'grace@example.net',
      subject: 'Your order 10043',
      html: '<p>Thank you!</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    };
    await reader.run(`curl -fsS ${reader.adapted('http://127.0.0.1:8080')}/transactional/send \
      -H "X-Api-Key: $TRANSACTIONAL_KEY" -H "X-Id: $ACCOUNT_ID" \
      -H 'Content-Type: application/json' -d '${JSON.stringify(waiting)}'`);
  });
  afterAll(() => reader?.close());

  for (const document of DOCUMENTS['test/e2e/docs-topics.long.test.ts']) {
    it(`of ${document} work as written`, async () => {
      reader.newShell();
      await reader.follow(document);
    });
  }

  it('send the campaign to its members, and only once', async () => {
    const newsOf = () => reader.sink.messages.filter(({ raw }) => raw.includes('Spring is here'));
    await eventually('the campaign', () => newsOf().length >= 2);
    expect(
      newsOf()
        .flatMap(({ to }) => to)
        .toSorted(),
    ).toEqual(['ada@example.org', 'grace@example.org']);
  });
});
