import { dirname } from 'node:path';
import { installationOf } from '../../config/installations.ts';
import { DAY } from '../../core/clock.ts';
import { certificateFiles, type FileCertificate } from '../certificate-files.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import type { DoctorState } from '../state.ts';

/** ACME certificates are renewed 30 days before they expire. */
const SOON_MS = 14 * DAY;
const LATE_RENEWAL_MS = 21 * DAY;

/**
 * One result for each certificate in files and each obtained one; a generated one of submission is a warning. Warns 14
 * days before a certificate in a file expires, and 21 days before an obtained one whose renewal failed does.
 */
export async function examineCertificates({
  config,
  clock,
  database,
  state,
}: DoctorContext): Promise<Result[]> {
  const { mx, submission, hostname } = config;
  const now = clock.now();
  const folder = dirname(config.file ?? installationOf(null).configFile);
  const results = (await certificateFiles(config)).map((file) => judgeFile(file, hostname, now));
  if (
    submission.listen !== 'off' &&
    submission.tls.certificateFile === undefined &&
    mx.tls.certificateFile === undefined
  )
    results.push(
      warning(
        'submission.tls',
        'Submission uses a generated certificate, which mail clients do not trust.',
        `[submission.tls]\ncertificateFile = "${folder}/fullchain.pem"\nkeyFile = "${folder}/privkey.pem"`,
      ),
    );
  if (config.public.tls.listen !== 'off' && database.kind === 'open')
    results.push(...(await state()).certificates.map((each) => judgeObtained(each, now)));
  if (results.length > 0) return results;
  const sufficient = 'The MX listener uses a generated certificate, which is sufficient for receiving mail.';
  return [ok('certificates', sufficient)];
}

function judgeFile(
  { setting, file, fault, certificate }: FileCertificate,
  hostname: string,
  now: number,
): Result {
  const subject = `${setting} ${file}`;
  if (certificate === null)
    return failure(
      subject,
      `The certificate cannot be used: ${quoted(fault ?? '')}`,
      `openssl x509 -in ${file} -noout -subject -dates`,
    );
  const { notAfter, matchesHost, isSelfSigned, hasIssuer, matchesKey } = certificate;
  const until = new Date(notAfter).toISOString().slice(0, 10);
  const renew = `certbot renew, or install a new certificate in ${file}`;
  if (notAfter <= now) return failure(subject, `The certificate expired on ${until}.`, renew);
  if (!matchesKey)
    return failure(
      subject,
      'The private key in keyFile does not belong to the certificate.',
      `Correct ${setting}.keyFile`,
    );
  if (!matchesHost)
    return failure(
      subject,
      `The certificate is not valid for ${hostname}.`,
      `certbot certonly --standalone -d ${hostname}`,
    );
  if (notAfter - now < SOON_MS) return warning(subject, `The certificate expires on ${until}.`, renew);
  if (isSelfSigned)
    return warning(
      subject,
      'The certificate is self-signed: clients that verify certificates do not connect.',
      `certbot certonly --standalone -d ${hostname}`,
    );
  if (!hasIssuer)
    return warning(
      subject,
      'The file has no intermediate certificate: clients that verify certificates cannot build the chain.',
      `Use the file with the whole chain (fullchain.pem) as ${setting}.certificateFile`,
    );
  return ok(subject, `Valid for ${hostname} until ${until}.`);
}

function judgeObtained(
  { host, notAfter, failures, lastError }: DoctorState['certificates'][number],
  now: number,
): Result {
  if (notAfter === null) return unknown(host, 'There is no certificate yet.');
  const until = new Date(notAfter).toISOString().slice(0, 10);
  const error = lastError === null ? '' : ` The last attempt failed: ${quoted(lastError)}`;
  const fix = `Port 80 of ${host} must lead to public.listen: curl -I http://${host}/`;
  if (notAfter <= now) return failure(host, `The certificate expired on ${until}.${error}`, fix);
  if (failures > 0 && notAfter - now < LATE_RENEWAL_MS)
    return warning(host, `The certificate expires on ${until} and was not renewed.${error}`, fix);
  return ok(host, `Valid until ${until}.`);
}
