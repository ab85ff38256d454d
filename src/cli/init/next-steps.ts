import { relative, resolve } from 'node:path';
import { type Installation, installationAt } from '../../config/installations.ts';
import { CONFIG_FILES } from '../../config/load.ts';
import { formatListen, parseListen } from '../../config/setting-types.ts';
import { quoted } from '../program-name.ts';
import { mxAtPort25 } from './config-file.ts';
import type { Created } from './create.ts';

/** A command to run after `init`. */
export interface NextStep {
  command: string;
  /** What to do before it, or to replace in it; null: nothing. */
  note: string | null;
}

/** The commands that lead to the first message, whatever `init` did not create included. */
export function nextSteps(created: Created, name: string): NextStep[] {
  const { configFile, account, domain, hasFooter } = created;
  const installation = installationAt(configFile);
  const packaged = installation?.configFile === configFile ? installation : null;
  const isFound = packaged !== null || configFile === resolve(CONFIG_FILES[0]);
  const option = isFound
    ? instanceOption(packaged)
    : ` --config ${quoted(relative('', configFile) || configFile)}`;
  const program = `${name}${option}`;
  const accountId = account?.accountId ?? PLACEHOLDERS.account;
  const domainName = domain?.name ?? PLACEHOLDERS.domain;
  const footer = '--company "Example Ltd" --address "1 High Street, Sampletown, AB1 2CD, GB"';
  const steps: NextStep[] = [
    { command: packaged === null ? `${program} serve` : startOf(packaged), note: null },
  ];
  if (account === null)
    steps.push({
      command: `${program} account create --name "Example" ${footer}`,
      note: 'with your name and address; prints the id of the account and its API keys',
    });
  else if (!hasFooter)
    steps.push({
      command: `${program} account update ${accountId} ${footer}`,
      note: 'with your name and address: no message is sent without them',
    });
  if (domain === null)
    steps.push({
      command: `${program} domain add ${domainName} --account ${accountId} --use-case tx-local`,
      note: 'with your domain; prints its DNS records',
    });
  steps.push(
    {
      command: `${program} domain verify ${domainName}`,
      note: 'when the DNS records of the platform and of the domain are published',
    },
    firstMessage(created.apiListen, account, domainName),
  );
  return steps;
}

const instanceOption = (installation: Installation | null) =>
  installation === null || installation.instance === null ? '' : ` --instance ${installation.instance}`;

/** The package has enabled the unit of the only daemon. */
function startOf({ instance, unit }: Installation): string {
  return instance === null ? `systemctl start ${unit}` : `systemctl enable --now ${unit}`;
}

/** What is missing for bounces to arrive: other servers connect to port 25. Null: nothing, or the operator chose to receive none. */
export function mxNote({ mxListen, sourceAddress, configFile }: Created): string | null {
  if (mxListen === 'off' || parseListen(mxListen)?.port === SMTP_PORT) return null;
  return `The MX listener is at ${mxListen}. Bounces, complaints and reports do not arrive until port 25 is redirected to it, or until mx.listen in ${configFile} is "${mxAtPort25(sourceAddress)}": stop another mail server that uses the port first (ss -ltnp 'sport = :25').`;
}

const SMTP_PORT = 25;

/** A transactional message over the API; the response contains the result of its delivery. */
function firstMessage(listen: string, account: Created['account'], domain: string): NextStep {
  const { host, port } = parseListen(listen) ?? { host: '', port: 0 };
  const authority = formatListen({ host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port });
  const body = JSON.stringify({
    from: `hello@${domain}`,
    to: PLACEHOLDERS.recipient,
    subject: 'The first message',
    html: '<p>It works.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  });
  const headers = [
    `X-Id: ${account?.accountId ?? PLACEHOLDERS.account}`,
    `X-Api-Key: ${account?.keys['transactional'] ?? PLACEHOLDERS.key}`,
    'Content-Type: application/json',
    'Prefer: wait=10',
  ];
  const command = `curl -sS http://${authority}/transactional/send ${headers.map((header) => `-H '${header}'`).join(' ')} -d '${body}'`;
  const placeholders = Object.values(PLACEHOLDERS).filter((text) => command.includes(text));
  return { command, note: `with your own values instead of ${placeholders.join(', ')}` };
}

const PLACEHOLDERS = {
  account: 'ACCOUNT_ID',
  key: 'TRANSACTIONAL_KEY',
  domain: 'example.com',
  recipient: 'you@example.org',
};
