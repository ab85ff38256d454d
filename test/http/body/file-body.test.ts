import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../../src/core/refusal.ts';
import { fileInBody } from '../../../src/http/body/file-body.ts';

const TYPE = 'multipart/form-data; boundary=xyz';
const FILE =
  'Content-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n';

const form = (...parts: string[]) =>
  Buffer.from(`${parts.map((part) => `--xyz\r\n${part}\r\n`).join('')}--xyz--\r\n`);

function read(body: Buffer, type = TYPE) {
  const sent = fileInBody(body, type);
  if (isRefusal(sent)) throw new Error(sent.message);
  return sent;
}

describe('the file of a form', () => {
  it('is a part of the body: a large one occupies its memory once', () => {
    const body = form(
      'Content-Disposition: form-data; name="alt"\r\n\r\nCafé\r\n',
      `${FILE}\u0000\r\n--xy\r\n`,
      'content-disposition: form-data; NAME=name\r\n\r\nlogo',
    );
    const { file, fileName, fields } = read(body);
    expect(file.toString()).toBe('\u0000\r\n--xy\r\n');
    expect([file.buffer, file.byteOffset]).toEqual([body.buffer, body.indexOf('\u0000') + body.byteOffset]);
    expect({ fileName, fields }).toEqual({ fileName: 'a.png', fields: { alt: 'Café\r\n', name: 'logo' } });
  });

  it('is read as programs send it: with a preamble, quotes, white space and an empty file', () => {
    const body = Buffer.concat([Buffer.from('preamble\r\n'), form(`${FILE}x`), Buffer.from('epilogue')]);
    expect(read(body, 'Multipart/Form-Data; charset=utf-8; boundary="xyz"').file.toString()).toBe('x');
    expect(read(Buffer.from(`--xyz \t\r\n${FILE}\r\n--xyz-- \r\n`)).file).toHaveLength(0);
    const named = FILE.replace('a.png', '%22ü%0D%0A.png');
    expect(read(form(`${named}x`)).fileName).toBe('"ü\r\n.png');
    const encoded = `Content-Transfer-Encoding: base64\r\n${FILE}R0lG\r\nODlh`;
    expect(read(form(encoded)).file.toString()).toBe('GIF89a');
    expect(read(Buffer.from('GIF89a'), 'image/gif')).toMatchObject({ fileName: undefined, fields: {} });
  });

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['without a part', Buffer.from('--xyz--')],
    ['without an end', Buffer.from(`--xyz\r\n${FILE}x`)],
    ['cut in a boundary', Buffer.from(`--xyz\r\n${FILE}x\r\n--xyz`)],
    ['with another boundary', Buffer.from(`--abc\r\n${FILE}x\r\n--abc--`)],
    ['with text after a boundary', Buffer.from(`--xyz\r\n${FILE}x\r\n--xyzz\r\n--xyz--`)],
    ['without a header', form('x')],
    ['with a header without an end', form(`${FILE.trim()}\r\nX: ${'x'.repeat(100_000)}`)],
    ['without a name', form('Content-Disposition: form-data\r\n\r\nx')],
    ['with a text in place of the file', form('Content-Disposition: form-data; name="file"\r\n\r\nx')],
    ['with many parts', form(...Array.from({ length: 11 }, () => `${FILE}x`))],
  ])('refuses a form %s', (_, body) => {
    expect(fileInBody(body, TYPE)).toMatchObject({
      code: 'VALIDATION_ERROR',
      extras: { details: [{ field: 'file' }] },
    });
  });
});
