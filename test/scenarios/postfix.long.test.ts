// Long: compares with a Postfix that retries and limits mail in real time.
import { MINUTE } from '../../src/core/clock.ts';
import { startGreylisting, startLoginService } from '../support/postfix-services.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { requiring } from './support/deferred-for-tls.ts';
import { postfix } from './support/real-servers.ts';
import { registerScenarios } from './support/register.ts';
import { LISTED, overRelay, RELAY_LOGIN } from './support/relay.ts';
import type { ExpectedMessage } from './support/scenario.ts';
import { LANE_SETTINGS } from './support/secondary-lane.ts';

const DEFERRED_ONCE: ExpectedMessage = {
  attempts: [
    deferred('450 4.7.1', 'greylisted', undefined, 'mx dot 450 TLS verified'),
    delivered('mx dot 250 TLS verified'),
  ],
  status: 'delivered',
};

const DOMAIN = 'postfix-lookup-fails.example';

const RELAY = postfix({
  domain: 'postfix-relay.example',
  label: 'relay',
  users: ['ada'],
  service: {
    start: () => startLoginService(RELAY_LOGIN),
    parameters: (endpoint) => ({
      smtpd_sasl_auth_enable: 'yes',
      smtpd_sasl_type: 'dovecot',
      smtpd_sasl_path: endpoint,
      smtpd_tls_auth_only: 'yes',
      smtpd_relay_restrictions: 'permit_sasl_authenticated, reject',
      smtpd_recipient_restrictions: 'permit_sasl_authenticated, reject',
    }),
  },
});

const DELIVERED = { reply: '250 2.0.0', action: 'deliver', sessions: ['mx dot 250 TLS verified'] } as const;

registerScenarios(
  'postfix',
  {
    'postfix-deferred-content': {
      title: 'retries messages that a Postfix defers after their content, over one connection',
      // Postfix does not end the transaction of such a message.
      settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
      hosts: {
        mx: postfix({
          domain: 'postfix-deferred-content.example',
          users: ['ada', 'bob'],
          service: {
            start: startGreylisting,
            parameters: (endpoint) => ({
              smtpd_end_of_data_restrictions: `check_policy_service ${endpoint}`,
            }),
          },
        }),
      },
      messages: { ada: DEFERRED_ONCE, bob: DEFERRED_ONCE },
    },
    'postfix-greylisting': {
      title: 'delivers at the second attempt to a Postfix that greylists with a policy service',
      hosts: {
        mx: postfix({
          domain: 'postfix-greylisting.example',
          users: ['ada'],
          service: {
            start: startGreylisting,
            parameters: (endpoint) => ({ smtpd_recipient_restrictions: `check_policy_service ${endpoint}` }),
          },
        }),
      },
      messages: {
        ada: {
          attempts: [
            deferred('450 4.7.1', 'greylisted', 2 * MINUTE, 'mx rcpt 450 TLS verified'),
            delivered('mx dot 250 TLS verified'),
          ],
          status: 'delivered',
        },
      },
    },
    'postfix-lookup-fails': {
      title: 'uses the next host when the user database of a Postfix cannot be reached',
      hosts: {
        mx: postfix({
          domain: DOMAIN,
          users: ['ada'],
          // Nothing listens at the discard port.
          parameters: { virtual_mailbox_maps: 'tcp:127.0.0.1:9' },
        }),
        backup: postfix({ domain: DOMAIN, users: ['ada'], label: 'backup' }),
      },
      messages: {
        ada: {
          attempts: [delivered('mx rcpt 451 TLS verified', 'backup dot 250 TLS verified')],
          status: 'delivered',
        },
      },
    },
    'postfix-rejected-content': {
      title: 'does not suppress the recipient when a Postfix rejects the content',
      hosts: {
        mx: postfix({
          domain: 'postfix-rejected-content.example',
          users: ['ada', 'bob'],
          parameters: { header_checks: 'regexp:{{/^Subject: Buy now/ REJECT Rejected as spam}}' },
        }),
      },
      messages: {
        ada: {
          body: { subject: 'Buy now' },
          attempts: [bounced('550 5.7.1', 'spam-block', 'mx dot 550 TLS verified')],
          status: 'bounced',
          events: ['email_sent', 'email_rejected'],
        },
        bob: {
          attempts: [{ reply: '250 2.0.0', action: 'deliver', sessions: ['mx dot 250 TLS verified'] }],
          status: 'delivered',
        },
      },
    },
    'postfix-relay': overRelay(
      'sends mail of the secondary lane to a Postfix as its relay, after a login over verified TLS',
      RELAY,
      {
        attempts: [
          LISTED,
          { reply: '250 2.0.0', action: 'deliver', sessions: ['relay dot 250 TLS verified'] },
        ],
        status: 'delivered',
        events: ['email_sent', 'email_delayed', 'email_delivered'],
      },
    ),
    'postfix-tls': {
      title: 'delivers to a Postfix over TLS with a verified certificate',
      settings: requiring('verified'),
      hosts: { mx: postfix({ domain: 'postfix-tls.example', users: ['ada', 'bob'] }) },
      messages: {
        ada: { attempts: [DELIVERED], status: 'delivered' },
        bob: { attempts: [DELIVERED], status: 'delivered' },
      },
    },
    'postfix-too-large': {
      title: 'bounces a message that exceeds the SIZE limit of a Postfix',
      hosts: {
        mx: postfix({
          domain: 'postfix-too-large.example',
          users: ['ada'],
          parameters: { message_size_limit: '20000' },
        }),
      },
      messages: {
        ada: {
          body: {
            text: `{{company_address_text}} {{unsubscribe_email_text}}${'A line of text.\n'.repeat(3000)}`,
          },
          attempts: [bounced('552 5.3.4', 'message-too-large')],
          status: 'bounced',
          events: ['email_sent', 'email_rejected'],
          lastEvent: { source: 'local' },
        },
      },
    },
    'postfix-unknown-user': {
      title: 'suppresses a recipient that a Postfix does not know',
      hosts: { mx: postfix({ domain: 'postfix-unknown-user.example', users: ['bob'] }) },
      messages: {
        ada: {
          attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550 TLS verified')],
          status: 'bounced',
          lastEvent: { bounceType: 'hard', suppressed: true },
        },
      },
      suppressed: ['ada'],
    },
  },
  { programs: ['postfix'], settings: LANE_SETTINGS, secondaryLane: true },
);
