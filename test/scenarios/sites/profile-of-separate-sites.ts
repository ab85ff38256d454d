import { twoCustomers } from '../support/two-customers.ts';

export default twoCustomers(
  'limits the rate to one customer of a mail filter only, when the hosts of that customer request it',
  false,
);
