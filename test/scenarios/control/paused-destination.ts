import { paused } from '../support/paused.ts';

export default paused(
  'holds the mail to a destination that is paused, and sends it when it is resumed',
  ({ domain }) => ({ scope: 'destination', target: domain }),
);
