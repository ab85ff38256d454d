import { paused } from '../support/paused.ts';

export default paused('does not send the mail of an account while it is paused', ({ env }) => ({
  scope: 'account',
  target: env.api.accountId,
}));
