import { twoCustomers } from '../support/two-customers.ts';

export default twoCustomers(
  'sends less to one customer of a mail filter alone when its hosts ask for it',
  false,
);
