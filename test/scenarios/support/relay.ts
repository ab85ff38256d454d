import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExpectedMessage, HostBehavior, Scenario, SettingNames } from './scenario.ts';
import { LISTING } from './secondary-lane.ts';

export const RELAY_LOGIN = { user: 'postrider', password: 'p4ss-Word' } as const;

/**
 * A secondary lane over the host `relay`, which requires a login over TLS. The host `mx` of the destination refuses all
 * mail because our address is blocklisted.
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

/** Returns settings of a secondary lane over the host `relay`, with this password. */
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

/** The attempt after which the message changes to the secondary lane. */
export const LISTED = { reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] } as const;

/** The file is removed with the folder of the test run: temporary-files.ts. */
function passwordFile(password: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'postrider-relay-')), 'password');
  writeFileSync(file, password, { mode: 0o600 });
  return file;
}
