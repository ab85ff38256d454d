import { forbiddenAddress } from '../support/forbidden-address.ts';

export default forbiddenAddress('never connects to a link-local address', { A: '169.254.169.254' });
