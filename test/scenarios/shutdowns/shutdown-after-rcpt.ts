import { shutdown } from '../support/shutdown.ts';

export default shutdown('rcpt', 'after RCPT', 'EHLO MAIL RCPT');
