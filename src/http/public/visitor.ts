import type { IncomingHttpHeaders } from 'node:http';
import { isbot } from 'isbot';

/**
 * The visitor of a public page: address, program, and whether it is a person. Classified by the User-Agent and other
 * header fields only, not by address or time.
 */
export interface Visitor {
  ip: string;
  userAgent: string;
  /** A crawler, scanner or other program; not a person. */
  isBot: boolean;
  /** A privacy proxy on behalf of a person, or a scanner. */
  isProxy: boolean;
}

/** Programs that fetch images when or before a person opens a mail, and hide the address and program of the person. */
const PRIVACY_PROXIES = [
  /GoogleImageProxy/i,
  /YahooMailProxy/i,
  /YandexImageResizer/i,
  // Apple Mail Privacy Protection sends nothing else.
  /^Mozilla\/5\.0$/,
  // Gmail prefetches images with this one.
  /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0$/,
];
/** Mail gateways that follow links before the recipient does. */
const SCANNERS =
  /barracuda|bitdefender|cisco.?(?:ironport|secure)|fireeye|forcepoint|mimecast|proofpoint|sophos|symantec|trendmicro|url ?(?:defense|protect)/i;
/** Mail programs that `isbot` classifies as bots. */
const MAIL_PROGRAMS =
  /outlook|thunderbird|microsoft office|applemail|airmail|k-9 mail|superhuman|spark|emclient/i;

/** Command-line tools, which a person runs; scanners use other names. */
const COMMAND_LINE_TOOLS = /^(?:curl|wget|node|undici)\b/i;

const MAX_USER_AGENT = 500;

/**
 * `ip`: the address behind trusted proxies. `isHead`: a HEAD request, which counts as a program. The user agent is cut
 * after 500 characters. Pure.
 */
export function visitorOf(headers: IncomingHttpHeaders, ip: string, isHead: boolean): Visitor {
  const userAgent = (headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT);
  if (PRIVACY_PROXIES.some((proxy) => proxy.test(userAgent)))
    return { ip, userAgent, isBot: false, isProxy: true };
  if (SCANNERS.test(userAgent)) return { ip, userAgent, isBot: true, isProxy: true };
  const isBot = isHead || isPrefetch(headers) || userAgent === '' || isProgram(userAgent);
  return { ip, userAgent, isBot, isProxy: false };
}

function isProgram(userAgent: string): boolean {
  return isbot(userAgent) && !MAIL_PROGRAMS.test(userAgent) && !COMMAND_LINE_TOOLS.test(userAgent);
}

/** A browser that prefetches a link before a click. */
function isPrefetch(headers: IncomingHttpHeaders): boolean {
  return [headers['sec-purpose'], headers['purpose'], headers['x-moz']].some((purpose) =>
    /prefetch|preview/i.test(String(purpose ?? '')),
  );
}
