import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  domainOf,
  formatMailbox,
  needsSmtpUtf8,
  normalizeDomain,
  parseMailbox,
  parseMailboxList,
} from '../../src/mail/address.ts';

const label63 = 'a'.repeat(63);
const domain253 = `${label63}.${label63}.${label63}.${'b'.repeat(57)}.com`;

describe('parseMailbox parses', () => {
  it.each([
    // text, name, address
    ['user@example.com', '', 'user@example.com'],
    ['  user@example.com  ', '', 'user@example.com'],
    ['<user@example.com>', '', 'user@example.com'],
    ['< user@example.com >', '', 'user@example.com'],
    ['User.Name+tag@Example.COM', '', 'User.Name+tag@example.com'],
    ["o'neill!#$%&*+/=?^_`{|}~-@example.com", '', "o'neill!#$%&*+/=?^_`{|}~-@example.com"],
    ['x@example.co.uk', '', 'x@example.co.uk'],
    ['x@r3---sn-abc.example.com', '', 'x@r3---sn-abc.example.com'],
    ['x@123.example', '', 'x@123.example'],
    ['"john doe"@example.com', '', '"john doe"@example.com'],
    ['"a@b,c\\"d"@example.com', '', '"a@b,c\\"d"@example.com'],
    // Unnecessary quotes and escapes would be a second address of the same mailbox.
    ['"ann"@example.com', '', 'ann@example.com'],
    ['"a\\nn.cole"@example.com', '', 'ann.cole@example.com'],
    ['"j\\ohn doe"@example.com', '', '"john doe"@example.com'],
    ['jo\u0308rg@example.com', '', 'j\u00f6rg@example.com'],
    [`${'a'.repeat(64)}@example.com`, '', `${'a'.repeat(64)}@example.com`],
    ['jörg@example.com', '', 'jörg@example.com'],
    ['用户@例え.jp', '', '用户@xn--r8jz45g.jp'],
    ['user@MÜLLER.example', '', 'user@xn--mller-kva.example'],
    ['user@xn--mller-kva.example', '', 'user@xn--mller-kva.example'],
    ['user@ex。example', '', 'user@ex.example'],
    ['Ann <ann@example.com>', 'Ann', 'ann@example.com'],
    ['Ann<ann@example.com>', 'Ann', 'ann@example.com'],
    ['Ann   B.  Cole <ann@example.com>', 'Ann B. Cole', 'ann@example.com'],
    ['"Cole, Ann" <ann@example.com>', 'Cole, Ann', 'ann@example.com'],
    ['"Ann \\"the\\" \\\\ Cole" <ann@example.com>', 'Ann "the" \\ Cole', 'ann@example.com'],
    ['Ann "the" Cole <ann@example.com>', 'Ann the Cole', 'ann@example.com'],
    ['"" <ann@example.com>', '', 'ann@example.com'],
    ['Müller & Söhne <info@example.com>', 'Müller & Söhne', 'info@example.com'],
    ['株式会社 <info@example.com>', '株式会社', 'info@example.com'],
    ['שלום 👩‍👩‍👧 <info@example.com>', 'שלום 👩‍👩‍👧', 'info@example.com'],
    ['ann@example.com <ann@example.com>', 'ann@example.com', 'ann@example.com'],
    [`${'n'.repeat(200)} <ann@example.com>`, 'n'.repeat(200), 'ann@example.com'],
  ])('%s', (text, name, address) => {
    expect(parseMailbox(text)).toEqual({ name, address });
  });
});

describe('parseMailbox rejects', () => {
  it.each([
    ['', 'empty'],
    ['   ', 'empty'],
    ['user', 'no "@"'],
    ['Ann <ann>', 'no "@"'],
    ['@example.com', 'before the "@"'],
    ['user@', 'after the "@"'],
    ['user@@example.com', 'not a domain name'],
    ['a@b@example.com', 'not a domain name'],
    ['.user@example.com', 'malformed'],
    ['user.@example.com', 'malformed'],
    ['us..er@example.com', 'malformed'],
    ['"a"b@example.com', 'malformed'],
    ['a"b"@example.com', 'malformed'],
    ['us er@example.com', 'contains a space'],
    ['"unclosed@example.com', 'quote is not closed'],
    ['"unclosed\\', 'quote is not closed'],
    ['user@localhost', 'not a domain name'],
    ['user@example.com.', 'not a domain name'],
    ['user@.example.com', 'not a domain name'],
    ['user@example..com', 'not a domain name'],
    ['user@-example.com', 'not a domain name'],
    ['user@example-.com', 'not a domain name'],
    ['user@exa_mple.com', 'not a domain name'],
    ['user@exa%6dple.com', 'not a domain name'],
    ['user@example.com/path', 'not a domain name'],
    ['user@127.0.0.1', 'not a domain name'],
    ['user@127.0.0.0x1', 'not a domain name'],
    ['user@１２７.0.0.1', 'not a domain name'],
    ['user@xn--a.example', 'not a domain name'],
    [`user@${label63}a.com`, 'not a domain name'],
    ['user@[127.0.0.1]', 'IP address'],
    ['user@[IPv6:::1]', 'IP address'],
    [`${'a'.repeat(65)}@example.com`, '64 bytes'],
    [`${'é'.repeat(33)}@example.com`, '64 bytes'],
    [`${'a'.repeat(64)}@${domain253.slice(60)}`, '254 bytes'],
    ['user@example.com (work)', 'comments'],
    ['(work) user@example.com', 'comments'],
    ['Team: a@example.com, b@example.com;', 'groups'],
    ['undisclosed-recipients:;', 'groups'],
    ['<@relay.example:user@example.com>', 'source routes'],
    ['<user@example.com', 'not closed'],
    ['user@example.com>', '">"'],
    ['<<user@example.com>>', 'not closed'],
    ['Ann <ann@example.com> Cole', 'after the address'],
    ['a@example.com, b@example.com', 'more than one'],
    ['Cole, Ann <ann@example.com>', 'must be in quotation marks: "Cole, Ann" <ann@example.com>'],
    ['user@example.com\r\nBcc: victim@example.net', 'control character'],
    ['Ann\nCole <ann@example.com>', 'control character'],
    ['user\u0000@example.com', 'control character'],
    ['Ann\tCole <ann@example.com>', 'control character'],
    ['Ann\u2028Cole <ann@example.com>', 'control character'],
    ['Ann\ud800 <ann@example.com>', 'control character'],
    ['us\u200ber@example.com', 'invisible'],
    ['user@exam\u200bple.com', 'invisible'],
    ['us\u00a0er@example.com', 'invisible'],
    [`${'n'.repeat(201)} <ann@example.com>`, '200 characters'],
  ])('%j', (text, why) => {
    const result = parseMailbox(text);
    expect(result).toBeTypeOf('string');
    expect(result).toContain(why);
  });
});

describe('parseMailbox on hostile input', () => {
  it.each(['"n" ', '"', '"\\', '<', ' ', ',', 'a@', '@', '.', 'a.', '"a"@b,'])(
    'ends in linear time: %j',
    (piece) => {
      expect(parseMailbox(piece.repeat(300_000) + '<ann@example.com>')).toBeTypeOf('string');
    },
  );
});

describe('parseMailboxList', () => {
  /** The addresses, and the faults as texts and errors. */
  const parsed = (list: string) => {
    const faults: [text: string, error: string][] = [];
    const mailboxes = parseMailboxList(list, (...fault) => faults.push(fault) > 0);
    return { addresses: mailboxes.map(({ address }) => address), faults };
  };

  it('does not read further when the caller wants no more errors', () => {
    const errors: string[] = [];
    const mailboxes = parseMailboxList('a@example.com,'.concat('x,'.repeat(20_000)), (_, error) => {
      return errors.push(error) < 3;
    });
    expect([mailboxes.length, errors.length]).toEqual([1, 3]);
  });

  it.each<[string, string[]]>([
    ['a@example.com', ['a@example.com']],
    ['a@example.com,b@example.com', ['a@example.com', 'b@example.com']],
    ['"Cole, Ann" <a@example.com> , "x,y"@example.com', ['a@example.com', '"x,y"@example.com']],
  ])('reads %j', (list, addresses) => {
    expect(parsed(list)).toEqual({ addresses, faults: [] });
  });

  it.each<[list: string, addresses: string[], faults: [text: string, error: string][]]>([
    ['', [], [['', 'empty']]],
    ['a@example.com,', ['a@example.com'], [['', 'empty']]],
    [',a@example.com', ['a@example.com'], [['', 'empty']]],
    ['a@example.com,,b@example.com', ['a@example.com', 'b@example.com'], [['', 'empty']]],
    ['a@example.com;b@example.com', [], [['a@example.com;b@example.com', 'separate addresses by commas']]],
    [
      'bad addr, a@example.com, x@@y.example ,b@example.com',
      ['a@example.com', 'b@example.com'],
      [
        ['bad addr', 'contains a space'],
        ['x@@y.example', 'not a domain name'],
      ],
    ],
    ['"Cole, \\", Ann" <ann>, b@example.com', ['b@example.com'], [['"Cole, \\", Ann" <ann>', 'no "@"']]],
    ['"Cole, a@example.com', [], [['"Cole, a@example.com', 'quote is not closed']]],
    ['a@example.com, b@example.com\n', [], [['', 'control character']]],
    [`a@example.com, ${'b'.repeat(65_536)}`, [], [['', 'longer than 65536 characters']]],
  ])('reports each invalid address of %j', (list, addresses, faults) => {
    const texts = faults.map(([text, error]) => [text, expect.stringContaining(error)]);
    expect(parsed(list)).toEqual({ addresses, faults: texts });
  });
});

describe('formatMailbox', () => {
  it.each([
    ['', 'a@example.com'],
    ['Ann Cole', 'Ann Cole <a@example.com>'],
    ['Jörg', 'Jörg <a@example.com>'],
    ['Cole, Ann', '"Cole, Ann" <a@example.com>'],
    ['Acme Inc.', '"Acme Inc." <a@example.com>'],
    ['two  blanks', '"two  blanks" <a@example.com>'],
    ['say "hi" \\', '"say \\"hi\\" \\\\" <a@example.com>'],
  ])('formats the name %j', (name, expected) => {
    expect(formatMailbox({ name, address: 'a@example.com' })).toBe(expected);
  });

  const name = fc
    .string({
      unit: fc.oneof(
        fc.constantFrom(...Array.from('",.<>()@:;\\ é漢👍')),
        fc.string({ unit: 'grapheme', maxLength: 1 }),
      ),
    })
    .map((text) => text.trim())
    .filter((text) => text.length <= 200 && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text));
  const local = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~é漢-]{1,10}(\.[A-Za-z0-9é漢-]{1,5}){0,2}$/),
    // Quoted only as far as necessary.
    fc.stringMatching(/^" ([ !#-[\]-~]|\\["\\]){0,20}"$/),
  );
  const domain = fc.stringMatching(/^([a-z0-9]([a-z0-9]{0,8}[a-z0-9])?\.){1,3}[a-z]{2,6}$/);
  const mailbox = fc
    .tuple(name, local, domain)
    .map(([name, local, domain]) => ({ name, address: `${local}@${domain}` }));

  it('is parsed back by parseMailbox, whatever the name', () => {
    fc.assert(
      fc.property(mailbox, (box) => {
        expect(parseMailbox(formatMailbox(box))).toEqual(box);
      }),
    );
  });

  it('is parsed back as a comma-separated list', () => {
    fc.assert(
      fc.property(fc.array(mailbox, { minLength: 1, maxLength: 5 }), (boxes) => {
        const list = boxes.map(formatMailbox).join(', ');
        expect(parseMailboxList(list, (_, error) => expect.fail(error))).toEqual(boxes);
      }),
    );
  });

  it('returns for any text an error or a mailbox that is safe in a header', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const result = parseMailbox(text);
        if (typeof result !== 'string') expect(`${result.name}${result.address}`).not.toMatch(/[\r\n\0]/);
      }),
    );
  });
});

describe('normalizeDomain', () => {
  it.each<[string, string | null]>([
    ['Example.COM', 'example.com'],
    ['example.com.', 'example.com'],
    ['müller.example', 'xn--mller-kva.example'],
    ['faß.example', 'xn--fa-hia.example'],
    ['XN--MLLER-KVA.example', 'xn--mller-kva.example'],
    [domain253, domain253],
    [`${domain253}.`, domain253],
    [`a${domain253}`, null],
    ['', null],
    ['.', null],
    ['com', null],
    ['example..com', null],
    ['example.com..', null],
    ['https://example.com', null],
    ['example.com/path', null],
    ['example.com:25', null],
    ['müller.example/path', null],
    ['user@example.com', null],
    ['192.0.2.1', null],
    ['[192.0.2.1]', null],
    ['2001:db8::1', null],
    ['exa mple.com', null],
    ['*.example.com', null],
    ['_dmarc.example.com', null],
    ['xn--.example', null],
  ])('%s → %s', (name, expected) => {
    expect(normalizeDomain(name)).toBe(expected);
  });

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.domain(), (name) => {
        const once = normalizeDomain(name);
        if (once !== null) expect(normalizeDomain(once)).toBe(once);
      }),
    );
  });
});

describe('an address', () => {
  it('needs SMTPUTF8 only for its local part, as domains are sent as A-labels', () => {
    expect(needsSmtpUtf8('jörg@example.com')).toBe(true);
    expect(needsSmtpUtf8('joerg@xn--mller-kva.example')).toBe(false);
  });

  it('has its domain after the last "@"', () => {
    expect(domainOf('"a@b"@example.com')).toBe('example.com');
  });
});

describe('a display name that needs quotation marks', () => {
  it.each([
    ['Shop [EU] <x@sender.test>', '[', '"Shop [EU]" <x@sender.test>'],
    ['Pitty, Desk <x@sender.test>', ',', '"Pitty, Desk" <x@sender.test>'],
    ['Shop (UK) <x@sender.test>', '(', '"Shop (UK)" <x@sender.test>'],
    ['Care: Team <x@sender.test>', ':', '"Care: Team" <x@sender.test>'],
  ])('is named in the error about %s, with the right form', (text, character, suggestion) => {
    expect(parseMailbox(text)).toBe(
      `the name contains "${character}" and must be in quotation marks: ${suggestion}`,
    );
    expect(parseMailbox(suggestion)).toMatchObject({ address: 'x@sender.test' });
  });

  it('is not assumed where an address stands in front of the comma', () => {
    expect(parseMailbox('bob, ada@example.com, Eve <eve@example.com>')).toBe('has no "@"');
    expect(parseMailbox('ada@[192.0.2.1]')).toContain('an IP address in brackets');
    expect(parseMailbox(`${'x, '.repeat(60)}Ada <ada@example.com>`)).toBe(
      'the name contains "," and must be in quotation marks',
    );
  });
});
