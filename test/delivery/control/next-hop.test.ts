import { expect, it } from 'vitest';
import { parseNextHop } from '../../../src/delivery/control/bulk.ts';

it.each([
  ['relay.example', { host: 'relay.example', port: 25 }],
  ['Relay.Example:587', { host: 'relay.example', port: 587 }],
  ['192.0.2.1', { host: '192.0.2.1', port: 25 }],
  ['[2001:db8::1]:2525', { host: '2001:db8::1', port: 2525 }],
])('accepts %s', (text, hop) => {
  expect(parseNextHop(text)).toEqual(hop);
});

it.each([
  '[relay.example]',
  '[1.2.3.4.5]',
  '[:::]',
  '192.0.2.300',
  '-.-',
  'relay..example',
  'relay.example:0',
])('rejects %s', (text) => {
  expect(parseNextHop(text)).toBeNull();
});
