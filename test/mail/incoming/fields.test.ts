import { describe, expect, it } from 'vitest';
import { decodeWords, readHeaderFields, readParameters } from '../../../src/mail/incoming/fields.ts';
import { INCOMING_LIMITS } from '../../../src/mail/incoming/limits.ts';

describe('fields', () => {
  const fields = readHeaderFields(
    'Subject: one\n two\r\nTO: a@example.com\nto: b@example.com\nnot a field\n: nameless\nX Y: no\nX-Late : yes\n',
    INCOMING_LIMITS,
  );

  it('are unfolded, with case-insensitive names', () => {
    expect(fields.get('subject')).toBe('one two');
    expect(fields.all('to')).toEqual(['a@example.com', 'b@example.com']);
  });

  it('are skipped when they are invalid', () => {
    expect(fields.names()).toEqual(['subject', 'to', 'x-late']);
    expect(fields.get('missing')).toBe('');
  });
});

describe('parameters', () => {
  it.each([
    ['text/plain', 'text/plain', {}],
    ['Text/PLAIN (comment); Charset="utf-8"', 'text/plain', { charset: 'utf-8' }],
    ['a/b; x="semi;colon"; y=z', 'a/b', { x: 'semi;colon', y: 'z' }],
    [String.raw`a/b; x="quo\"te"`, 'a/b', { x: 'quo"te' }],
    ["a/b; name*=utf-8'de'gr%C3%BCn.xml", 'a/b', { name: 'grün.xml' }],
    ["a/b; name*0*=utf-8''gr%C3%BC; name*1=n.xml", 'a/b', { name: 'grün.xml' }],
    ['a/b; name="=?utf-8?q?gr=C3=BCn?="', 'a/b', { name: 'grün' }],
    ['a/b; ; =x; y', 'a/b', {}],
    [`a/b; filename="gr?n.xml"; filename*=utf-8''gr%C3%BCn.xml`, 'a/b', { filename: 'grün.xml' }],
    [`a/b; filename*=utf-8''gr%C3%BCn.xml; filename="gr?n.xml"`, 'a/b', { filename: 'grün.xml' }],
    ["a/b; name*1*=%FCn; name*0*=iso-8859-1''gr; name*2=.xml", 'a/b', { name: 'grün.xml' }],
    ["a/b; name*0*=utf-8''gr%C3; name*1*=%BCn.xml", 'a/b', { name: 'grün.xml' }],
    ['a/b; name*0=gr; name*1=%41.xml', 'a/b', { name: 'gr%41.xml' }],
  ])('%s', (text, value, parameters) => {
    const found = readParameters(text);
    expect(found.value).toBe(value);
    expect(Object.fromEntries(found.parameters)).toEqual(parameters);
  });
});

describe('encoded words', () => {
  it.each([
    ['plain', 'plain'],
    ['=?utf-8?b?5L2g5aW9?= you', '你好 you'],
    ['=?utf-8?q?a_b?= =?utf-8?q?c?=', 'a bc'],
    ['=?utf-8?b?5L2g5Q==?= =?utf-8?b?pb0=?=', '你好'],
    ['=?iso-2022-jp?B?GyRCJWEhPCVrGyhC?=', 'メール'],
    ['=?iso-2022-jp?B?GyRCJWEhPCVrGyhC?= =?iso-2022-jp?B?GyRCJWEhPCVrGyhC?=', 'メールメール'],
    ['=?iso-2022-jp?B?GyRCJWEhPA==?= =?iso-2022-jp?B?YWJj?=', 'メーabc'],
    ['=?utf-8?q?Hello Gr=C3=BC=C3=9Fe?=', 'Hello Grüße'],
    ['=?utf-8?b?YQ==Yg==?=', 'ab'],
    ['=?broken', '=?broken'],
    ['=?utf-8?x?abc?=', '=?utf-8?x?abc?='],
  ])('%s: %s', (text, decoded) => {
    expect(decodeWords(text)).toBe(decoded);
  });
});
