import { paused } from '../support/paused.ts';

export default paused('holds the mail of an account that is paused', ({ env }) => ({
  scope: 'account',
  target: env.api.accountId,
}));
