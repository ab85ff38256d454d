import { describe, expect, it } from 'vitest';
import { parsePostalAddress } from '../../src/accounts/postal-address.ts';

/** An absent part. */
const none = undefined;

describe('a postal address on one line', () => {
  it.each([
    // The documented order, with and without its optional parts.
    ['1 Main St, Springfield, 62701, USA', ['1 Main St', none, 'Springfield', none, '62701', 'USA']],
    ['1 Main St, Springfield, IL, 62701, USA', ['1 Main St', none, 'Springfield', 'IL', '62701', 'USA']],
    [
      '1 Main St, Suite 5, Springfield, 62701, USA',
      ['1 Main St', 'Suite 5', 'Springfield', none, '62701', 'USA'],
    ],
    [
      '1 Main St, Suite 5, Springfield, IL, 62701, USA',
      ['1 Main St', 'Suite 5', 'Springfield', 'IL', '62701', 'USA'],
    ],
    [
      '1 Main St, Unit 2, Suite 3, Springfield, IL, 62701, USA',
      ['1 Main St', 'Unit 2, Suite 3', 'Springfield', 'IL', '62701', 'USA'],
    ],
    // The postal code where other countries put it.
    ['Musterstr. 5, 10115, Berlin, DE', ['Musterstr. 5', none, 'Berlin', none, '10115', 'DE']],
    ['Musterstr. 5, 10115 Berlin, Germany', ['Musterstr. 5', none, 'Berlin', none, '10115', 'Germany']],
    ['Damrak 1, 1012 AB Amsterdam, NL', ['Damrak 1', none, 'Amsterdam', none, '1012 AB', 'NL']],
    ['Bundesplatz 3, 3003 Bern, CH', ['Bundesplatz 3', none, 'Bern', none, '3003', 'CH']],
    ['Drottninggatan 1, 111 22 Stockholm, SE', ['Drottninggatan 1', none, 'Stockholm', none, '111 22', 'SE']],
    ['10 Downing Street, London SW1A 2AA, UK', ['10 Downing Street', none, 'London', none, 'SW1A 2AA', 'UK']],
    [
      '10 Downing Street, London, SW1A 2AA, UK',
      ['10 Downing Street', none, 'London', none, 'SW1A 2AA', 'UK'],
    ],
    ['1 Main St, Springfield, IL 62701, USA', ['1 Main St', none, 'Springfield', 'IL', '62701', 'USA']],
    [
      '1 Main St, Suite 5, Springfield, IL 62701-1234, USA',
      ['1 Main St', 'Suite 5', 'Springfield', 'IL', '62701-1234', 'USA'],
    ],
    [
      '290 Bremner Blvd, Toronto, ON M5V 3L9, Canada',
      ['290 Bremner Blvd', none, 'Toronto', 'ON', 'M5V 3L9', 'Canada'],
    ],
    // A country without postal codes.
    ["1 Queen's Road, Central, Hong Kong", ["1 Queen's Road", none, 'Central', none, '', 'Hong Kong']],
    // Spaces and empty parts are ignored.
    [' 1 Main St ,, Springfield ,62701, USA, ', ['1 Main St', none, 'Springfield', none, '62701', 'USA']],
  ])('%s', (line, [line1, line2, city, region, postalCode, country]) => {
    expect(parsePostalAddress(line)).toEqual({
      line1,
      ...(line2 === undefined ? {} : { line2 }),
      city,
      ...(region === undefined ? {} : { region }),
      postalCode,
      country,
    });
  });

  it.each(['', 'Main St 1', 'Main St 1, Springfield', 'Main St 1, 10115, DE', ',,,'])(
    'is rejected when it is incomplete: %j',
    (line) => {
      expect(parsePostalAddress(line)).toBeNull();
    },
  );
});
