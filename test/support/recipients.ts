import type { DnsServer } from './dns-server.ts';

/** A mail that may go out, as short as one can be. */
export const SHORT_MAIL = {
  subject: 'Hello',
  html: '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}',
};

/** Makes a domain's mail go to one host. */
export function publishMailHost(dns: DnsServer, domain: string, address = '127.0.0.1'): void {
  dns.set(domain, 'MX', [`10 mx.${domain}`]);
  dns.set(`mx.${domain}`, 'A', [address]);
}
