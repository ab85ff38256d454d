import { expect, it } from 'vitest';
import type { ReplyRule } from '../../../src/config/reply-rules.ts';
import { dsn } from './mails.ts';
import { RETURN, startMx } from './setup.ts';

it('applies the rules of the operator to replies in bounces, and those of a reload from then on', async () => {
  const delivery: { replies: ReplyRule[] } = {
    replies: [{ text: 'unknown in virtual mailbox', meaning: 'mailbox full' }],
  };
  const setup = await startMx({ delivery });
  const client = await setup.client();
  const bounce = async () => {
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await client.mail('', to, dsn({ recipient: message.recipient }))).toMatch(/^250 /);
    return JSON.parse(setup.tables.events.ofMessage(message.seq).at(-1)?.data ?? '{}');
  };
  expect(await bounce()).toMatchObject({ classification: 'mailbox-full' });
  delivery.replies = [];
  expect(await bounce()).toMatchObject({ classification: 'invalid-recipient' });
  delivery.replies = [{ code: 550, meaning: 'spam' }];
  expect(await bounce()).toMatchObject({ classification: 'spam-block' });
});
