import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../config/load.ts';
import { monotonicClock, systemClock } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { isPortInUse } from '../../core/operator-fault.ts';
import { systemRandom } from '../../core/random.ts';
import { isRefusal } from '../../core/refusal.ts';
import { type Daemon, startDaemon } from '../../daemon.ts';
import { createResolver } from '../../dns/resolver.ts';
import { linkAddress } from '../../people/links.ts';
import { stopSignal } from '../signals.ts';
import {
  GONE_USER,
  NAMES,
  startPrivateDns,
  startReceiver,
  startWebhookReceiver,
  UNKNOWN_USER,
} from './servers.ts';
import { callLines, createOutput, type DemoResult, mailLines, READER, runSteps } from './steps.ts';

/** Runs the main flow on servers of this process, then the daemon until a signal, unless `exit`. Prints each step. */
export async function runDemo(
  options: { port: number; exit: boolean },
  print: (text: string) => void,
): Promise<void> {
  /** Called in reverse order. */
  const cleanup: (() => Promise<unknown> | void)[] = [];
  const stopped = stopSignal();
  try {
    const dataDir = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
    cleanup.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const dns = await startPrivateDns();
    cleanup.push(dns.close);
    const resolver = createResolver({
      resolvers: [dns.address],
      timeoutMs: 2000,
      monotonic: monotonicClock,
      random: systemRandom,
    });
    cleanup.push(resolver.close);
    let mxPort = 0;
    const receiver = await startReceiver(resolver, () => mxPort);
    cleanup.push(receiver.close);
    const webhooks = await startWebhookReceiver();
    cleanup.push(webhooks.close);
    const daemon = await startOnAnyPort(options.port, {
      POSTRIDER_HOSTNAME: NAMES.platform,
      POSTRIDER_DATA__DIR: dataDir,
      POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:0',
      POSTRIDER_CONSOLE__LISTEN: '127.0.0.1:0',
      POSTRIDER_DNS__RESOLVERS: `["${dns.address}"]`,
      POSTRIDER_MX__LISTEN: '127.0.0.1:0',
      POSTRIDER_DELIVERY__PORT: String(receiver.port),
      POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true',
      POSTRIDER_LIMITS__FREEDISKBYTES: '0',
    });
    cleanup.push(daemon.stop);
    mxPort = daemon.mxPort ?? 0;
    print('Postrider: the main flow from end to end, on this machine only.');
    let isStopped = false;
    const steps = runSteps({ daemon, dns, receiver, webhooks }, (text) => {
      if (!isStopped) print(text);
    });
    const result = await Promise.race([steps, stopped]);
    if (typeof result === 'string') {
      isStopped = true;
      // The step in progress fails when the servers close.
      steps.catch(() => {});
      print('\nStopped.');
      return;
    }
    print('\nAll steps succeeded.');
    if (options.exit) return;
    print(await consoleAddress(daemon));
    print(commands(daemon.apiUrl, result));
    const { lines } = createOutput(print);
    receiver.onMail((mail) => {
      print('\nA message arrived:');
      lines(mailLines(mail));
    });
    webhooks.onCall((call) => lines(callLines([call])));
    await stopped;
    print('\nStopped.');
  } finally {
    for (const close of cleanup.toReversed()) await close();
  }
}

/** Starts the daemon on `port`, or on any free port if that is in use. Reads no configuration file. */
async function startOnAnyPort(port: number, env: Record<string, string>): Promise<Daemon> {
  const log = createLog({ level: 'warn', hashAddresses: false });
  const start = (listen: string) =>
    startDaemon(
      loadConfig({
        file: null,
        env: { POSTRIDER_WEBHOOKS__ALLOWPRIVATENETWORKS: 'true', ...env, POSTRIDER_API__LISTEN: listen },
      }),
      { clock: systemClock, random: systemRandom, log },
    );
  try {
    return await start(`127.0.0.1:${port}`);
  } catch (error) {
    if (!isPortInUse(error)) throw error;
    return start('127.0.0.1:0');
  }
}

/** The address of the console, with a link that signs in an operator; '' if it does not run. */
async function consoleAddress({ consoleUrl, people }: Daemon): Promise<string> {
  if (consoleUrl === null) return '';
  const created = await people.createOperator({ email: `operator@${NAMES.platform}`, name: 'Operator' });
  if (isRefusal(created)) throw new Error(created.message);
  return `
The console is at ${consoleUrl}/console/. This link signs in once, within 15 minutes:

  ${linkAddress(consoleUrl, created.link)}`;
}

function commands(apiUrl: string, { accountId, keys, webhookId, subscriptionGroupId }: DemoResult): string {
  return `
The daemon keeps running at ${apiUrl}; its documentation is at ${apiUrl}/docs.
Paste these commands into another terminal; messages and webhook calls that arrive are printed here:

  export BASE=${apiUrl} ID=${accountId}
  export SETUP_KEY=${keys.setup}
  export TX_KEY=${keys.transactional}
  export MK_KEY=${keys.marketing}

  curl -s $BASE/transactional/send -H "X-Api-Key: $TX_KEY" -H "X-Id: $ID" \\
    -H 'Content-Type: application/json' -d '{
      "from": "orders@${NAMES.sender}", "to": "${READER}", "subject": "Hello",
      "html": "<p>Hello!</p>{{company_address_html}} {{unsubscribe_email_html}}" }'
  curl -s $BASE/marketing/send -H "X-Api-Key: $MK_KEY" -H "X-Id: $ID" \\
    -H 'Content-Type: application/json' -d '{
      "from": "news@${NAMES.sender}", "to": "${READER}", "subject": "News",
      "subscriptionGroupId": "${subscriptionGroupId}",
      "html": "<p>News!</p>{{company_address_html}} {{unsubscribe_email_html}}" }'

  curl -s $BASE/web-setup/domains -H "X-Api-Key: $SETUP_KEY" -H "X-Id: $ID"
  curl -s $BASE/web-setup/messages -H "X-Api-Key: $SETUP_KEY" -H "X-Id: $ID"
  curl -s $BASE/web-setup/events -H "X-Api-Key: $SETUP_KEY" -H "X-Id: $ID"
  curl -s $BASE/web-setup/webhooks/${webhookId}/deliveries \\
    -H "X-Api-Key: $SETUP_KEY" -H "X-Id: $ID"

Messages to any address arrive here. ${UNKNOWN_USER}@… bounces immediately, ${GONE_USER}@… later. The simulator addresses, such as
bounced@simulator.${NAMES.platform}, produce other results. Press Ctrl-C to end the demo.`;
}
