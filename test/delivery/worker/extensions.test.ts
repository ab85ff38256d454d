import { describe, expect, it } from 'vitest';
import { parseExtensions, type ServerExtensions } from '../../../src/delivery/worker/connection.ts';

const NOTHING: ServerExtensions = {
  pipelining: false,
  chunking: false,
  size: false,
  maxSize: Number.POSITIVE_INFINITY,
  startTls: false,
  eightBitMime: false,
  smtpUtf8: false,
  auth: [],
};

describe('the extensions in a reply to EHLO', () => {
  const CASES: [lines: string[], offers: Partial<ServerExtensions>][] = [
    [['mx.example.test'], {}],
    // The first line is a greeting with any text.
    [['PIPELINING'], {}],
    [['hi', 'PIPELINING'], { pipelining: true }],
    [['hi', 'pipelining', 'StartTLS '], { pipelining: true, startTls: true }],
    [['hi', '8BITMIME', 'SMTPUTF8', 'X-WHATEVER 1'], { eightBitMime: true, smtpUtf8: true }],
    [['hi', 'CHUNKING'], { chunking: true }],
    [['hi', 'SIZE'], { size: true }],
    [['hi', 'SIZE 0'], { size: true }],
    [['hi', 'SIZE 10240000'], { size: true, maxSize: 10_240_000 }],
    [['hi', 'SIZE nonsense'], { size: true }],
    [['hi', 'SIZE -5'], { size: true }],
    [['hi', 'AUTH plain LOGIN'], { auth: ['PLAIN', 'LOGIN'] }],
    [['hi', 'AUTH=LOGIN', 'AUTH PLAIN'], { auth: ['LOGIN', 'PLAIN'] }],
    [['hi', 'STARTTLSX', 'XPIPELINING'], {}],
  ];
  it.each(CASES)('%j', (lines, offers) => {
    expect(parseExtensions(lines)).toEqual({ ...NOTHING, ...offers });
  });
});
