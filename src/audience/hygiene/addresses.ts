import { editDistance } from '../../core/closest-word.ts';
import { domainOf } from '../../mail/address.ts';
import { readEmail } from '../profile.ts';

/* What the text of an address tells: syntax, roles, disposable domains, typos, and mailboxes with several addresses. */

/** The local part and the domain of an address, both in lower case. */
export interface AddressParts {
  local: string;
  domain: string;
}

export function partsOf(email: string): AddressParts {
  const domain = domainOf(email);
  return { local: email.slice(0, email.length - domain.length - 1).toLowerCase(), domain };
}

/** Why mail to a stored address cannot be sent; null: it can. Addresses are checked before they are stored. */
export function syntaxFault(email: string): string | null {
  const read = readEmail(email);
  return 'fault' in read ? read.fault : null;
}

/** RFC 5233. */
function withoutSubaddress(local: string): string {
  const at = local.indexOf('+');
  return at === -1 ? local : local.slice(0, at);
}

/** Mailboxes of functions, which several people read (RFC 2142, and those that are usual in companies). */
const ROLES = new Set(
  `abuse accounting accounts admin administrator all billing board careers compliance contact customerservice
  dev devnull dns enquiries everyone finance ftp hello help helpdesk hostmaster hr info inquiries inquiry investorrelations
  it jobs legal list list-request mail mailer-daemon maildaemon marketing media mis news no-reply nobody noc noreply office
  operations orders phish phishing postmaster press privacy purchasing recruitment registrar reservations root sales security
  service shop spam staff subscribe support sysadmin team tech undisclosed-recipients unsubscribe usenet uucp webmaster www
  anfrage bewerbung buchhaltung buero empfang info-de kontakt kundenservice personal presse rechnung verwaltung vertrieb
  accueil administration commercial comptabilite direction secretariat`.split(/\s+/),
);

/** Whether an address belongs to a function rather than a person; a subaddress does not count. */
export function isRole({ local }: AddressParts): boolean {
  return ROLES.has(withoutSubaddress(local));
}

let disposable: Promise<ReadonlySet<string>> | null = null;

/**
 * The domains of mailboxes that exist for minutes (disposable-email-domains). Loaded at the first use, and once: most
 * installations start without an import.
 */
export function disposableDomains(): Promise<ReadonlySet<string>> {
  disposable ??= import('./disposable-list.ts').then((list) => list.disposableEmailBlocklistSet());
  return disposable;
}

/** Whether a domain, or one that it is below, is in the list. */
export function isDisposable(domain: string, known: ReadonlySet<string>): boolean {
  for (let name = domain; name.includes('.'); name = name.slice(name.indexOf('.') + 1))
    if (known.has(name)) return true;
  return false;
}

/** Domains of large providers, which certainly receive mail. */
const PROVIDERS =
  `gmail.com googlemail.com yahoo.com yahoo.co.uk yahoo.fr yahoo.de yahoo.it yahoo.es yahoo.co.jp
  ymail.com hotmail.com hotmail.co.uk hotmail.fr hotmail.de hotmail.it hotmail.es outlook.com outlook.fr outlook.de live.com
  live.co.uk live.fr msn.com icloud.com me.com mac.com aol.com gmx.de gmx.net gmx.at gmx.ch gmx.com web.de t-online.de freenet.de
  posteo.de mailbox.org orange.fr wanadoo.fr free.fr sfr.fr laposte.net libero.it virgilio.it tiscali.it alice.it bluewin.ch
  btinternet.com sky.com proton.me protonmail.com fastmail.com zoho.com yandex.ru yandex.com mail.ru bk.ru qq.com 163.com
  126.com naver.com daum.net docomo.ne.jp ezweb.ne.jp comcast.net verizon.net att.net sbcglobal.net bellsouth.net cox.net
  charter.net telenet.be skynet.be ziggo.nl kpnmail.nl wp.pl o2.pl onet.pl interia.pl seznam.cz telia.com uol.com.br bol.com.br
  terra.com.br sapo.pt`.split(/\s+/);

const KNOWN_PROVIDERS: ReadonlySet<string> = new Set(PROVIDERS);

export function isLargeProvider(domain: string): boolean {
  return KNOWN_PROVIDERS.has(domain);
}

/** Frequent typos. Others own some of these domains, and receive the mail. */
const KNOWN_TYPOS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'gmail.com':
      'gmial.com gmai.com gmal.com gamil.com gmaill.com gnail.com gmail.co gmail.cm gmail.om gmil.com gmali.com gmailc.om hmail.com gemail.com',
    'hotmail.com':
      'hotmial.com hotmal.com hotmai.com hotmil.com hormail.com hotmaill.com homail.com hotmail.co htomail.com',
    'outlook.com': 'outlok.com outloo.com outlook.co outllook.com oultook.com outlool.com',
    'yahoo.com': 'yaho.com yahooo.com yahoo.co yhaoo.com yhoo.com yaoo.com yahho.com',
    'icloud.com': 'iclod.com icoud.com icloud.co icluod.com iclud.com',
    'gmx.de': 'gmx.ed gmxx.de gxm.de',
    'web.de': 'wbe.de webb.de',
  }).flatMap(([domain, typos]) => typos.split(' ').map((typo): [string, string] => [typo, domain])),
);

/** A provider that a frequent typo stands for; null: it is not one. */
export function knownTypo(domain: string): string | null {
  return KNOWN_TYPOS.get(domain) ?? null;
}

const MAX_TYPO_LENGTH = 40;

/**
 * The large provider that a domain without mail service most likely stands for; null when none is similar: one edit of a
 * short name, two of a longer one.
 */
export function likelyTypo(domain: string): string | null {
  if (domain.length > MAX_TYPO_LENGTH) return null;
  let best: { provider: string; edits: number } | null = null;
  for (const provider of PROVIDERS) {
    const limit = provider.length < 9 ? 1 : 2;
    if (Math.abs(provider.length - domain.length) > limit) continue;
    const edits = editDistance(domain, provider, { transpositions: true });
    if (edits > 0 && edits <= limit && (best === null || edits < best.edits)) best = { provider, edits };
  }
  return best?.provider ?? null;
}

interface MailboxRule {
  /** The domain that all domains of the provider stand for. */
  domain: string;
  /** What is removed from the local part. */
  ignored?: RegExp;
}

const MAILBOX_RULES: ReadonlyMap<string, MailboxRule> = new Map<string, MailboxRule>([
  ...['gmail.com', 'googlemail.com'].map((name) => [name, { domain: 'gmail.com', ignored: /\./g }] as const),
  ...['icloud.com', 'me.com', 'mac.com'].map((name) => [name, { domain: 'icloud.com' }] as const),
  ...['proton.me', 'protonmail.com', 'pm.me'].map(
    (name) => [name, { domain: 'proton.me', ignored: /[._-]/g }] as const,
  ),
  ...['outlook.com', 'hotmail.com', 'live.com', 'msn.com', 'fastmail.com', 'posteo.de', 'mailbox.org'].map(
    (name) => [name, { domain: name }] as const,
  ),
]);

/** The mailbox of an address by the rules of its provider; null: the provider is not known to have any. */
export function mailboxOf({ local, domain }: AddressParts): string | null {
  const rule = MAILBOX_RULES.get(domain);
  if (rule === undefined) return null;
  const plain = withoutSubaddress(local);
  return `${rule.ignored === undefined ? plain : plain.replaceAll(rule.ignored, '')}@${rule.domain}`;
}
