import type { ScenarioRun } from './run.ts';

type Scope = 'destination' | 'site' | 'account' | 'pool';

const CONTROLS = '/web-setup/queue/controls';

/** Pauses mail, or rejects the mail to a destination, as the operator. Default target: the destination of the scenario. */
export async function control(
  { env, domain }: ScenarioRun,
  action: 'pause' | 'bounce',
  { scope = 'destination', target = domain }: { scope?: Scope; target?: string } = {},
): Promise<void> {
  await env.api.post(CONTROLS, { action, scope, target, reason: 'maintenance' });
}

/** Deletes a control. */
export async function resume(
  { env, domain }: ScenarioRun,
  { scope = 'destination', target = domain }: { scope?: Scope; target?: string } = {},
): Promise<void> {
  const { status, text } = await env.api.call('DELETE', `${CONTROLS}/${scope}/${encodeURIComponent(target)}`);
  if (status !== 200) throw new Error(`the control was not deleted: ${status} ${text}`);
}

/** Purges or reroutes all queued mail to the destination. Returns the number of messages changed. */
export async function changeQueued(
  { env, domain }: ScenarioRun,
  operation: 'purge' | 'reroute',
  more: object,
): Promise<number> {
  const body = { filter: { destination: domain }, ...more };
  const { data } = await env.api.post<{ changed: number }>(`/web-setup/queue/${operation}`, body);
  return data.changed;
}
