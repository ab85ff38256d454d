import { twoCustomers } from '../support/two-customers.ts';

export default twoCustomers('sends less to all hosts of a profile when one of them asks for it', true);
