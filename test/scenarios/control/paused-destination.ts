import { paused } from '../support/paused.ts';

export default paused(
  'does not send the mail to a destination while it is paused, and sends it when it is resumed',
  ({ domain }) => ({ scope: 'destination', target: domain }),
);
