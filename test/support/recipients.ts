import type { DnsServer } from './dns-server.ts';

/** The shortest mail that can be sent. */
export const SHORT_MAIL = {
  subject: 'Hello',
  html: '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}',
};

/** Publishes one mail host for a domain. */
export function publishMailHost(dns: DnsServer, domain: string, address = '127.0.0.1'): void {
  dns.set(domain, 'MX', [`10 mx.${domain}`]);
  dns.set(`mx.${domain}`, 'A', [address]);
}
