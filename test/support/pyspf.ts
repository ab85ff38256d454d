import { runPython } from './python.ts';

/** The result of pyspf, an independent SPF implementation. */
export interface SpfResult {
  result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'permerror' | 'temperror';
  explanation: string;
}

/** Evaluates SPF (RFC 7208) for a connection from `ip` with EHLO `helo` and MAIL FROM:<`sender`>, all queries to `nameServer`. */
export function checkSpf(
  connection: { ip: string; helo: string; sender: string },
  nameServer: { host: string; port: number },
): SpfResult {
  const { ip, helo, sender } = connection;
  const printed = runPython(SCRIPT, [nameServer.host, String(nameServer.port), ip, sender, helo]);
  return JSON.parse(printed);
}

const SCRIPT = `
import json, sys, warnings
warnings.simplefilter('ignore')
import dns.resolver, spf

resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers = [sys.argv[1]]
resolver.port = int(sys.argv[2])
dns.resolver.default_resolver = resolver
spf.DNSLookup = spf.DNSLookup_dnspython

result, explanation = spf.check2(i=sys.argv[3], s=sys.argv[4], h=sys.argv[5])
print(json.dumps({'result': result, 'explanation': explanation}))
`;
