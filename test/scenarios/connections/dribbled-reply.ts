import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes a connection whose reply to RCPT does not end within five minutes',
  phase: 'rcpt',
  answer: { bytes: '2', everyMs: 20 },
  commands: 'EHLO MAIL RCPT',
  session: 'mx rcpt: timed out after 5 min waiting for the reply to RCPT',
});
