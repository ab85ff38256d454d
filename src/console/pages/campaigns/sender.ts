/* The sender of a campaign: a name, and an address whose domain is chosen. */

export interface SenderParts {
  name: string;
  local: string;
  domain: string;
}

/** The address of a sender with or without a display name. */
export function senderAddress(from: string): string {
  return (/<([^<>]*)>\s*$/.exec(from)?.[1] ?? from).trim();
}

/** The parts of a sender, such as `Shop <news@example.com>`. */
export function parseSender(from: string): SenderParts {
  const address = senderAddress(from);
  const at = address.lastIndexOf('@');
  const display = from.includes('<') ? from.slice(0, from.lastIndexOf('<')).trim() : '';
  const quoted = /^"(.*)"$/s.exec(display)?.[1];
  return {
    name: quoted === undefined ? display : quoted.replaceAll(/\\(.)/gs, '$1'),
    local: at === -1 ? address : address.slice(0, at),
    domain: at === -1 ? '' : address.slice(at + 1).toLowerCase(),
  };
}

/** The domain with this name; that for marketing mail, if the account has the name for both kinds of mail. */
export function marketingDomain<Domain extends { domain: string; useCase: string }>(
  domains: readonly Domain[],
  name: string,
): Domain | undefined {
  const named = domains.filter(({ domain }) => domain === name);
  return named.find(({ useCase }) => useCase === 'mk') ?? named[0];
}

/** The sender as a header field has it (RFC 5322, 3.4); a name with special characters is quoted. */
export function formatSender({ name, local, domain }: SenderParts): string {
  const address = `${local.trim()}@${domain}`;
  const shown = name.trim();
  if (shown === '') return address;
  const isPlain = /^[\p{L}\p{N} !#$%&'*+/=?^_`{|}~-]+$/u.test(shown);
  return `${isPlain ? shown : `"${shown.replaceAll(/["\\]/g, '\\$&')}"`} <${address}>`;
}

const KEY = 'postrider-sender ';

/** The last sender that was used for campaigns of the account in this browser. */
export function rememberedSender(accountId: string): string | null {
  return localStorage.getItem(KEY + accountId);
}

export function rememberSender(accountId: string, from: string): void {
  localStorage.setItem(KEY + accountId, from);
}
