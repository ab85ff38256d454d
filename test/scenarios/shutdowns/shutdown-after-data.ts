import { shutdown } from '../support/shutdown.ts';

export default shutdown('data', 'after DATA', 'EHLO MAIL RCPT DATA');
