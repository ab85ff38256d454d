import { expect, it } from 'vitest';
import { tlsCheckRoute } from '../../src/http/api/tls-check.ts';
import { startApi } from './harness.ts';

it('answers 200 for a host of ours and 404 for any other, without a key', async () => {
  const api = await startApi({
    options: { openRoutes: [tlsCheckRoute((host) => host === 'link.example.com')] },
  });
  const ask = async (query: string) => (await fetch(`${api.base}/tls-check${query}`)).status;
  expect(await ask('?domain=link.example.com')).toBe(200);
  expect(await ask('?domain=other.example')).toBe(404);
  expect(await ask('?domain=')).toBe(404);
  expect(await ask('')).toBe(404);
  await api.stop();
});
