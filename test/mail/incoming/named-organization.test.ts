import { describe, expect, it } from 'vitest';
import { isFromNamedOrganization } from '../../../src/mail/incoming/reports/reporting-organization.ts';

/* The names, contacts and signatures of reports as large receivers send them, and forged ones. */
describe('isFromNamedOrganization', () => {
  it.each<[name: string, contact: string, from: string, signer: string]>([
    ['google.com', 'noreply-dmarc-support@google.com', 'noreply-dmarc-support@google.com', 'google.com'],
    ['Google Inc.', 'smtp-tls-reporting@google.com', 'noreply-smtp-tls-reporting@google.com', 'google.com'],
    ['Outlook.com', 'dmarcreport@microsoft.com', 'dmarcreport@microsoft.com', 'microsoft.com'],
    ['Enterprise Outlook', 'dmarcreport@microsoft.com', 'dmarcreport@microsoft.com', 'microsoft.com'],
    [
      'Microsoft Corporation',
      'tlsrpt-noreply@microsoft.com',
      'tlsrpt-noreply@microsoft.com',
      'microsoft.com',
    ],
    ['Yahoo', 'dmarchelp@yahooinc.com', 'noreply@dmarc.yahoo.com', 'yahoo.com'],
    ['comcast.net', 'dmarc-reports@alerts.comcast.net', 'dmarc-reports@alerts.comcast.net', 'comcast.net'],
    ['AMAZON-SES', 'postmaster@amazonses.com', 'postmaster@amazonses.com', 'amazonses.com'],
    ['mail.example.co.uk', 'postmaster@example.co.uk', 'dmarc@example.co.uk', 'example.co.uk'],
  ])('accepts %s (%s), sent by %s', (organization, contact, from, signer) => {
    expect(isFromNamedOrganization({ from, organization: signer }, { organization, contact })).toBe(true);
  });

  it.each<[string, name: string, contact: string, from: string, signer: string]>([
    ['the name of another', 'google.com', 'dmarc@evil.example', 'dmarc@evil.example', 'evil.example'],
    ['the contact of another', 'Google', 'dmarc@google.com', 'dmarc@evil.example', 'evil.example'],
    ['a user of the organization', 'Outlook.com', '', 'eve@outlook.com', 'outlook.com'],
    ['a public suffix', 'co.uk', '', 'dmarc@evil.co.uk', 'evil.co.uk'],
    ['neither name nor contact', '', '', 'dmarc@evil.example', 'evil.example'],
  ])('rejects %s', (_, organization, contact, from, signer) => {
    expect(isFromNamedOrganization({ from, organization: signer }, { organization, contact })).toBe(false);
  });
});
