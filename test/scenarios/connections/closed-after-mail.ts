import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'retries a host that closes the connection after MAIL',
  phase: 'mail',
  answer: 'drop',
  commands: 'EHLO MAIL',
  session: 'mx mail: server closed the connection during MAIL',
});
