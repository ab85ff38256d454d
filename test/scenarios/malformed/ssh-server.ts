import { failedConnection } from '../support/failed-connection.ts';

export default failedConnection({
  title: 'closes the connection to an SSH server, and retries',
  phase: 'greeting',
  answer: 'SSH-2.0-OpenSSH_9.2p1 Debian-2',
  commands: '',
  session: 'mx greeting: not an SMTP reply: SSH-2.0-OpenSSH_9.2p1 Debian-2',
});
