import { expect } from 'vitest';
import { bounced } from '../support/attempts.ts';
import { SENDERS } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

const HTML = '<p>Again.</p>{{company_address_html}}{{unsubscribe_email_html}}';

export default {
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
} satisfies Scenario;
