import { afterEach, beforeEach, expect, it } from 'vitest';
import { hideUrls } from '../../../src/http/console/hidden-urls.ts';
import { Reply, routesOf } from '../../../src/http/route.ts';
import { startConsole, type TestConsole } from './harness.ts';

const CLICKED = 'https://shop.example/reset?token=secret#part';
const RECEIVER = 'https://hooks.example/services/secret';

const route = routesOf({ tag: 'Test', scope: 'setup', permissions: ['read', 'operator'] });
const described = { summary: 'Test', operationId: 'test' };

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole({
    routes: () => [
      route('GET /web-setup/events', {
        ...described,
        hidesUrls: 'query',
        handle: () => ({ events: [{ event: 'email_clicked', url: CLICKED }] }),
      }),
      route('GET /web-setup/webhooks', {
        ...described,
        hidesUrls: 'path',
        handle: () => new Reply({ data: { webhooks: [{ name: 'shop', url: RECEIVER }] } }),
      }),
    ],
  });
});
afterEach(() => test.stop());

it.each([
  ['owner', CLICKED, RECEIVER],
  ['developer', CLICKED, RECEIVER],
  ['author', 'https://shop.example/reset?…', 'https://hooks.example/…'],
  ['viewer', 'https://shop.example/reset?…', 'https://hooks.example/…'],
] as const)('shows a %s the clicked URL %s and the webhook URL %s', async (role, clicked, receiver) => {
  const member = await test.member(role);
  const read = async (path: string) =>
    (await member.get(`/console/api/web-setup/${path}`, test.account)).data;
  expect(await read('events')).toEqual({ events: [{ event: 'email_clicked', url: clicked }] });
  expect(await read('webhooks')).toEqual({ webhooks: [{ name: 'shop', url: receiver }] });
});

it('leaves URLs without secrets, and everything else', () => {
  const plain = { url: 'https://shop.example/a', count: 1, links: [{ url: 'https://shop.example/' }, null] };
  expect(hideUrls(plain, 'query')).toEqual(plain);
  expect(hideUrls({ url: 'https://hooks.example/' }, 'path')).toEqual({ url: 'https://hooks.example/' });
});
