import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'retries a host that closes the connection after RCPT',
  phase: 'rcpt',
  answer: 'drop',
  commands: 'EHLO MAIL RCPT',
  session: 'mx rcpt: server closed the connection during RCPT',
});
