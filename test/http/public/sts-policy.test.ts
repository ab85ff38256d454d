import { request } from 'undici';
import { expect, it } from 'vitest';
import { STS_HOST, startPublic } from './rig.ts';

it.each([
  [STS_HOST, '/.well-known/mta-sts.txt', 200],
  [STS_HOST, '/.well-known/security.txt', 404],
  ['link.example.com', '/.well-known/mta-sts.txt', 404],
])('the MTA-STS policy is served under its hosts only: %s%s %i', async (host, path, status) => {
  const { base } = await startPublic();
  const response = await request(`${base}${path}`, { headers: { host } });
  expect(response.statusCode).toBe(status);
  const text = await response.body.text();
  if (status === 200) {
    expect(text).toBe('version: STSv1\r\n');
    expect(response.headers['content-type']).toMatch(/^text\/plain/);
  }
});
