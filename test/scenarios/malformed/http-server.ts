import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection to an HTTP server, and retries',
  phase: 'greeting',
  answer: ['HTTP/1.1 400 Bad Request', 'Connection: close', '', '<h1>Bad Request</h1>'],
  commands: '',
  session: 'mx greeting: not an SMTP reply: HTTP/1.1 400 Bad Request',
});
