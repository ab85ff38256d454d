import { shutdown } from '../support/shutdown.ts';

export default shutdown('dot', 'after the message', 'EHLO MAIL RCPT DATA .');
