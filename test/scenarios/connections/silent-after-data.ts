import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes a connection without a reply to DATA after two minutes',
  phase: 'data',
  answer: 'silent',
  commands: 'EHLO MAIL RCPT DATA',
  session: 'mx data: timed out after 2 min waiting for the reply to DATA',
});
