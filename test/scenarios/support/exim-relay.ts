import { exim } from './real-servers.ts';
import { RELAY_LOGIN } from './relay.ts';

const { user, password } = RELAY_LOGIN;

/** An Exim as the host `relay` of a destination. It requires a login over TLS. */
export const eximRelay = (domain: string) =>
  exim({
    domain,
    label: 'relay',
    users: ['ada'],
    acl: '  deny message = authentication required\n    !authenticated = *',
    authenticators: `plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${user}}}{eq{$auth3}{${password}}}}}
  server_set_id = $auth2
  server_advertise_condition = \${if def:tls_in_cipher}`,
  });
