import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import { SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { errorText } from '../core/errors.ts';
import { addSeries } from '../core/metrics.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import type { Runtime } from '../core/runtime.ts';
import { type TlsPair, verifyTlsPair } from '../core/tls-pair.ts';
import { generateSelfSignedCertificate } from '../core/x509.ts';

/*
 * The certificate of a listener, read again when its files change, so that a renewal needs no restart. A certificate and
 * a key that do not match, as between the writes of the two files, are ignored until they do.
 */

/** The files of a certificate and its key. */
export interface CertificateFiles {
  certificateFile: string;
  keyFile: string;
  /** The section of the configuration that names them, for messages to the operator. */
  section: string;
}

/** The files that the first of the sections with files names; null: the certificate is self-signed. */
export function certificateFiles(
  sections: Record<string, Pick<Config['mx'], 'tls'>>,
): CertificateFiles | null {
  for (const [name, { tls }] of Object.entries(sections)) {
    const { certificateFile, keyFile } = tls;
    if (certificateFile !== undefined && keyFile !== undefined)
      return { certificateFile, keyFile, section: `${name}.tls` };
  }
  return null;
}

/** The certificate files of the SMTP listeners that are on. */
export function certificateFilesOf({
  mx,
  submission,
}: Pick<Config, 'mx' | 'submission'>): { listener: 'mx' | 'submission'; files: CertificateFiles }[] {
  const ofListener = (listener: 'mx' | 'submission', listen: string, files: CertificateFiles | null) =>
    listen === 'off' || files === null ? [] : [{ listener, files }];
  return [
    ...ofListener('mx', mx.listen, certificateFiles({ mx })),
    ...ofListener('submission', submission.listen, certificateFiles({ submission, mx })),
  ];
}

const CHECK_INTERVAL_MS = 5 * SECOND;

export type CertificateSource = ReturnType<typeof createCertificateSource>;

/**
 * Call `load` before `watch`, which checks the files every 5 s. A later pair that cannot be used is logged and tried
 * again, while the last one remains in use. A generated certificate is not replaced until files are configured.
 * `filesNow`: null: a self-signed certificate is generated; called at each check, because a reload changes the files.
 */
export function createCertificateSource(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  hostname: string,
  filesNow: () => CertificateFiles | null,
  checkIntervalMs = CHECK_INTERVAL_MS,
) {
  let generated: TlsPair | null = null;
  let loaded: TlsPair | null = null;
  let section = '';
  const pairOf = async (files: CertificateFiles | null) =>
    files === null
      ? (generated ??= generateSelfSignedCertificate(hostname, clock.now()))
      : readPair(files, loaded);
  const reload = async (onChange: (pair: TlsPair) => void) => {
    const files = filesNow();
    const pair = await pairOf(files);
    if (pair === loaded) return;
    loaded = pair;
    onChange(pair);
    log.info({ certificate: files?.certificateFile ?? 'self-signed' }, 'certificate reloaded');
  };
  return {
    /** The certificate to start with. Rejects when the files cannot be used. */
    load: async (): Promise<TlsPair> => {
      const files = filesNow();
      section = files?.section ?? 'self-signed';
      loaded = await pairOf(files);
      return loaded;
    },
    /** Calls back with every later one until the returned function is called. */
    watch: (onChange: (pair: TlsPair) => void): (() => Promise<void>) => {
      const loop = createLoop({
        name: `certificate ${section}`,
        run: () => reload(onChange),
        intervalMs: checkIntervalMs,
        firstMs: checkIntervalMs,
        log,
      });
      loop.start();
      return loop.stop;
    },
  };
}

/** Rejects with an OperatorFault when the files cannot be used for TLS. */
export async function verifyCertificateFiles(files: CertificateFiles): Promise<void> {
  await readPair(files, null);
}

/** Reads both files; returns `known`, which is not verified again, when they contain it. */
async function readPair(files: CertificateFiles, known: TlsPair | null): Promise<TlsPair> {
  const { certificateFile, keyFile, section } = files;
  const cert = await readPem('certificateFile', certificateFile, section);
  const key = await readPem('keyFile', keyFile, section);
  if (cert === known?.cert && key === known.key) return known;
  try {
    await verifyTlsPair({ cert, key });
  } catch (error) {
    throw new OperatorFault(
      `${section}: the certificate in ${certificateFile} and the key in ${keyFile} cannot be used for TLS: ${errorText(error)}. Both must be PEM, and the key that of the certificate`,
      { cause: error },
    );
  }
  return { cert, key };
}

async function readPem(key: 'certificateFile' | 'keyFile', file: string, section: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const alternative = `remove certificateFile and keyFile from [${section}] to use a self-signed certificate`;
    throw fileFault(`${section}.${key}`, file, error, alternative);
  }
}

/**
 * Registers the gauge of the expiry of the certificate files of the SMTP listeners. The files are read at each scrape, as
 * the listeners read them again when they change. A file that cannot be read has no value: the log of the listener has the
 * reason.
 */
export function registerListenerCertificates(
  registry: Registry,
  config: Pick<Config, 'mx' | 'submission'>,
): void {
  addSeries(
    registry,
    [
      'postrider_listener_certificate_expiry_timestamp_seconds',
      'Expiry of the certificate files of the SMTP listeners (mx, submission).',
    ],
    ['listener'],
    async () => {
      // Read at each scrape: a reload can add, change and remove the files.
      const expiries = certificateFilesOf(config).map(async ({ listener, files }) => ({
        listener,
        expiresAt: await expiryOf(files.certificateFile),
      }));
      return (await Promise.all(expiries)).flatMap(({ listener, expiresAt }) =>
        expiresAt === null ? [] : [[{ listener }, expiresAt / 1000] as const],
      );
    },
  );
}

/** Epoch ms; null when the file has no readable certificate. */
async function expiryOf(file: string): Promise<number | null> {
  try {
    return Date.parse(new X509Certificate(await readFile(file)).validTo);
  } catch {
    // Between the writes of a renewal, or reported by the listener.
    return null;
  }
}
