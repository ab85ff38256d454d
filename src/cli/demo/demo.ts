import { Command } from 'commander';
import { loadConfig } from '../../config/load.ts';
import { systemClock } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { isPortInUse } from '../../core/operator-fault.ts';
import { systemRandom } from '../../core/random.ts';
import { type Daemon, startDaemon } from '../../daemon.ts';
import { createResolver } from '../../dns/resolver.ts';
import { READER } from './story/newsletter.ts';
import { type Ending, tellStory } from './story/story.ts';
import { createTeller } from './story/teller.ts';
import { temporaryDataDir } from './world/data-dir.ts';
import { startPrivateDns } from './world/dns.ts';
import { sendLateBounce } from './world/late-bounce.ts';
import { GONE_USER, NAMES, UNKNOWN_USER } from './world/names.ts';
import { startReceiver } from './world/receiver.ts';
import { startShop } from './world/shop.ts';

/** `postrider demo`: the whole product on one machine with nothing else installed. */
export function demoCommand(print: (text: string) => void): Command {
  return new Command('demo')
    .description(
      'show the whole product on this machine: private DNS, a receiving mail server, real mail between',
    )
    .option('--port <port>', 'port of the API', '8080')
    .option('--exit', 'end after the story instead of staying up')
    .addHelpText(
      'after',
      '\nNothing leaves the machine, and nothing is kept: the data directory is a temporary one.',
    )
    .action((options: { port: string; exit?: boolean }) => runDemo(options, print));
}

async function runDemo(
  options: { port: string; exit?: boolean },
  print: (text: string) => void,
): Promise<void> {
  /** What was started, closed in reverse order however the demo ends. */
  const cleanup: (() => Promise<unknown> | void)[] = [];
  try {
    const data = temporaryDataDir();
    cleanup.push(data.remove);
    const dns = await startPrivateDns();
    cleanup.push(dns.close);
    const resolver = createResolver({
      resolvers: [dns.address],
      timeoutMs: 2000,
      clock: systemClock,
      random: systemRandom,
    });
    cleanup.push(resolver.close);
    let mxPort = 0;
    const receiver = await startReceiver({ resolver, sendBack: (mail) => sendLateBounce(mail, mxPort) });
    cleanup.push(receiver.close);
    const shop = await startShop();
    cleanup.push(shop.close);
    const daemon = await startOnAnyPort(options.port, {
      POSTRIDER_HOSTNAME: NAMES.platform,
      POSTRIDER_DATA__DIR: data.dir,
      POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:0',
      POSTRIDER_DNS__RESOLVERS: `["${dns.address}"]`,
      POSTRIDER_MX__LISTEN: '127.0.0.1:0',
      POSTRIDER_DELIVERY__PORT: String(receiver.port),
      POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true',
      POSTRIDER_LIMITS__FREEDISKBYTES: '0',
    });
    cleanup.push(daemon.stop);
    mxPort = daemon.mxPort ?? 0;
    print('Postrider: the main job, end to end, on this machine alone.');
    const ending = await tellStory({ daemon, dns, receiver, shop, print });
    print('\nThat was the main job.');
    if (options.exit === true) return;
    print(invitation(daemon.apiUrl, ending));
    const tell = createTeller(print);
    receiver.onMail((mail) => {
      print('\nA mail arrived:');
      tell.mail(mail);
    });
    shop.onCall((call) => tell.webhook([call]));
    await untilTold();
    print('\nGood-bye.');
  } finally {
    for (const close of cleanup.toReversed()) await close();
  }
}

/** On the port that was asked for, or on any free one when that is in use. Reads no configuration file. */
async function startOnAnyPort(port: string, env: Record<string, string>): Promise<Daemon> {
  const log = createLog({ level: 'warn', hashAddresses: false });
  const start = (listen: string) =>
    startDaemon(loadConfig({ file: null, env: { ...env, POSTRIDER_API__LISTEN: listen } }), {
      clock: systemClock,
      random: systemRandom,
      log,
    });
  try {
    return await start(`127.0.0.1:${port}`);
  } catch (error) {
    if (!isPortInUse(error)) throw error;
    return start('127.0.0.1:0');
  }
}

function invitation(apiUrl: string, { accountId, keys, webhookId, subscriptionGroupId }: Ending): string {
  return `
It stays up. Its base address is ${apiUrl}, the documentation ${apiUrl}/docs.
Try it yourself: paste into another terminal, and watch here what arrives.

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

Mail to any address arrives here, except to ${UNKNOWN_USER}@…, who bounces, and ${GONE_USER}@…, who bounces later;
bounced@simulator.${NAMES.platform} and its siblings play out an outcome. Ctrl-C ends the demo.`;
}

function untilTold(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}
