import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../core/clock.ts';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import { type KeyAndCertificate, makeOwnCertificate } from './own-certificate.ts';

/**
 * The certificate of a listener, read again whenever its files change: whoever renews it need not know of us.
 * A pair that does not fit together, as while one file is new and the other is not yet, is passed over.
 */
export interface CertificateFiles {
  certificateFile: string;
  keyFile: string;
  /** The section of the configuration that names them, for messages to the operator. */
  section: string;
}

/** As the section has them: both or neither. */
export function filesOf(
  section: string,
  tls: { certificateFile?: string | undefined; keyFile?: string | undefined },
): CertificateFiles | null {
  const { certificateFile, keyFile } = tls;
  return certificateFile === undefined || keyFile === undefined
    ? null
    : { certificateFile, keyFile, section };
}

export interface CertificateSource {
  /** What to begin with. Rejects when the files cannot be used. */
  load(): Promise<KeyAndCertificate>;
  /** Calls back with every later one; returns how to stop. */
  watch(onChange: (pair: KeyAndCertificate) => void): () => void;
}

const LOOK_MS = 5 * SECOND;

/** `files` null: one of our own is made. */
export function createCertificateSource(settings: {
  files: CertificateFiles | null;
  hostname: string;
  clock: Clock;
  log: Log;
  /** How often the files are looked at, ms. */
  lookMs?: number;
}): CertificateSource {
  const { files, hostname, clock, log, lookMs = LOOK_MS } = settings;
  if (files === null)
    return { load: async () => makeOwnCertificate(hostname, clock.now()), watch: () => () => {} };

  let seen = '';
  const look = async (onChange: (pair: KeyAndCertificate) => void) => {
    const now = await stamp(files);
    if (now === seen) return;
    onChange(await read(files));
    // Only now: a pair that cannot be used is looked at again until it can.
    seen = now;
    log.info({ certificate: files.certificateFile }, 'certificate read again');
  };
  return {
    load: async () => {
      seen = await stamp(files);
      return await read(files);
    },
    watch: (onChange) => {
      let failing = false;
      const timer = setInterval(() => {
        look(onChange).then(
          () => (failing = false),
          (error: unknown) => {
            if (!failing) log.error({ err: error }, 'the new certificate cannot be used; the old one stays');
            failing = true;
          },
        );
      }, lookMs).unref();
      return () => clearInterval(timer);
    },
  };
}

async function stamp(files: CertificateFiles): Promise<string> {
  const [cert, key] = await both(stat, files);
  return [cert, key].map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(', ');
}

async function read(files: CertificateFiles): Promise<KeyAndCertificate> {
  const [cert, key] = await both((file) => readFile(file, 'utf8'), files);
  try {
    // Throws when they do not belong together.
    createSecureContext({ cert, key });
  } catch (error) {
    const { certificateFile, keyFile, section } = files;
    const why = error instanceof Error ? error.message : String(error);
    throw new OperatorFault(
      `${section}: the certificate in ${certificateFile} and the key in ${keyFile} cannot be used for TLS: ${why}. Both must be PEM, and the key that of the certificate`,
      { cause: error },
    );
  }
  return { cert, key };
}

/** Applies `use` to both files. Rejects with an OperatorFault that names the file and its setting. */
function both<Result>(
  use: (file: string) => Promise<Result>,
  { certificateFile, keyFile, section }: CertificateFiles,
): Promise<[Result, Result]> {
  const one = (setting: string, file: string) =>
    use(file).catch((error: unknown) => {
      const alternative = `remove certificateFile and keyFile from [${section}] to use a self-signed certificate`;
      throw fileFault(`${section}.${setting}`, file, error, alternative);
    });
  return Promise.all([one('certificateFile', certificateFile), one('keyFile', keyFile)]);
}
