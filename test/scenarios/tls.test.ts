import { MINUTE } from '../../src/core/clock.ts';
import { selfSigned } from '../support/certificates.ts';
import { onConnection } from './support/answers.ts';
import { deferred, delivered } from './support/attempts.ts';
import { deferredForTls, requiring } from './support/deferred-for-tls.ts';
import { AUTHORITY } from './support/environment.ts';
import { registerScenarios } from './support/register.ts';

const NAMES_VERIFIED_EXPIRED = ['mx.verified-expired.example'];

const NAMES_VERIFIED_SELF_SIGNED = ['mx.verified-self-signed.example'];

registerScenarios('tls', {
  'certificate-of-another-name': {
    title: 'encrypts although the certificate is that of another host',
    hosts: { mx: { tls: AUTHORITY.issue(['mail.elsewhere.example']) } },
    messages: {
      ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
    },
    connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
  'closed-after-starttls': {
    title: 'connects again in plain text when the host closes the connection in place of a reply to STARTTLS',
    hosts: { mx: { tls: selfSigned(['mx.example']), script: { starttls: 'drop' } } },
    messages: {
      ada: {
        attempts: [delivered('mx starttls: server closed the connection during STARTTLS', 'mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'closed-in-handshake': {
    title: 'connects again in plain text when the host closes the connection in the handshake',
    hosts: { mx: { tls: 'drop' } },
    messages: {
      ada: {
        attempts: [
          delivered(
            'mx starttls: TLS handshake failed: server closed the connection during STARTTLS',
            'mx dot 250',
          ),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'expired-certificate': {
    title: 'encrypts although the certificate has expired',
    hosts: { mx: { tls: AUTHORITY.issue(['mx.expired-certificate.example'], new Date('2020-01-01')) } },
    messages: {
      ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
    },
    connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
  garbage: {
    title: 'connects again in plain text when the handshake is answered with garbage',
    hosts: { mx: { tls: 'garbage' } },
    messages: {
      ada: {
        attempts: [delivered('mx starttls: TLS handshake failed: wrong version number', 'mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'injected-before-handshake': {
    // CVE-2011-0411
    title: 'discards replies that were sent before the handshake',
    hosts: {
      mx: {
        tls: selfSigned(['mx.example']),
        script: { starttls: { bytes: '220 go ahead\r\n250-forged\r\n250 SMTPUTF8\r\n554 5.7.1 forged\r\n' } },
      },
    },
    messages: { ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered' } },
    connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
  'not-offered': {
    title: 'sends in plain text to a host that does not offer STARTTLS',
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered', lastEvent: { tls: null } } },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'plain-text-fails-too': {
    title: 'defers mail because of the network when plain text fails after a failed handshake',
    hosts: { mx: { tls: 'garbage', script: { greeting: onConnection(2, 'drop') } } },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'mx starttls: TLS handshake failed: wrong version number',
            'mx greeting: server closed the connection before the greeting',
          ),
          delivered('mx starttls: TLS handshake failed: wrong version number', 'mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'required-handshake-failed': deferredForTls({
    title: 'defers mail when encryption is required and the handshake fails, and sends nothing in plain text',
    settings: requiring('required'),
    tls: 'garbage',
    session: 'mx starttls: TLS handshake failed: wrong version number',
    certificate: selfSigned(['mx.example']),
    delivery: 'mx dot 250 TLS',
  }),
  'required-next-host': {
    title: 'uses the next host when encryption is required and one does not offer it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, tls: 'required' }] }),
    hosts: { mx: {}, mx2: { tls: selfSigned(['mx2.example']) } },
    messages: {
      ada: {
        attempts: [
          delivered('mx starttls: mx.required-next-host.example does not offer STARTTLS', 'mx2 dot 250 TLS'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO QUIT'], mx2: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
  'required-not-offered': deferredForTls({
    title: 'defers mail when encryption is required and not offered, and sends nothing in plain text',
    settings: requiring('required'),
    tls: null,
    session: 'mx starttls: mx.required-not-offered.example does not offer STARTTLS',
    connection: 'EHLO QUIT',
    certificate: selfSigned(['mx.example']),
    delivery: 'mx dot 250 TLS',
  }),
  'self-signed': {
    title: 'encrypts although the certificate is self-signed',
    hosts: { mx: { tls: selfSigned(['mx.self-signed.example']) } },
    messages: {
      ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
    },
    connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
  'silent-after-starttls': {
    title: 'connects again in plain text when STARTTLS is not answered for five minutes',
    hosts: { mx: { tls: selfSigned(['mx.example']), script: { starttls: 'silent' } } },
    messages: {
      ada: {
        attempts: [delivered('mx starttls: timed out after 5 min waiting for TLS', 'mx dot 250')],
        status: 'delivered',
      },
    },
  },
  'silent-in-handshake': {
    title: 'connects again in plain text when the handshake is not answered for a minute',
    hosts: { mx: { tls: 'silent' } },
    messages: {
      ada: {
        attempts: [
          delivered('mx starttls: TLS handshake failed: timed out after 60 s waiting for TLS', 'mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'starttls-refused': {
    title: 'continues in plain text on the same connection when the host rejects STARTTLS',
    hosts: {
      mx: {
        tls: selfSigned(['mx.example']),
        script: { starttls: '454 4.7.0 TLS not available due to temporary reason' },
      },
    },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO STARTTLS MAIL RCPT DATA . QUIT'] },
  },
  'verified-expired': deferredForTls({
    title: 'defers mail when verification is required and the certificate has expired',
    settings: requiring('verified'),
    tls: AUTHORITY.issue(NAMES_VERIFIED_EXPIRED, new Date('2020-01-01')),
    session: 'mx starttls: TLS handshake failed: certificate has expired',
    certificate: AUTHORITY.issue(NAMES_VERIFIED_EXPIRED),
  }),
  'verified-other-name': deferredForTls({
    title: 'defers mail when verification is required and the certificate is that of another host',
    settings: requiring('verified'),
    tls: AUTHORITY.issue(['mail.elsewhere.example']),
    session:
      "mx starttls: TLS handshake failed: Host: mx.verified-other-name.example. is not in the cert's altnames: DNS:mail.elsewhere.example",
    certificate: AUTHORITY.issue(['mx.verified-other-name.example']),
  }),
  'verified-self-signed': deferredForTls({
    title: 'defers mail when verification is required and the certificate is self-signed',
    settings: requiring('verified'),
    tls: selfSigned(NAMES_VERIFIED_SELF_SIGNED),
    session: 'mx starttls: TLS handshake failed: self-signed certificate',
    certificate: AUTHORITY.issue(NAMES_VERIFIED_SELF_SIGNED),
  }),
  verified: {
    title: 'delivers to a host with a valid certificate when verification is required',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, tls: 'verified' }] }),
    hosts: { mx: { tls: AUTHORITY.issue(['mx.verified.example']) } },
    messages: { ada: { attempts: [delivered('mx dot 250 TLS verified')], status: 'delivered' } },
    connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  },
});
