import { forbiddenAddress } from '../support/forbidden-address.ts';

export default forbiddenAddress(
  'never connects to the loopback address in IPv6 form',
  { AAAA: '::ffff:127.0.0.1' },
  { 'delivery.egress': [{ name: 'main', address6: '::1' }] },
);
