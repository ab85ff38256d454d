import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENTS } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { type Reader, startReader } from '../support/reader.ts';
import { requirePrograms } from '../support/required-programs.ts';

const required = requirePrograms('curl', 'jq', 'python3', 'java');

describe.skipIf(required.missing)(`the commands of the documents${required.reason}`, () => {
  let reader: Reader;
  beforeAll(async () => {
    reader = await startReader();
  });
  afterAll(() => reader.close());

  for (const document of DOCUMENTS['test/e2e/docs.test.ts']) {
    it(`of ${document} work as written`, () => reader.follow(document));
  }

  it('deliver every message that they send', async () => {
    const { messages } = reader.sink;
    await eventually('the messages', () => messages.length >= 5);
    expect(messages.flatMap(({ to }) => to)).toEqual(Array(5).fill('ada@example.org'));
  });
});
