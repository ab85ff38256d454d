import { forbiddenAddress } from '../support/forbidden-address.ts';

export default forbiddenAddress('never connects to the loopback address', { A: '127.0.0.1' });
