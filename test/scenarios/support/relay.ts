import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExpectedMessage, HostBehavior, Scenario, SettingNames } from './scenario.ts';
import { LISTING } from './secondary-lane.ts';

export const RELAY_LOGIN = { user: 'postrider', password: 'p4ss-Word' } as const;

/**
 * A secondary lane over a relay, the host `relay`, which wants a login over TLS. The destination's own host refuses all
 * mail because of our address.
 */
export function overRelay(title: string, relay: HostBehavior, message: ExpectedMessage): Scenario {
  return {
    title,
    settings: relaySettings(RELAY_LOGIN.password),
    hosts: { mx: { script: { rcpt: LISTING } }, relay },
    zone: () => ({ '@': { MX: ['10 mx'] } }),
    messages: { ada: message },
  };
}

export const relaySettings =
  (password: string) =>
  ({ domain, port }: Pick<SettingNames, 'domain' | 'port'>) => ({
    secondary: {
      type: 'relay',
      host: `relay.${domain}`,
      port,
      tls: 'verified',
      user: RELAY_LOGIN.user,
      passwordFile: passwordFile(password),
    },
  });

/** The attempt that changes the lane. */
export const LISTED = { reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] } as const;

/** The file is removed with the folder of the test run: temporary-files.ts. */
function passwordFile(password: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'postrider-relay-')), 'password');
  writeFileSync(file, password, { mode: 0o600 });
  return file;
}
