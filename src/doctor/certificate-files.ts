import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';

/** A certificate of an SMTP listener, from its files. */
export interface FileCertificate {
  /** mx.tls, submission.tls */
  setting: string;
  file: string;
  /** Why the files cannot be used; null: they can. */
  fault: string | null;
  certificate: {
    notAfter: number;
    matchesHost: boolean;
    isSelfSigned: boolean;
    /** The file also contains the certificate of the issuer. */
    hasIssuer: boolean;
    matchesKey: boolean;
  } | null;
}

/** The certificates that the configuration names. */
export function certificateFiles({
  hostname,
  mx,
  submission,
}: Pick<Config, 'hostname' | 'mx' | 'submission'>): Promise<FileCertificate[]> {
  const settings = [
    { setting: 'mx.tls', ...mx.tls },
    { setting: 'submission.tls', ...submission.tls },
  ];
  return Promise.all(
    settings.flatMap(({ setting, certificateFile, keyFile }) =>
      certificateFile === undefined || keyFile === undefined
        ? []
        : [readFiles(setting, certificateFile, keyFile, hostname)],
    ),
  );
}

async function readFiles(
  setting: string,
  file: string,
  keyFile: string,
  hostname: string,
): Promise<FileCertificate> {
  try {
    const pem = await readFile(file, 'utf8');
    const [first, ...chain] = (
      pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
    ).map((each) => new X509Certificate(each));
    if (first === undefined)
      return { setting, file, fault: 'the file has no certificate', certificate: null };
    const key = createPrivateKey(await readFile(keyFile));
    return {
      setting,
      file,
      fault: null,
      certificate: {
        notAfter: Date.parse(first.validTo),
        matchesHost: first.checkHost(hostname) !== undefined,
        isSelfSigned: first.checkIssued(first),
        hasIssuer: chain.some((each) => first.checkIssued(each)),
        matchesKey: first.checkPrivateKey(key),
      },
    };
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    return { setting, file, fault, certificate: null };
  }
}
