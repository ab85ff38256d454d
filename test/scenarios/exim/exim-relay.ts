import { eximRelay } from '../support/exim-relay.ts';
import { LISTED, overRelay } from '../support/relay.ts';

export default overRelay(
  'sends mail of the secondary lane to an Exim as its relay, after a login over verified TLS',
  eximRelay('exim-relay.example'),
  {
    attempts: [LISTED, { reply: '250', action: 'deliver', sessions: ['relay dot 250 TLS verified'] }],
    status: 'delivered',
    events: ['email_sent', 'email_delayed', 'email_delivered'],
  },
);
