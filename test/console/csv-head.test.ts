import { describe, expect, it } from 'vitest';
import { probableField, readCsvHead } from '../../src/console/pages/contacts/csv-head.ts';

const headOf = (bytes: Buffer) => readCsvHead(new Uint8Array(bytes).buffer);
const HEAD = { columns: ['email', 'firstName'], rows: [['a@dest.test', 'Änn']] };

describe('the columns that the console shows for a file', () => {
  it.each<[string, Buffer]>([
    ['UTF-8', Buffer.from('email,firstName\na@dest.test,Änn\n')],
    ['UTF-8 with a mark and CRLF', Buffer.from('\ufeffemail,firstName\r\na@dest.test,Änn\r\n')],
    ['CR line ends', Buffer.from('email,firstName\ra@dest.test,"Änn"\r')],
    ['sep=;', Buffer.from('sep=;\r\nemail;firstName\r\na@dest.test;Änn\r\n')],
    ['sep=| in quotes', Buffer.from('"sep=|"\nemail|firstName\na@dest.test|Änn')],
    ['UTF-16LE with tabs', Buffer.from('\ufeffemail\tfirstName\r\na@dest.test\tÄnn\r\n', 'utf16le')],
    ['UTF-16BE', Buffer.from('\ufeffemail;firstName\na@dest.test;Änn\n', 'utf16le').swap16()],
  ])('are those that the import reads: %s', (_, bytes) => expect(headOf(bytes)).toEqual(HEAD));

  it('are none if there is no header', () => expect(headOf(Buffer.from('sep=;\r\n\r\n'))).toBeNull());
});

it.each([
  ['language', 'language'],
  ['First name', 'firstName'],
  ['customFields.plan', 'customFields.plan'],
  ['Plan', 'customFields.Plan'],
])('a column %s has the field %s', (column, field) => expect(probableField(column)).toBe(field));
