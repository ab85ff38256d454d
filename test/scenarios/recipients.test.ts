import { expect } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { eventually } from '../support/eventually.ts';
import { inTurn } from './support/answers.ts';
import { bounced } from './support/attempts.ts';
import { SENDERS } from './support/environment.ts';
import { registerScenarios } from './support/register.ts';

const HTML = '<p>Again.</p>{{company_address_html}}{{unsubscribe_email_html}}';

registerScenarios('recipients', {
  'blocklisted-sender': {
    title: 'does not suppress the recipient when our address is blocklisted, even with the code 550 5.1.1',
    hosts: {
      mx: { script: { rcpt: '550 5.1.1 Mail from 192.0.2.25 rejected: listed at zen.spamhaus.org' } },
    },
    messages: {
      ada: {
        attempts: [bounced('550 5.1.1', 'reputation-block', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'block', suppressed: false },
      },
    },
  },
  'bounced-while-another-waits': {
    title: 'fails a deferred message when another message to the same recipient bounces and suppresses it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later', '550 5.1.1 No such user') } } },
    messages: {
      ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
    },
    suppressed: ['ada'],
    play: async (run) => {
      const first = await run.send('ada');
      await run.settle();
      await run.send('ada');
      await run.settle();
      await run.env.advance(10 * MINUTE);
      await eventually(
        'the first message to fail',
        async () => (await run.message(first)).status === 'failed',
      );
      expect((await run.message(first)).timeline.at(-1)).toMatchObject({ event: 'email_suppressed' });
      expect(run.sink('mx').sessions).toHaveLength(1);
    },
  },
  content: {
    title: 'reports that the content was rejected, without suppressing the recipient',
    hosts: {
      mx: {
        script: {
          dot: '552 5.7.0 This message was blocked because its content presents a potential security issue',
        },
      },
    },
    messages: {
      ada: {
        attempts: [bounced('552 5.7.0', 'content-rejected', 'mx dot 552')],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
        lastEvent: { bounceType: 'block' },
      },
    },
  },
  'disabled-mailbox': {
    title: 'suppresses a recipient whose mailbox is disabled',
    hosts: { mx: { script: { rcpt: '550 5.2.1 The email account that you tried to reach is disabled' } } },
    messages: {
      ada: {
        attempts: [bounced('550 5.2.1', 'inactive-mailbox', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', suppressed: true },
      },
    },
    suppressed: ['ada'],
  },
  'full-mailbox': {
    title: 'does not suppress a recipient whose mailbox is full',
    hosts: { mx: { script: { rcpt: '552 5.2.2 The recipient mailbox is full' } } },
    messages: {
      ada: {
        attempts: [bounced('552 5.2.2', 'mailbox-full', 'mx rcpt 552')],
        status: 'bounced',
        lastEvent: { bounceType: 'soft', suppressed: false },
      },
    },
  },
  moved: {
    title: 'suppresses a recipient who has moved',
    hosts: { mx: { script: { rcpt: '551 5.1.6 User has moved to another address' } } },
    messages: {
      ada: {
        attempts: [bounced('551 5.1.6', 'invalid-recipient', 'mx rcpt 551')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', suppressed: true },
      },
    },
    suppressed: ['ada'],
  },
  'refused-after-suppression': {
    title: 'refuses a further send to a recipient that does not exist, without opening a connection',
    hosts: { mx: { script: { rcpt: '550 5.1.1 No such user' } } },
    messages: {
      ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT'] },
    suppressed: ['ada'],
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      const body = {
        from: `a@${SENDERS.transactional}`,
        to: `ada@${run.domain}`,
        subject: 'Again',
        html: HTML,
      };
      const { status, error } = await run.env.api.send(body);
      expect([status, error.code]).toEqual([403, 'RECIPIENT_SUPPRESSED']);
    },
  },
  'relaying-denied': {
    title: 'does not suppress the recipient when the host denies relaying',
    hosts: { mx: { script: { rcpt: '554 5.7.1 <ada@recipients.example>: Relay access denied' } } },
    messages: {
      ada: {
        attempts: [bounced('554 5.7.1', 'relay-denied', 'mx rcpt 554')],
        status: 'bounced',
        lastEvent: { bounceType: 'soft', suppressed: false },
      },
    },
  },
  'unauthenticated-sender': {
    title: 'does not suppress the recipient when the sender is not authenticated',
    hosts: {
      mx: { script: { dot: '550 5.7.26 This mail has been blocked because the sender is unauthenticated' } },
    },
    messages: {
      ada: {
        attempts: [bounced('550 5.7.26', 'authentication-failed', 'mx dot 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'block', suppressed: false },
      },
    },
  },
  'unknown-reply-twice': {
    title: 'suppresses a recipient that is rejected with an unclassified 550 on two days',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { rcpt: '550 Nope' } } },
    messages: {
      ada: {
        attempts: [bounced('550', 'unclassified', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { suppressed: true },
      },
    },
    suppressed: ['ada'],
    play: async (run) => {
      const first = await run.send('ada');
      await run.settle();
      expect((await run.message(first)).timeline.at(-1)).toMatchObject({
        event: 'email_bounced',
        suppressed: false,
      });
      await run.env.advance(DAY);
      await run.send('ada');
    },
  },
  'unknown-reply': {
    title: 'does not suppress a recipient after the first unclassified 550',
    hosts: { mx: { script: { rcpt: '550 Nope' } } },
    messages: {
      ada: {
        attempts: [bounced('550', 'unclassified', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', suppressed: false },
      },
    },
  },
});
