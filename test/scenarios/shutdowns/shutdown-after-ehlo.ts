import { shutdown } from '../support/shutdown.ts';

export default shutdown('ehlo', 'after EHLO', 'EHLO');
