import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes a connection without a reply to MAIL after five minutes',
  phase: 'mail',
  answer: 'silent',
  commands: 'EHLO MAIL',
  session: 'mx mail: timed out after 5 min waiting for the reply to MAIL',
});
