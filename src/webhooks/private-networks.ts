import { networkInterfaces } from 'node:os';
import { listenersOf } from '../config/listeners.ts';
import type { Config } from '../config/schema.ts';
import { isLoopback } from '../dns/address-kinds.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Whether webhooks may call private addresses. Without the setting, only the single account of an installation without
 * the console may: it is the operator's. Others would read the beginning of the responses of internal services.
 */
export function mayCallPrivateNetworks(
  { webhooks, console }: Pick<Config, 'webhooks' | 'console'>,
  tables: Tables,
): boolean {
  const isSingle = () =>
    (tables.accounts.page({ search: null, afterId: null, limit: 2 })?.rows.length ?? 0) <= 1;
  return webhooks.allowPrivateNetworks ?? (console.listen === 'off' && isSingle());
}

/** The ports of the listeners of this daemon, which webhooks never call at an address of this machine. */
export function ownPorts(config: Config): ReadonlySet<number> {
  return new Set(listenersOf(config).map(({ address }) => address.port));
}

/** Whether the address belongs to this machine. */
export function isOwnAddress(address: string): boolean {
  return (
    isLoopback(address) ||
    address === '0.0.0.0' ||
    address === '::' ||
    Object.values(networkInterfaces()).some((found) => found?.some((each) => each.address === address))
  );
}
