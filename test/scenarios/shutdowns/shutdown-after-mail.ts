import { shutdown } from '../support/shutdown.ts';

export default shutdown('mail', 'after MAIL', 'EHLO MAIL');
