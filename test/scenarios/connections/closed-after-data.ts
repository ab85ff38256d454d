import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'retries a host that closes the connection after DATA',
  phase: 'data',
  answer: 'drop',
  commands: 'EHLO MAIL RCPT DATA',
  session: 'mx data: server closed the connection during DATA',
});
