import { MINUTE } from '../../src/core/clock.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { eximRelay } from './support/exim-relay.ts';
import { exim } from './support/real-servers.ts';
import { registerScenarios } from './support/register.ts';
import { LISTED, overRelay, RELAY_LOGIN, relaySettings } from './support/relay.ts';
import { LANE_SETTINGS } from './support/secondary-lane.ts';

const DOMAIN = 'exim-mailstore-down.example';

const title = 'defers mail of the secondary lane while the relay rejects the login';

registerScenarios(
  'exim',
  {
    'exim-deferred-content': {
      title: 'retries a message that an Exim defers after its content',
      hosts: {
        mx: exim({
          domain: 'exim-deferred-content.example',
          users: ['ada'],
          // The condition `seen` is true from the second attempt on; -0s: without a minimum time.
          dataAcl: `  defer message = Temporary local problem - please try later
        !seen = -0s / key=$sender_address`,
        }),
      },
      messages: {
        ada: {
          attempts: [
            deferred('451', 'server-error', undefined, 'mx dot 451 TLS verified'),
            { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS verified'] },
          ],
          status: 'delivered',
        },
      },
    },
    'exim-greylisting': {
      title: 'delivers at the second attempt to an Exim that greylists',
      hosts: {
        mx: exim({
          domain: 'exim-greylisting.example',
          users: ['ada'],
          // The condition `seen` is true from the second attempt on; -0s: without a minimum time.
          acl: `  defer message = Greylisted - please try again later
        !seen = -0s / key=$sender_host_address-$sender_address-$local_part`,
        }),
      },
      messages: {
        ada: {
          attempts: [
            deferred('451', 'greylisted', 2 * MINUTE, 'mx rcpt 451 TLS verified'),
            { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS verified'] },
          ],
          status: 'delivered',
        },
      },
    },
    'exim-mailstore-down': {
      title: 'uses the next host when an Exim cannot verify the recipient',
      hosts: {
        // A router of this Exim defers the user `slow`.
        mx: exim({ domain: DOMAIN, users: ['ada'], acl: '  require verify = recipient' }),
        backup: {},
      },
      messages: {
        slow: {
          attempts: [delivered('mx rcpt 451 TLS verified', 'backup dot 250')],
          status: 'delivered',
        },
      },
    },
    'exim-rejected-content': {
      title: 'does not suppress the recipient when an Exim rejects the content',
      hosts: {
        mx: exim({
          domain: 'exim-rejected-content.example',
          users: ['ada'],
          dataAcl: '  deny message = This message scored 12.3 spam points',
        }),
      },
      messages: {
        ada: {
          attempts: [bounced('550', 'spam-block', 'mx dot 550 TLS verified')],
          status: 'bounced',
          events: ['email_sent', 'email_rejected'],
        },
      },
    },
    'exim-relay-wrong-password': {
      ...overRelay(title, eximRelay('exim-relay-wrong-password.example'), {
        attempts: [
          LISTED,
          { reply: '535', action: 'defer', sessions: ['relay auth 535 TLS verified'] },
          { reply: '250', action: 'deliver', sessions: ['relay dot 250 TLS verified'] },
        ],
        status: 'delivered',
        events: ['email_sent', 'email_delayed', 'email_delayed', 'email_delivered'],
      }),
      settings: relaySettings('wrong'),
      play: async (run) => {
        const { domain, env } = run;
        await run.sendAll();
        await run.settle();
        await run.configure(relaySettings(RELAY_LOGIN.password)({ domain, port: env.port }));
      },
    },
    'exim-relay': overRelay(
      'sends mail of the secondary lane to an Exim as its relay, after a login over verified TLS',
      eximRelay('exim-relay.example'),
      {
        attempts: [LISTED, { reply: '250', action: 'deliver', sessions: ['relay dot 250 TLS verified'] }],
        status: 'delivered',
        events: ['email_sent', 'email_delayed', 'email_delivered'],
      },
    ),
    'exim-too-large': {
      title: 'bounces a message that exceeds the SIZE limit of an Exim',
      hosts: {
        mx: exim({ domain: 'exim-too-large.example', users: ['ada'], main: 'message_size_limit = 20000' }),
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
    'exim-unknown-user': {
      title: 'suppresses a recipient that an Exim does not know',
      hosts: {
        mx: exim({
          domain: 'exim-unknown-user.example',
          users: ['bob'],
          acl: '  require verify = recipient',
        }),
      },
      messages: {
        ada: {
          attempts: [bounced('550', 'invalid-recipient', 'mx rcpt 550 TLS verified')],
          status: 'bounced',
          lastEvent: { bounceType: 'hard', suppressed: true },
        },
      },
      suppressed: ['ada'],
    },
  },
  { programs: ['exim'], settings: LANE_SETTINGS, secondaryLane: true },
);
