import { describe, expect, it } from 'vitest';
import { readDeliveryStatus } from '../../../src/mail/incoming/delivery-status.ts';
import { INCOMING_LIMITS } from '../../../src/mail/incoming/limits.ts';

const read = (text: string) => readDeliveryStatus(text, INCOMING_LIMITS);
const recipients = (text: string) => read(text).groups.map(({ recipient }) => recipient);

const ONE = `Reporting-MTA: dns; mx.example.net (tcp-daemon)
Original-Envelope-Id: m.123

Original-Recipient: rfc822;alias@example.com
Final-Recipient: rfc822; <a@example.com>
Action: failed
Status: 5.1.1 (no such user)
Remote-MTA: dns; [192.0.2.1] (192.0.2.1, the server for the domain)
Diagnostic-Code: smtp; 550-5.1.1 No such user,
 please check
X-PowerMTA-BounceCategory: bad-mailbox
`;

describe('a delivery status (RFC 3464)', () => {
  it('has the fields of its recipients', () => {
    expect(read(ONE)).toEqual({
      envelopeId: 'm.123',
      reportingMta: 'mx.example.net',
      groups: [
        {
          recipient: 'a@example.com',
          originalRecipient: 'alias@example.com',
          action: 'failed',
          status: '5.1.1',
          statusComment: 'no such user',
          diagnosticType: 'smtp',
          diagnostic: '550-5.1.1 No such user, please check',
          category: 'bad-mailbox',
          remoteMta: '192.0.2.1',
        },
      ],
    });
  });

  it.each([
    [
      'separated by empty lines',
      'Final-Recipient: rfc822; a@x.example\nAction: failed\n\nFinal-Recipient: rfc822; b@x.example\nAction: failed',
    ],
    [
      'not separated',
      'Final-Recipient: rfc822; a@x.example\nAction: failed\nFinal-Recipient: rfc822; b@x.example\nAction: failed',
    ],
    [
      'with the action first',
      'Action: failed\nFinal-Recipient: rfc822;a@x.example\n\nAction: failed\nFinal-Recipient: rfc822;b@x.example',
    ],
    [
      'with both names',
      'Original-Recipient: rfc822;a@x.example\nFinal-Recipient: rfc822;a@x.example\n\nOriginal-Recipient: rfc822;b@x.example\nFinal-Recipient: rfc822;b@x.example',
    ],
    [
      'split by an empty line before the name',
      'Action: failed\nStatus: 5.0.0\n\nFinal-Recipient: rfc822;a@x.example\n\nAction: failed\nFinal-Recipient: rfc822;b@x.example',
    ],
    [
      'of several kinds of white space',
      'Final-Recipient:rfc822;a@x.example\r\nAction: failed\r\n \r\nFinal-Recipient:\trfc822;\tb@x.example\r\n',
    ],
  ])('separates recipients: %s', (_, text) => {
    expect(recipients(text)).toEqual(['a@x.example', 'b@x.example']);
  });

  it.each([
    ['rfc822; a@example.com', 'a@example.com'],
    ['RFC822;<a@example.com> (A)', 'a@example.com'],
    ['a@example.com', 'a@example.com'],
    ['utf-8; gr\\x{FC}n@example.com', 'grün@example.com'],
    ['utf-8; 你好@example.com', '你好@example.com'],
    ['utf-8; \\x{FFFFFF}@example.com', '\\x{FFFFFF}@example.com'],
    ['X-LOCAL; kijitora', 'kijitora'],
  ])('reads the recipient %s', (value, recipient) => {
    expect(recipients(`Final-Recipient: ${value}\nAction: failed`)).toEqual([recipient]);
  });

  it('uses the original address when the final one is invalid', () => {
    expect(recipients('Original-Recipient: rfc822;a@example.com\nFinal-Recipient: X-LOCAL; a')).toEqual([
      'a@example.com',
    ]);
  });

  it.each([
    ['5.1.1', '5.1.1'],
    ['5.4.4 (Illegal host/domain name found)', '5.4.4'],
    ['RO', ''],
    ['', ''],
    ['9.1.1', ''],
  ])('reads the status %s', (value, status) => {
    expect(read(`Final-Recipient: rfc822; a@example.com\nStatus: ${value}`).groups[0]?.status).toBe(status);
  });

  it('has no recipients when it names none', () => {
    expect(read('Reporting-MTA: dns; x\nArrival-Date: now\n').groups).toEqual([]);
    expect(read('').groups).toEqual([]);
  });

  it('has at most the maximum number of recipients', () => {
    const text = 'Final-Recipient: rfc822; a@example.com\nAction: failed\n\n'.repeat(1000);
    expect(read(text).groups).toHaveLength(INCOMING_LIMITS.reports);
  });
});
