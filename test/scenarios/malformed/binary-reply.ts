import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when a reply is binary, and retries',
  phase: 'mail',
  answer: { bytes: '\u0015\u0003\u0001\u0000\u0002\u0002(\r\n' },
  commands: 'EHLO MAIL RCPT DATA',
  session: 'mx mail: not an SMTP reply:  (',
});
