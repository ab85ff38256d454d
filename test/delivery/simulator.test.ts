import { expect, it } from 'vitest';
import { createTestDelivery } from './setup.ts';

it.each(['constructor', '__proto__', 'nobody'])(
  'bounces mail to %s@, which is no address of the simulator',
  async (user) => {
    const { delivery, put, status, tables } = await createTestDelivery();
    const [message] = put([`${user}@simulator.mail.test`], { simulated: 1 });
    if (message === undefined) throw new Error('no message');
    delivery.start();
    await expect.poll(() => status(message), { timeout: 60_000 }).toBe('bounced');
    const bounce = tables.events.ofMessage(message.seq).at(-1);
    expect(JSON.parse(bounce?.data ?? '')).toMatchObject({ smtpCode: 550, enhancedCode: '5.1.1' });
  },
);
