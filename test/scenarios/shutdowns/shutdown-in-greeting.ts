import { shutdown } from '../support/shutdown.ts';

export default shutdown('greeting', 'in place of the greeting', '');
