import type { IncomingHttpHeaders } from 'node:http';
import { isbot } from 'isbot';

/**
 * The visitor of a tracked link: address, user agent, and whether it is a person. Machines are identified by their request
 * headers only, not by addresses or times.
 */
export interface Visitor {
  ip: string;
  userAgent: string;
  /** A crawler, a scanner or another program. */
  isBot: boolean;
  /** A privacy proxy on behalf of a person, or a scanner. */
  isProxy: boolean;
}

/** They fetch pictures when, or before, a person opens a mail, and hide the person's address. */
const PRIVACY_PROXIES = [
  /GoogleImageProxy/i,
  /YahooMailProxy/i,
  /YandexImageResizer/i,
  // Apple's Mail Privacy Protection.
  /^Mozilla\/5\.0$/,
  // Gmail, prefetching pictures.
  /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0$/,
];
/** Gateways that check the links of a mail before its reader opens them. */
const SCANNERS =
  /barracuda|bitdefender|cisco.?(?:ironport|secure)|fireeye|forcepoint|mimecast|proofpoint|sophos|symantec|trendmicro|url ?(?:defense|protect)/i;
/** Mail programs that isbot classifies as machines. */
const MAIL_PROGRAMS =
  /outlook|thunderbird|microsoft office|applemail|airmail|k-9 mail|superhuman|spark|emclient/i;

/** Tools that a person runs manually to inspect a link; scanners use other names. */
const MANUAL_TOOLS = /^(?:curl|wget|node|undici)\b/i;

const MAX_USER_AGENT = 500;

export function visitorOf(headers: IncomingHttpHeaders, ip: string, isHead: boolean): Visitor {
  const userAgent = (headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT);
  if (PRIVACY_PROXIES.some((proxy) => proxy.test(userAgent)))
    return { ip, userAgent, isBot: false, isProxy: true };
  if (SCANNERS.test(userAgent)) return { ip, userAgent, isBot: true, isProxy: true };
  const isBot = isHead || isPrefetch(headers) || userAgent === '' || isProgram(userAgent);
  return { ip, userAgent, isBot, isProxy: false };
}

function isProgram(userAgent: string): boolean {
  return isbot(userAgent) && !MAIL_PROGRAMS.test(userAgent) && !MANUAL_TOOLS.test(userAgent);
}

/** A browser that prefetches links. */
function isPrefetch(headers: IncomingHttpHeaders): boolean {
  return [headers['sec-purpose'], headers['purpose'], headers['x-moz']].some((purpose) =>
    /prefetch|preview/i.test(String(purpose ?? '')),
  );
}
