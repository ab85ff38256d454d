import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when a reply has thousands of lines, and retries',
  phase: 'ehlo',
  answer: Array.from({ length: 5000 }, () => '250-and another line'),
  commands: 'EHLO',
  session: 'mx ehlo: a reply of more than 128 lines',
});
