import { twoCustomers } from '../support/two-customers.ts';

export default twoCustomers(
  'limits the rate to all hosts of a shared profile when one of them requests it',
  true,
);
