import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../core/clock.ts';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type KeyAndCertificate, makeOwnCertificate } from './own-certificate.ts';

/**
 * The certificate of a listener, read again whenever its files change: whoever renews it need not know of us.
 * A pair that does not fit together, as while one file is new and the other is not yet, is passed over.
 */
export interface CertificateFiles {
  certificateFile: string;
  keyFile: string;
}

/** As the configuration has them: both or neither. */
export function filesOf(tls: {
  certificateFile?: string | undefined;
  keyFile?: string | undefined;
}): CertificateFiles | null {
  const { certificateFile, keyFile } = tls;
  return certificateFile === undefined || keyFile === undefined ? null : { certificateFile, keyFile };
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
      try {
        seen = await stamp(files);
        return await read(files);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const both = `${files.certificateFile} and ${files.keyFile}`;
        throw new Error(`${both} cannot be used for TLS: ${why}`, { cause: error });
      }
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

async function stamp({ certificateFile, keyFile }: CertificateFiles): Promise<string> {
  const [cert, key] = await Promise.all([stat(certificateFile), stat(keyFile)]);
  return [cert, key].map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(', ');
}

async function read({ certificateFile, keyFile }: CertificateFiles): Promise<KeyAndCertificate> {
  const [cert, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
  // Throws when they do not belong together.
  createSecureContext({ cert, key });
  return { cert, key };
}
