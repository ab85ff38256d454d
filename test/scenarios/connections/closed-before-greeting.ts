import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'retries a host that closes the connection before the greeting',
  phase: 'greeting',
  answer: 'drop',
  commands: '',
  session: 'mx greeting: server closed the connection before the greeting',
});
