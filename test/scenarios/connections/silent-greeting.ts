import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes a connection without a greeting after a minute',
  phase: 'greeting',
  answer: 'silent',
  commands: '',
  session: 'mx greeting: timed out after 60 s waiting for the greeting',
});
