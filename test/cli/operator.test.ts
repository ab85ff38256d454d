import { afterEach, beforeEach, expect, it } from 'vitest';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
});
afterEach(() => shell.remove());

it('operator create prints a link with a token in its fragment', async () => {
  const created = await shell.json(
    'operator',
    'create',
    '--email',
    'Ops@example.com',
    '--name',
    'Ada',
    '--json',
  );
  expect(created).toMatchObject({
    id: expect.stringMatching(/^person_\d+_[0-9a-z]{12}$/),
    email: 'Ops@example.com',
    name: 'Ada',
    operator: true,
    link: expect.stringMatching(/^http:\/\/localhost:8082\/console\/#\/link\/[0-9A-Za-z]{43}$/),
  });
});

it('operator link prints a new link', async () => {
  const first = await shell.json('operator', 'create', '--email', 'ops@example.com', '--json');
  const second = await shell.json('operator', 'link', 'OPS@example.com', '--json');
  expect(second).toMatchObject({ email: 'ops@example.com' });
  expect(second).not.toMatchObject({ link: Reflect.get(Object(first), 'link') });
});

it('operator link finds an address by the Unicode form of its domain', async () => {
  await shell.json('operator', 'create', '--email', 'ops@bücher.example', '--json');
  expect(await shell.json('operator', 'link', 'OPS@BÜCHER.example', '--json')).toMatchObject({
    email: 'ops@xn--bcher-kva.example',
  });
});

it('operator list and delete keep the last operator', async () => {
  await shell.json('operator', 'create', '--email', 'one@example.com', '--json');
  await shell.json('operator', 'create', '--email', 'two@example.com', '--json');
  await shell.json('operator', 'delete', 'one@example.com', '--yes', '--json');
  expect(await shell.json('operator', 'list', '--json')).toMatchObject([{ email: 'two@example.com' }]);
  const last = await shell.run('operator', 'delete', 'two@example.com', '--yes');
  expect(last).toMatchObject({ status: 1, err: expect.stringContaining('last active operator') });
});

it.each(['nobody', 'Ada <ada@example.com>', 'a@example.com, b@example.com'])(
  'operator create refuses %s',
  async (email) => {
    expect(await shell.run('operator', 'create', '--email', email)).toMatchObject({ status: 2 });
  },
);

it('operator link refuses an address that is not known', async () => {
  await shell.json('operator', 'create', '--email', 'one@example.com', '--json');
  expect(await shell.run('operator', 'link', 'two@example.com')).toMatchObject({
    status: 1,
    err: expect.stringContaining('There is no person with the address two@example.com'),
  });
});
