import { relative, resolve } from 'node:path';
import { CONFIG_FILES } from '../../config/load.ts';
import { formatListen, parseListen } from '../../config/setting-types.ts';
import type { Created } from './create.ts';

/** A command to run after `init`. */
export interface NextStep {
  command: string;
  /** What to do before it, or to replace in it; null: nothing. */
  note: string | null;
}

/** Three commands that lead to the first message, or to what it needs. */
export function nextSteps(created: Created): NextStep[] {
  const { configFile, account, domain, hasFooter } = created;
  const isSystem = configFile === CONFIG_FILES[1];
  const isFound = isSystem || configFile === resolve(CONFIG_FILES[0]);
  const program = isFound ? 'postrider' : `postrider --config ${relative('', configFile) || configFile}`;
  const start = { command: isSystem ? 'systemctl start postrider' : `${program} serve`, note: null };
  const verify = (name: string) => ({
    command: `${program} domain verify ${name}`,
    note: 'when the DNS records above are published',
  });
  const footer = '--company "Example Ltd" --address "1 High Street, Sampletown, AB1 2CD, GB"';
  if (account === null)
    return [
      start,
      { command: `${program} account create --name "Example" ${footer}`, note: 'with your name and address' },
      { command: `${program} zone`, note: 'prints the DNS records of the platform' },
    ];
  const { accountId } = account;
  if (domain === null)
    return [
      start,
      {
        command: `${program} domain add example.com --account ${accountId} --use-case tx-local`,
        note: 'with your domain; prints its DNS records',
      },
      verify('example.com'),
    ];
  if (!hasFooter)
    return [
      start,
      verify(domain.name),
      {
        command: `${program} account update ${accountId} ${footer}`,
        note: 'with your name and address: no message is sent without them',
      },
    ];
  return [start, verify(domain.name), firstMessage(created.apiListen, account, domain.name)];
}

/** What is missing for bounces to arrive: other servers connect to port 25. Null: nothing, or the operator chose to receive none. */
export function mxNote({ mxListen, configFile }: Created): string | null {
  if (mxListen === 'off' || parseListen(mxListen)?.port === SMTP_PORT) return null;
  return `The MX listener is at ${mxListen}. Bounces, complaints and reports do not arrive until port 25 is redirected to it, or until mx.listen in ${configFile} is "0.0.0.0:25": stop another mail server that uses the port first (ss -ltnp 'sport = :25').`;
}

const SMTP_PORT = 25;

/** A transactional message over the API; the response contains the result of its delivery. */
function firstMessage(
  listen: string,
  { accountId, keys }: { accountId: string; keys: Record<string, string> },
  domain: string,
): NextStep {
  const { host, port } = parseListen(listen) ?? { host: '', port: 0 };
  const authority = formatListen({ host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port });
  const body = JSON.stringify({
    from: `hello@${domain}`,
    to: PLACEHOLDER,
    subject: 'The first message',
    html: '<p>It works.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  });
  const headers = [
    `X-Id: ${accountId}`,
    `X-Api-Key: ${keys['transactional']}`,
    'Content-Type: application/json',
    'Prefer: wait=10',
  ];
  return {
    command: `curl -sS http://${authority}/transactional/send ${headers.map((header) => `-H '${header}'`).join(' ')} -d '${body}'`,
    note: `with your own address instead of ${PLACEHOLDER}`,
  };
}

const PLACEHOLDER = 'you@example.org';
