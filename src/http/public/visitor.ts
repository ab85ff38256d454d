import type { IncomingHttpHeaders } from 'node:http';
import { isbot } from 'isbot';

/**
 * Who comes, as far as can be told: from which address, with which program, and whether a person looked at
 * anything. Machines say who they are more often than not; nothing is guessed from addresses or times.
 */
export interface Visitor {
  ip: string;
  userAgent: string;
  /** A crawler, a scanner, a program: nobody looked. */
  isBot: boolean;
  /** A privacy proxy that came in place of a person, or a scanner in front of one. */
  isProxy: boolean;
}

/** They fetch pictures when, or before, a person opens a mail, and hide who and where that is. */
const PRIVACY_PROXIES = [
  /GoogleImageProxy/i,
  /YahooMailProxy/i,
  /YandexImageResizer/i,
  // Apple's Mail Privacy Protection says no more than this.
  /^Mozilla\/5\.0$/,
  // Gmail, looking at pictures ahead of the reader.
  /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0$/,
];
/** Gateways that look at what a mail links to before its reader does. */
const SCANNERS =
  /barracuda|bitdefender|cisco.?(?:ironport|secure)|fireeye|forcepoint|mimecast|proofpoint|sophos|symantec|trendmicro|url ?(?:defense|protect)/i;
/** People's mail programs that pass for machines by their names. */
const MAIL_PROGRAMS =
  /outlook|thunderbird|microsoft office|applemail|airmail|k-9 mail|superhuman|spark|emclient/i;

/** Tools that a person runs by hand, to look where a link leads: scanners come under other names. */
const HAND_TOOLS = /^(?:curl|wget|node|undici)\b/i;

const MAX_USER_AGENT = 500;

export function visitorOf(headers: IncomingHttpHeaders, ip: string, isHead: boolean): Visitor {
  const userAgent = (headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT);
  if (PRIVACY_PROXIES.some((proxy) => proxy.test(userAgent)))
    return { ip, userAgent, isBot: false, isProxy: true };
  if (SCANNERS.test(userAgent)) return { ip, userAgent, isBot: true, isProxy: true };
  const isBot = isHead || isAhead(headers) || userAgent === '' || isProgram(userAgent);
  return { ip, userAgent, isBot, isProxy: false };
}

function isProgram(userAgent: string): boolean {
  return isbot(userAgent) && !MAIL_PROGRAMS.test(userAgent) && !HAND_TOOLS.test(userAgent);
}

/** A browser that fetches what its user may click on next. */
function isAhead(headers: IncomingHttpHeaders): boolean {
  return [headers['sec-purpose'], headers['purpose'], headers['x-moz']].some((purpose) =>
    /prefetch|preview/i.test(String(purpose ?? '')),
  );
}
