import { runPython } from './python.ts';

/** A signature as verified by dkimpy, an independent implementation that queries the given name server for keys. */
export interface VerifiedSignature {
  /** `d=` */
  domain: string;
  selector: string;
  valid: boolean;
  /** Why it is not valid, '' when it is. */
  fault: string;
  /** `h=`, lower case, in order, with repetitions. */
  signedFields: string[];
}

/** Returns an entry for each DKIM-Signature of the message, the topmost first. */
export function verifyDkim(
  message: Buffer | string,
  nameServer: { host: string; port: number },
): VerifiedSignature[] {
  return JSON.parse(runPython(SCRIPT, [nameServer.host, String(nameServer.port)], message));
}

const SCRIPT = `
import json, sys
import dkim, dns.resolver

resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers = [sys.argv[1]]
resolver.port = int(sys.argv[2])

def txt(name, timeout=5):
    try:
        answer = resolver.resolve(name.decode().rstrip('.'), 'TXT', lifetime=timeout)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return None
    return b''.join(answer[0].strings)

message = sys.stdin.buffer.read()
results = []
count = sum(1 for name, _ in dkim.rfc822_parse(message)[0] if name.lower() == b'dkim-signature')
for index in range(count):
    verifier = dkim.DKIM(message)
    try:
        valid, fault = verifier.verify(index, dnsfunc=txt), ''
    except dkim.DKIMException as error:
        valid, fault = False, str(error)
    fields = verifier.signature_fields
    results.append({
        'domain': fields.get(b'd', b'').decode(),
        'selector': fields.get(b's', b'').decode(),
        'valid': valid,
        'fault': fault if fault or valid else 'the signature does not match',
        'signedFields': [name.strip().lower() for name in fields.get(b'h', b'').decode().split(':')],
    })
print(json.dumps(results))
`;
