import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when the code of a reply is not an SMTP code, and retries',
  phase: 'mail',
  answer: '650 hello',
  commands: 'EHLO MAIL RCPT DATA',
  session: 'mx mail: not an SMTP reply: 650 hello',
});
