import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createAttemptResults } from '../../src/delivery/attempt-result.ts';
import { playSimulation, simulatorDomain } from '../../src/delivery/simulator.ts';
import { messageHistory, presentTimeline } from '../../src/events/message-view.ts';
import { enqueue, startStore } from '../support/store.ts';
import { createTestDelivery } from './setup.ts';

it.each([
  ['complained', ['email_sent', 'attempt', 'email_delivered', 'email_complained']],
  ['asyncbounced', ['email_sent', 'attempt', 'email_delivered', 'email_bounced']],
  ['clicked', ['email_sent', 'attempt', 'email_delivered', 'email_opened', 'email_clicked']],
])('begins the timeline of %s@ with email_sent, within one millisecond', async (user, expected) => {
  const { dir, tables, recorder, clock, writer } = startStore();
  const { seq, message_id } = enqueue(tables, clock.now(), {
    recipient: `${user}@simulator.mail.test`,
    simulated: 1,
  });
  const { retry } = loadConfig({ cwd: dir, env: {} }).delivery;
  const results = createAttemptResults(
    { clock, expiry: createExpiryClock(clock, clock), random: systemRandom },
    { recorder, retry },
  );
  await writer.run((tx) => {
    const message = tx.messages.bySeq(seq);
    if (message !== null) recorder.message(tx, message, { kind: 'email_sent', fields: {} });
    playSimulation({ results, recorder, hostname: 'mail.test' }, tx, seq);
  });
  const history = messageHistory.run(tables, message_id);
  if (history === null) throw new Error('no message');
  expect(presentTimeline(history).map(({ event, type }) => event ?? type)).toEqual(expected);
});

it('delivers simulated mail to addresses that are none of the simulator, whatever their names are', async () => {
  const { delivery, put, status } = await createTestDelivery();
  const messages = put(['bounced@shop.example', 'bounced@simulator.shop.example'], { simulated: 1 });
  delivery.start();
  await expect.poll(() => messages.map(status)).toEqual(['delivered', 'delivered']);
});

it.each(['constructor', '__proto__', 'nobody'])(
  'bounces mail to %s@, which is no address of the simulator',
  async (user) => {
    const { config, delivery, put, status, tables } = await createTestDelivery();
    const [message] = put([`${user}@${simulatorDomain(config.hostname)}`], { simulated: 1 });
    if (message === undefined) throw new Error('no message');
    delivery.start();
    await expect.poll(() => status(message)).toBe('bounced');
    const bounce = tables.events.ofMessage(message.seq).at(-1);
    expect(JSON.parse(bounce?.data ?? '')).toMatchObject({ smtpCode: 550, enhancedCode: '5.1.1' });
  },
);
