import { expect, it } from 'vitest';
import { isReportingOrganization } from '../../../../src/mail/incoming/reports/reporting-organization.ts';

const RECEIVER = {
  recipientDomain: 'example.net',
  mxHost: 'mx1.hoster.example',
  feedbackLoops: ['loops.example'],
};

it.each<[from: string, organization: string, changes: Partial<typeof RECEIVER>, expected: boolean]>([
  ['abuse@example.net', 'example.net', {}, true],
  ['fbl@mail.example.net', 'example.net', {}, true],
  ['fbl@hoster.example', 'hoster.example', {}, true],
  ['Feedback-Loop2@loops.example', 'loops.example', {}, true],
  ['no-reply@loops.example', 'loops.example', {}, true],
  // Domains with user mailboxes require a role name.
  ['eve@example.net', 'example.net', {}, false],
  ['eve@hoster.example', 'hoster.example', {}, false],
  ['eve@loops.example', 'loops.example', {}, false],
  ['eve@users.example.net', 'example.net', { recipientDomain: 'users.example.net' }, false],
  ['eve.abuse@example.net', 'example.net', {}, false],
  ['x17@arf.example.net', 'example.net', {}, true],
  // Neither the receiver nor an operator of a feedback loop.
  ['abuse@evil.example', 'evil.example', {}, false],
  ['abuse@example.net.evil.example', 'evil.example', {}, false],
  // Unknown: an erased recipient, a message without a delivery.
  ['abuse@example.net', 'example.net', { recipientDomain: '' }, false],
])('a report from %s, signed by %s, %j: %s', (from, organization, changes, expected) => {
  expect(isReportingOrganization({ from, organization }, { ...RECEIVER, ...changes })).toBe(expected);
});
