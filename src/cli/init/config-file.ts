import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { stringify } from 'smol-toml';
import { formatListen } from '../../config/setting-types.ts';
import type { InitPlan } from './plan.ts';

/** The configuration file with the chosen settings. `file`: its absolute path. */
export function configToml(plan: InitPlan, file: string): string {
  const path = (name: string) => (isAbsolute(name) ? name : relative(dirname(file), resolve(name)));
  const { tls } = plan;
  const lines = [
    '# Postrider. Settings that are not listed have their defaults: "postrider config example" lists all settings.',
    '# After a change: "postrider config check", then reload the daemon (SIGHUP); its log lists the settings that need a restart.',
    '',
    `hostname = ${text(plan.hostname)}  # EHLO name and MX target`,
    '',
    '[data]',
    `dir = ${text(path(plan.dataDir))}  # database and master.key: back up both`,
    '',
    '[api]',
    `listen = ${text(plan.apiListen)}`,
    '',
    '[public]  # tracking, unsubscribe and report-abuse pages',
    `listen = ${text(plan.publicListen)}`,
    `url = ${text(publicUrl(plan))}`,
    '',
  ];
  if (tls.kind === 'acme') {
    lines.push(
      "[public.tls]  # certificates of Let's Encrypt",
      `listen = ${text(formatListen({ host: tlsHost(plan), port: 443 }))}`,
    );
    lines.push('agreeToTerms = true  # https://letsencrypt.org/repository/');
    if (tls.email !== null) lines.push(`email = ${text(tls.email)}`);
    lines.push('');
  } else {
    if (tls.kind === 'files')
      lines.push('# A proxy in front of public.listen provides HTTPS: docs/public-pages.md', '');
    else
      lines.push('# Marketing mail needs an https address: docs/public-pages.md describes the two ways', '');
  }
  lines.push('[mx]  # bounces, complaints and reports', `listen = ${text(plan.mxListen)}`);
  if (!plan.mxListen.endsWith(':25') && plan.mxListen !== 'off')
    lines.push(
      `# Other servers connect to port 25: redirect it here, or listen on "${mxAtPort25(plan.sourceAddress)}"`,
    );
  lines.push('');
  if (tls.kind === 'files') {
    lines.push('[mx.tls]  # also for submission');
    lines.push(
      `certificateFile = ${text(path(tls.certificateFile))}`,
      `keyFile = ${text(path(tls.keyFile))}`,
      '',
    );
  }
  if (plan.submissionListen !== 'off')
    lines.push('[submission]', `listen = ${text(plan.submissionListen)}`, '');
  if (plan.hasOtherSenders)
    lines.push(
      '[verification]',
      '# Other systems send for the domain: p=none with rua suffices. docs/deliverability.md describes the way to p=reject.',
      'dmarcPolicy = "any"',
      '',
    );
  if (plan.privateWebhooks !== null)
    lines.push(
      '[webhooks]  # true: receivers at private addresses are called, and every account can reach hosts of this network',
      `allowPrivateNetworks = ${plan.privateWebhooks}`,
      '',
    );
  if (plan.consoleListen !== null) lines.push('[console]', `listen = ${text(plan.consoleListen)}`, '');
  const { sourceAddress, publicAddress } = plan;
  const addresses = [
    ...(sourceAddress === null ? [] : [`address = ${text(sourceAddress)}`]),
    ...(publicAddress === null || publicAddress === sourceAddress
      ? []
      : [`publicAddress = ${text(publicAddress)}`]),
  ];
  if (addresses.length > 0)
    lines.push(
      '[delivery]',
      '# "publicAddress" is the address that receivers see; "address" selects the source address.',
      `egress = [{ name = "main", ${addresses.join(', ')} }]`,
      '',
    );
  return `${lines.join('\n').trimEnd()}\n`;
}

/** Where other servers look for the MX listener: at the source address, else at every IPv4 address. */
export function mxAtPort25(sourceAddress: string | null): string {
  return formatListen({ host: sourceAddress ?? '0.0.0.0', port: 25 });
}

/** Where the pages have TLS: at the source address, else at every address. */
function tlsHost({ sourceAddress, publicListen }: InitPlan): string {
  return sourceAddress ?? (publicListen.startsWith('[') ? '::' : '0.0.0.0');
}

/** Without TLS an http URL: a proxy or a redirection forwards port 80 to the listener. */
function publicUrl({ hostname, tls }: InitPlan): string {
  return tls.kind === 'none' ? `http://track.${hostname}` : `https://track.${hostname}`;
}

function text(value: string): string {
  return stringify({ value }).trim().slice('value = '.length);
}
