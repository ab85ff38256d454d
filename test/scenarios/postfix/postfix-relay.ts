import { startLoginService } from '../../support/postfix-services.ts';
import { postfix } from '../support/real-servers.ts';
import { LISTED, overRelay, RELAY_LOGIN } from '../support/relay.ts';

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

export default overRelay(
  'sends mail of the secondary lane to a Postfix as its relay, after a login over verified TLS',
  RELAY,
  {
    attempts: [LISTED, { reply: '250 2.0.0', action: 'deliver', sessions: ['relay dot 250 TLS verified'] }],
    status: 'delivered',
    events: ['email_sent', 'email_delayed', 'email_delivered'],
  },
);
