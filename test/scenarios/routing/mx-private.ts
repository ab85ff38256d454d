import { forbiddenAddress } from '../support/forbidden-address.ts';

export default forbiddenAddress('never connects to a private address', { A: '10.1.2.3' });
