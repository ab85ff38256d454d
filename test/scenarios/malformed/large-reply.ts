import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection when a reply has more than 64 KiB, and retries',
  phase: 'ehlo',
  answer: Array.from({ length: 100 }, () => `250-${'x'.repeat(1000)}`),
  commands: 'EHLO',
  session: 'mx ehlo: a reply of more than 65536 bytes',
});
