import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import type * as z from 'zod';
import { parsePostalAddress } from '../../accounts/postal-address.ts';
import { formatListen, hostName, listen, listenOrOff } from '../../config/setting-types.ts';
import type { DnsView } from '../../dns/dns-view.ts';
import { normalizeDomain } from '../../mail/address.ts';
import { flagOf, type OptionValues, option } from '../command.ts';
import { type Detected, everyAddress, freePortFrom, portState, publicAddressOf } from './detect.ts';
import type { InitQuestion, Prompt } from './prompt.ts';

/** Options of the command line that answer questions. */
export const initOptions = [
  option(
    '--hostname <name>',
    'name in EHLO and of the MX record (default: that of this machine or its PTR record)',
  ),
  option('--output <file>', 'configuration file to write (default: config/postrider.toml)'),
  option('--data <dir>', 'data directory (default: data)'),
  option('--listen <address>', 'address and port of the API (default: 127.0.0.1:8080)'),
  option(
    '--public <address>',
    'address and port of the public pages (default: port 80 of all addresses if it is free and no proxy is planned)',
  ),
  option(
    '--mx <address>',
    'address and port for bounces and reports, or off (default: port 25 of all addresses if it is free)',
  ),
  option('--submission <address>', 'address and port for SMTP submission (default: off)'),
  option('--public-address <ip>', 'address that receivers see (default: that of the host name in DNS)'),
  option(
    '--source-address <ip>',
    'address of this machine for outgoing mail and for the public listeners (default: every address; of an instance the public address, if this machine has it)',
  ),
  option('--tls <kind>', 'acme: certificates of Let’s Encrypt; files: --tls-cert and --tls-key; none'),
  option('--agree-to-terms', 'agree to the terms of the certificate authority (for --tls acme)'),
  option('--acme-email <address>', 'address for notices of the certificate authority'),
  option('--tls-cert <file>', 'certificate of the SMTP listeners, PEM'),
  option('--tls-key <file>', 'its key, PEM'),
  option('--account <name>', 'name of the first account; "-" creates none'),
  option('--company <name>', 'company name in the footer of every message'),
  option('--address <line>', 'postal address in the footer, parts separated by commas'),
  option('--domain <name>', 'first sending domain'),
  option(
    '--other-senders <answer>',
    'yes or no: whether other systems send mail from the domain, so that p=none suffices (default: no)',
  ),
  option(
    '--private-webhooks <answer>',
    'yes or no: whether webhooks may call private addresses, so that every account can reach hosts of your network (default: only with one account and without the console)',
  ),
  option('--use-case <id>', 'use case of the domain', { default: 'tx-local' }),
] as const;
export type InitOptions = OptionValues<typeof initOptions>;

/** acme: obtains certificates for the public pages; files: a certificate for SMTP, the pages behind an HTTPS proxy; none: no TLS. */
export type TlsChoice =
  | { kind: 'acme'; email: string | null }
  | { kind: 'files'; certificateFile: string; keyFile: string }
  | { kind: 'none' };

/** What `init` creates. */
export interface InitPlan {
  hostname: string;
  /** As entered: relative paths start from the working directory. */
  dataDir: string;
  apiListen: string;
  publicListen: string;
  mxListen: string;
  submissionListen: string;
  /** Null: the default of the setting. */
  consoleListen: string | null;
  /** Null: unknown. */
  publicAddress: string | null;
  /** Null: that of the route to the destination. */
  sourceAddress: string | null;
  tls: TlsChoice;
  /** Null: none is created. */
  account: { name: string; company: string | null; address: string | null } | null;
  domain: { name: string; useCase: string } | null;
  /** Other systems send for the domain, which therefore may need p=none for a while. */
  hasOtherSenders: boolean;
  /** `webhooks.allowPrivateNetworks`; null: its default. */
  privateWebhooks: boolean | null;
}

/** An option of the command line has an invalid value. */
export class InvalidOption extends Error {
  override readonly name = 'InvalidOption';
}

/** Asks for the values that no option provides. Rejects with InvalidOption for the first invalid option. */
export async function planInit(
  options: InitOptions,
  {
    prompt,
    view,
    detected,
    defaultDataDir,
    isInstance,
    taken,
  }: {
    prompt: Prompt;
    view: DnsView;
    detected: Detected;
    defaultDataDir: string;
    /** Whether it is one of several daemons, so that it needs an address of its own. */
    isInstance: boolean;
    /** Listeners of the other daemons. */
    taken: readonly string[];
  },
): Promise<InitPlan> {
  const answer: Answer = async (name, question, given = options[name]) => {
    const asked = { option: `--${flagOf(name)}`, ...question };
    if (typeof given !== 'string') return prompt.ask(asked);
    const fault = given === '' ? null : (question.check?.(given) ?? null);
    if (fault !== null) throw new InvalidOption(`${asked.option} ${given}: ${fault}`);
    return given;
  };

  const hostname = await answer('hostname', {
    text: 'Host name',
    reason:
      'The name in EHLO and of the MX record. DNS must resolve it to this server, and its PTR record back to it.',
    fallback: detected.hostname,
    check: (text) =>
      faultOf(hostName, text) ??
      (text.includes('.') ? null : 'must be a fully qualified name such as mail.example.com'),
  });
  const known = hostname === '' ? null : await publicAddressOf(view, hostname, detected);
  const publicAddress = await answer(
    'publicAddress',
    {
      text: 'Public address',
      reason:
        'The address that receivers see, for the SPF record. DNS and the interfaces of this machine show none.',
      fallback: '',
      check: (text) => (isIP(text) === 0 ? 'must be an IP address' : null),
    },
    options.publicAddress ?? known ?? undefined,
  );
  const isOwn = (text: string) => portState(text, 0).then((state) => state === 'free');
  const ownAddress = publicAddress !== '' && (await isOwn(publicAddress)) ? publicAddress : '';
  const sourceAddress =
    isInstance || options.sourceAddress !== undefined
      ? await answer('sourceAddress', {
          text: 'Source address',
          reason:
            'The address of this machine that mail leaves from and whose ports 25, 80, 443 and 587 are used. Each daemon needs its own.',
          fallback: ownAddress,
          check: (text) => (isIP(text) === 0 ? 'must be an IP address' : null),
        })
      : '';
  if (sourceAddress !== '' && !(await isOwn(sourceAddress)))
    throw new InvalidOption(`--source-address ${sourceAddress}: this machine does not have the address`);
  const dataDir = await answer('data', {
    text: 'Data directory',
    reason: 'Contains the database and the key that encrypts its secrets.',
    fallback: defaultDataDir,
  });
  const apiPort = await freePortFrom('127.0.0.1', 8080, taken);
  const apiListen = await answer('listen', {
    text: 'API address',
    reason: `HTTP API, without TLS: keep it on this machine or a private network.${apiPort === 8080 ? '' : ' Port 8080 is in use.'}`,
    fallback: `127.0.0.1:${apiPort}`,
    check: (text) => faultOf(listen, text),
  });
  const host = sourceAddress || withoutBrackets(await everyAddress(view, hostname, publicAddress));
  const port25 = await portState(host, 25, taken);
  const mxListen = await answer('mx', {
    text: 'MX address',
    reason: `Receives bounces, complaints and reports. Port 25 is ${PORT_STATES[port25]}.`,
    fallback:
      port25 === 'free'
        ? formatListen({ host, port: 25 })
        : `127.0.0.1:${await freePortFrom('127.0.0.1', 2525, taken)}`,
    check: (text) => faultOf(listenOrOff, text),
  });
  const port587 = await portState(host, 587, taken);
  const submissionListen = await answer('submission', {
    text: 'SMTP submission address, or "off"',
    reason: `For programs that send over SMTP instead of HTTP, such as ${formatListen({ host, port: 587 })}. Port 587 is ${PORT_STATES[port587]}.`,
    fallback: 'off',
    check: (text) => faultOf(listenOrOff, text),
  });
  const tls = await chooseTls(answer, options, host, taken);
  const account = await chooseAccount(answer);
  const domain =
    account === null
      ? ''
      : await answer('domain', {
          text: 'First sending domain',
          reason: 'The domain of From addresses; its DNS records are printed.',
          fallback: '',
          check: (text) => (normalizeDomain(text) === null ? 'must be a domain such as example.com' : null),
        });
  const otherSenders =
    domain === ''
      ? (options.otherSenders ?? 'no')
      : await answer('otherSenders', {
          text: `Do other systems send mail from ${domain}, yes or no`,
          reason:
            'Company mail, a shop or a newsletter service. If so, a DMARC policy of p=none suffices until the reports show that all of it is authenticated.',
          fallback: 'no',
          check: yesOrNo,
        });
  const privateWebhooks = await answer('privateWebhooks', {
    text: 'May webhooks call private addresses, yes or no',
    reason:
      'Webhook receivers on this machine or its network need "yes"; every account can then reach the hosts of that network. Without an answer they are called only while there is one account and the console is off.',
    fallback: '',
    check: yesOrNo,
  });
  const publicListen = options.public ?? (await defaultPublicListen(tls, host, [apiListen, ...taken]));
  const publicFault = faultOf(listen, publicListen);
  if (publicFault !== null) throw new InvalidOption(`--public ${publicListen}: ${publicFault}`);
  const consolePort =
    isInstance || taken.length > 0
      ? await freePortFrom('127.0.0.1', 8082, [apiListen, publicListen, ...taken])
      : null;
  return {
    hostname: hostname.toLowerCase(),
    dataDir,
    apiListen,
    publicListen,
    mxListen,
    submissionListen,
    consoleListen: consolePort === null ? null : `127.0.0.1:${consolePort}`,
    publicAddress: publicAddress === '' ? null : publicAddress,
    sourceAddress: sourceAddress === '' ? null : sourceAddress,
    tls,
    account,
    domain: domain === '' ? null : { name: domain, useCase: options.useCase },
    hasOtherSenders: /^y/i.test(otherSenders),
    privateWebhooks: privateWebhooks === '' ? null : /^y/i.test(privateWebhooks),
  };
}

const PORT_STATES = { free: 'free', used: 'in use', denied: 'not permitted for this user' } as const;

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** Port 80 unless a proxy is planned: links use it, and the certificate authority validates the host there. */
async function defaultPublicListen(
  { kind }: TlsChoice,
  host: string,
  taken: readonly string[],
): Promise<string> {
  if (kind === 'acme' || (kind === 'none' && (await portState(host, 80, taken)) === 'free'))
    return formatListen({ host, port: 80 });
  return `127.0.0.1:${await freePortFrom('127.0.0.1', 8081, taken)}`;
}

/** The value of an option, by default the one that was given, or of the answer to its question. */
type Answer = (
  name: keyof InitOptions,
  question: Omit<InitQuestion, 'option'>,
  given?: string,
) => Promise<string>;

async function chooseTls(
  answer: Answer,
  options: InitOptions,
  host: string,
  taken: readonly string[],
): Promise<TlsChoice> {
  const states = await Promise.all([portState(host, 80, taken), portState(host, 443, taken)]);
  const isFree = states.every((state) => state === 'free');
  const agreed = options.agreeToTerms === true;
  const kind = await answer('tls', {
    text: 'TLS: acme, files or none',
    reason: `HTTPS of tracking and unsubscribe links. acme: certificates of Let's Encrypt (ports 80 and 443 are ${isFree ? 'free' : 'not available'}); files: a certificate for SMTP, and your own HTTPS proxy; none.`,
    // Agreement to the terms is never a default.
    fallback: isFree && agreed ? 'acme' : 'none',
    check: (text) => (TLS_KINDS.includes(text) ? null : 'must be acme, files or none'),
  });
  if (kind === 'acme') {
    const terms = await answer(
      'agreeToTerms',
      {
        text: 'Do you agree to its terms (https://letsencrypt.org/repository/), yes or no',
        reason: 'Certificates are issued only to those who agree to the subscriber agreement.',
        fallback: null,
        check: yesOrNo,
      },
      agreed ? 'yes' : undefined,
    );
    if (!/^y/i.test(terms)) return { kind: 'none' };
    const email = await answer('acmeEmail', {
      text: 'Address for notices of the certificate authority',
      reason: 'Used when a certificate is about to expire or was revoked.',
      fallback: '',
    });
    return { kind, email: email === '' ? null : email };
  }
  if (kind !== 'files') return { kind: 'none' };
  const certificateFile = await answer('tlsCert', {
    text: 'Certificate file',
    reason: 'PEM, with the chain.',
    fallback: null,
    check: missingFile,
  });
  const keyFile = await answer('tlsKey', {
    text: 'Key file',
    reason: 'PEM; the daemon must be able to read it.',
    fallback: null,
    check: missingFile,
  });
  return { kind, certificateFile, keyFile };
}

const TLS_KINDS = ['acme', 'files', 'none'];

async function chooseAccount(answer: Answer): Promise<InitPlan['account']> {
  const name = await answer('account', {
    text: 'Name of the first account',
    reason: 'Accounts own domains, keys and messages. "-" creates none.',
    fallback: 'Default',
  });
  if (name === '-' || name === '') return null;
  const company = await answer('company', {
    text: 'Company name',
    reason: 'Part of the footer that laws such as CAN-SPAM require; messages cannot be sent without it.',
    fallback: '',
  });
  const address = await answer('address', {
    text: 'Postal address',
    reason: 'One line, parts separated by commas: 1 High Street, Sampletown, AB1 2CD, GB',
    fallback: '',
    check: (text) => (parsePostalAddress(text) === null ? 'needs at least street, city and country' : null),
  });
  return { name, company: company === '' ? null : company, address: address === '' ? null : address };
}

function yesOrNo(text: string): string | null {
  return /^(?:yes|y|no|n)$/i.test(text) ? null : 'must be yes or no';
}

function missingFile(file: string): string | null {
  return existsSync(file) ? null : 'there is no such file';
}

function faultOf(schema: z.ZodType, text: string): string | null {
  return schema.safeParse(text).error?.issues[0]?.message ?? null;
}
