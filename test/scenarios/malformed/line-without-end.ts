import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when a line does not end, and retries',
  phase: 'rcpt',
  answer: { bytes: `250 ${'x'.repeat(20_000)}` },
  commands: 'EHLO MAIL RCPT DATA',
  session: 'mx rcpt: a reply line of more than 8192 bytes',
});
