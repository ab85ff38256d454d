import { createServer, type ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { whenClosed } from '../../src/http/call-signals.ts';
import { portOf } from '../support/https-client.ts';

it('releases when the response is closed, and immediately if it was closed before', async () => {
  const responses: ServerResponse[] = [];
  let released = 0;
  const release = () => {
    released++;
  };
  const server = createServer((_req, res) => {
    responses.push(res);
    whenClosed(res, release);
    res.end();
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await fetch(`http://127.0.0.1:${portOf(server)}/`);
  await expect.poll(() => released).toBe(1);
  for (const response of responses) whenClosed(response, release);
  expect(released).toBe(2);
});
