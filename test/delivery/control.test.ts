import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { HOUR } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createControlOrders, createControls, type QueueControlInput } from '../../src/delivery/control.ts';
import { toml } from '../support/daemon.ts';
import { startStore } from '../support/store.ts';

function setup() {
  const { dir, tables, writer, clock } = startStore();
  const env = { POSTRIDER_DELIVERY__EGRESS: toml([{ name: 'a', pools: ['bulk'] }]) };
  const config = loadConfig({ cwd: dir, env });
  const lines: Record<string, unknown>[] = [];
  let changes = 0;
  let retries = 0;
  const log = createLog(
    { level: 'info', hashAddresses: true },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const controls = createControls(
    { clock, log, tables, writer },
    { onChange: () => void changes++, onRetried: () => void retries++ },
  );
  const orders = createControlOrders({ tables, writer, clock, config });
  const input = (fields: Partial<QueueControlInput> = {}): QueueControlInput => ({
    action: 'pause',
    scope: 'destination',
    target: 'Example.NET.',
    reason: ' maintenance ',
    until: null,
    ...fields,
  });
  return { orders, controls, clock, input, lines, changes: () => changes, retries: () => retries, writer };
}

describe('controls', () => {
  it('are stored with a normalized target, listed and removed', async () => {
    const { orders, input } = setup();
    expect(await orders.create(input(), 'key_one')).toMatchObject({
      scope: 'destination',
      target: 'example.net',
      reason: 'maintenance',
      createdBy: 'key_one',
    });
    expect(orders.list()).toHaveLength(1);
    expect(await orders.remove('destination', 'EXAMPLE.net')).toMatchObject({ target: 'example.net' });
    expect(await orders.remove('destination', 'example.net')).toMatchObject({
      code: 'NOT_FOUND',
      message: 'Mail to example.net is neither paused nor rejected: see "postrider queue pauses"',
    });
    expect(await orders.remove('account', 'acct_one')).toMatchObject({
      message: expect.stringContaining('Mail of account acct_one is not paused'),
    });
  });

  it('replace the control of the same target', async () => {
    const { orders, input } = setup();
    await orders.create(input(), 'one');
    await orders.create(input({ action: 'bounce', reason: 'closed' }), 'two');
    expect(orders.list()).toMatchObject([{ action: 'bounce', reason: 'closed', createdBy: 'two' }]);
  });

  it.each<[string, Partial<QueueControlInput>, string]>([
    ['an empty reason', { reason: ' ' }, 'reason'],
    ['a line break in the reason', { reason: 'a\nb' }, 'reason'],
    ['a long reason', { reason: 'x'.repeat(201) }, 'reason'],
    ['a time in the past', { until: 0 }, 'until'],
    ['a target that is no domain', { target: 'not a domain' }, 'target'],
    ['an unknown pool', { scope: 'pool', target: 'nowhere' }, 'target'],
    ['a rejected account', { action: 'bounce', scope: 'account', target: 'acct_one' }, 'scope'],
  ])('refuse %s', async (_, fields, field) => {
    const { orders, input } = setup();
    const refusal = await orders.create(input(fields), 'one');
    if (!isRefusal(refusal)) throw new Error('it was created');
    expect(refusal).toMatchObject({ code: 'VALIDATION_ERROR', extras: { details: [{ field }] } });
    expect(orders.list()).toEqual([]);
  });

  it('refuse an unknown account, and more than the limit', async () => {
    const { orders, input } = setup();
    expect(await orders.create(input({ scope: 'account', target: 'acct_none' }), 'one')).toMatchObject({
      code: 'ACCOUNT_NOT_FOUND',
    });
    for (let n = 0; n < 500; n++) await orders.create(input({ target: `d${n}.example` }), 'one');
    expect(await orders.create(input(), 'one')).toMatchObject({ code: 'LIMIT_REACHED' });
    expect(await orders.create(input({ target: 'd7.example' }), 'two')).toMatchObject({ createdBy: 'two' });
  });
});

describe('the copy of the daemon', () => {
  it('follows changes and logs each once', async () => {
    const { orders, controls, input, lines, changes } = setup();
    expect(controls.refresh()).toBe(false);
    await orders.create(input(), 'command line');
    expect(controls.refresh()).toBe(true);
    expect(controls.refresh()).toBe(false);
    expect(changes()).toBe(1);
    const key = { account_id: 'acct_one', destination: 'example.net' };
    expect(controls.ofKey(key)).toMatchObject({ action: 'pause' });
    await orders.remove('destination', 'example.net');
    controls.refresh();
    expect(controls.ofKey(key)).toBeNull();
    expect(lines.map(({ msg, target, createdBy }) => ({ msg, target, createdBy }))).toEqual([
      { msg: 'queue control in force', target: 'example.net', createdBy: 'command line' },
      { msg: 'queue control ended', target: 'example.net', createdBy: 'command line' },
    ]);
  });

  it('notices retries of the operator, also of another process', async () => {
    const { controls, writer, retries } = setup();
    controls.start();
    await writer.run(({ settings }) => settings.countRetry());
    await expect.poll(retries).toBe(1);
    await writer.run(({ settings }) => {
      settings.countRetry();
      settings.countRetry();
    });
    await expect.poll(retries).toBe(2);
    await controls.stop();
  });

  it('ends a control at its time', async () => {
    const { orders, controls, input, clock } = setup();
    await orders.create(input({ until: clock.now() + HOUR }), 'one');
    controls.refresh();
    clock.advance(HOUR);
    expect(controls.refresh()).toBe(true);
    expect(controls.list()).toEqual([]);
  });
});
