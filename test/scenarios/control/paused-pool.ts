import { paused } from '../support/paused.ts';

export default paused('does not send the mail of an egress pool while it is paused', () => ({
  scope: 'pool',
  target: 'default',
}));
