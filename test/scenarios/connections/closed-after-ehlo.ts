import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'retries a host that closes the connection after EHLO',
  phase: 'ehlo',
  answer: 'drop',
  commands: 'EHLO',
  session: 'mx ehlo: server closed the connection during EHLO',
});
