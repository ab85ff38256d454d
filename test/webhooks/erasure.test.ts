import { describe, expect, it } from 'vitest';
import { createAudience } from '../../src/audience/service.ts';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { exampleEvent } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';
import { startWebhooks } from './setup.ts';

/* Responses of endpoints can contain the name of the recipient: erasure clears them, also those of calls in progress. */
const ADA = 'ada@example.net';

async function startWithAda() {
  const env = await startWebhooks();
  const audience = createAudience(
    { ...env, log: createLog({ level: 'silent', hashAddresses: false }) },
    { recorder: env.recorder, mayAdd: env.limits.mayAdd, responsesKeptMs: 86_400_000 },
  );
  const by = { by: 'key_one', ipAddress: '192.0.2.1', userAgent: 'Shop/1' };
  granted(await audience.contacts.create('acct_one', { email: ADA }, by));
  const { webhookId } = await env.hook('http://127.0.0.1:9/');
  const endpoint = await startEndpoint();
  granted(await env.webhooks.update('acct_one', webhookId, { url: endpoint.url }));
  return {
    env,
    endpoint,
    /** A delivered message with a delivery to the webhook. */
    delivered: async () => {
      const message = await env.sent({ recipient: ADA });
      await env.writer.run((tx) =>
        env.recorder.message(tx, tx.messages.bySeq(message.seq) ?? message, exampleEvent('email_delivered')),
      );
    },
    erase: async () => granted(await audience.erasure.erase('acct_one', emailIdentifier(ADA))),
    answers: async () => {
      const page = { beforeSeq: null, limit: 100 };
      return granted(await env.webhooks.deliveries('acct_one', webhookId, page)).deliveries.map(
        ({ status, responseCode, responseBody }) => ({ status, responseCode, responseBody }),
      );
    },
  };
}

describe('a call about an event after the erasure', () => {
  it('contains neither the client nor the address', async () => {
    const { env, endpoint, erase } = await startWithAda();
    const { seq } = await env.sent({ recipient: ADA });
    await env.writer.run((tx) => tx.queue.remove(seq));
    await erase();
    await env.sendDue();
    const callsBefore = endpoint.received.length;
    await env.writer.run((tx) => {
      const message = tx.messages.bySeq(seq);
      const event = exampleEvent('email_clicked', { url: `https://shop.example/?u=${ADA}` });
      if (message !== null) env.recorder.message(tx, message, event);
    });
    await env.sendDue();
    const objects = endpoint.received.slice(callsBefore).map(({ json }) => json.data.object);
    expect(objects).toMatchObject([{ event: 'email_clicked', url: 'https://shop.example', isFirst: true }]);
    expect(objects[0]).not.toHaveProperty('ip');
    expect(objects[0]).not.toHaveProperty('userAgent');
  });
});

describe('the stored response of an endpoint', () => {
  it('is cleared when the person is erased', async () => {
    const { env, endpoint, delivered, erase, answers } = await startWithAda();
    endpoint.answer(() => ({ status: 200, body: `thanks for ${ADA}` }));
    await delivered();
    await env.sendDue();
    expect(await answers()).toMatchObject([
      { responseBody: `thanks for ${ADA}` },
      { responseBody: `thanks for ${ADA}` },
    ]);
    await erase();
    expect(JSON.stringify(await answers())).not.toContain('ada');
  });

  it.each([
    [200, 'succeeded'],
    [500, 'pending'],
  ])('is not stored when they were erased during the call (%d)', async (status, seen) => {
    const { env, endpoint, delivered, erase, answers } = await startWithAda();
    const release: (() => void)[] = [];
    endpoint.answer((_, response) => {
      release.push(() => response.writeHead(status).end(`thanks for ${ADA}`));
      return 'nothing';
    });
    await delivered();
    await env.sender.round();
    await eventually('both calls to arrive', () => release.length === 2, { everyMs: 5 });
    expect(await erase()).toEqual({ complete: true });
    for (const answer of release) answer();
    await env.sender.idle();
    expect(await answers()).toEqual([
      { status: seen, responseCode: status, responseBody: undefined },
      { status: seen, responseCode: status, responseBody: undefined },
    ]);
  });

  it('is not stored for a retry after they were erased', async () => {
    const { env, endpoint, delivered, erase, answers } = await startWithAda();
    endpoint.answer(() => ({ status: 500, body: `no space for ${ADA}` }));
    await delivered();
    await env.sendDue();
    const callsBefore = endpoint.received.length;
    await erase();
    endpoint.answer(() => ({ status: 200, body: `thanks for ${ADA}` }));
    env.clock.advance(MINUTE);
    await env.sendDue();
    const again = endpoint.received.slice(callsBefore);
    expect(again).toHaveLength(2);
    expect(again.map(({ body }) => body).join('')).not.toContain('ada');
    expect(await answers()).toMatchObject([{ status: 'succeeded' }, { status: 'succeeded' }]);
    expect(JSON.stringify(await answers())).not.toContain('ada');
  });

  it('about other recipients is kept', async () => {
    const { env, endpoint, erase, answers } = await startWithAda();
    const release: (() => void)[] = [];
    endpoint.answer((_, response) => {
      release.push(() => response.writeHead(200).end('thanks for bob'));
      return 'nothing';
    });
    await env.sent({ recipient: 'bob@example.net' });
    await env.sender.round();
    await eventually('the call to arrive', () => release.length === 1, { everyMs: 5 });
    await erase();
    for (const answer of release) answer();
    await env.sender.idle();
    expect(await answers()).toMatchObject([{ responseBody: 'thanks for bob' }]);
  });
});
