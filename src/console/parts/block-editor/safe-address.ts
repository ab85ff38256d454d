import { VARIABLE } from '../../../mail/blocks/variable.ts';

/** Addresses of the format: sites, mail, and variables such as the one that unsubscribes. */
const ALLOWED = /^(?:https?:\/\/[^/]|mailto:[^/]|\{\{[ \t]*[A-Za-z_])/i;
const OTHER_SCHEME = /^[a-z][a-z0-9+.-]*:(?!\d)/i;
const NOT_IN_ADDRESS = /[\s<>"\\^`]|\{\{\{/;
const MAX_LENGTH = 2000;

/**
 * The address of a link as a person enters it: `example.com` is a site, `ann@example.com` is mail. Null: it is none, such as
 * a script.
 */
export function safeAddress(entered: string): string | null {
  const address = entered.trim();
  const plain = address.replaceAll(VARIABLE, 'x');
  if (address === '' || address.length > MAX_LENGTH || NOT_IN_ADDRESS.test(plain) || /[{|}]/.test(plain))
    return null;
  const whole = completed(address);
  if (whole === null) return null;
  return whole.startsWith('{{') || URL.canParse(whole.replaceAll(VARIABLE, 'x')) ? whole : null;
}

function completed(address: string): string | null {
  if (ALLOWED.test(address)) return address;
  if (OTHER_SCHEME.test(address)) return null;
  if (/^[^/@]+@[^/@]+$/.test(address)) return `mailto:${address}`;
  return /^[^/.]+\.[^/]/.test(address) ? `https://${address}` : null;
}
