import { paused } from '../support/paused.ts';

export default paused('holds the mail of an egress pool that is paused', () => ({
  scope: 'pool',
  target: 'default',
}));
