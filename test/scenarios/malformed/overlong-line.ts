import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when a line has more than 8 KiB, and retries',
  phase: 'ehlo',
  answer: `250 ${'x'.repeat(9000)}`,
  commands: 'EHLO',
  session: 'mx ehlo: a reply line of more than 8192 bytes',
});
