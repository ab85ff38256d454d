import { createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/clock.ts';
import type { Seal } from '../core/seal.ts';
import type { Tables } from '../store/tables.ts';
import type { IssuedCertificate } from './authority.ts';

/** The certificates that are in use, as contexts of TLS connections; read from the database when they are first needed. */
export interface CertificateContexts {
  /** The certificate of a host while it is valid, even when its renewal is due; null: none. */
  current(host: string): SecureContext | null;
  /** The certificate in memory, without a read of the database; null: none, or it has expired. */
  cached(host: string): SecureContext | null;
  /** Replaces the certificate of a host. `notAfter`: epoch ms. */
  use(host: string, issued: IssuedCertificate, notAfter: number): void;
  delete(host: string): void;
}

export interface CertificateContextsDeps {
  tables: Tables;
  clock: Clock;
  seal: Seal;
}

const MAX_CONTEXTS = 2000;

interface LoadedCertificate {
  context: SecureContext;
  notAfter: number;
}

/**
 * Begins empty: `current` loads certificates from the database, and up to 2000 stay in memory. It throws when the
 * stored key cannot be decrypted.
 */
export function createContexts({ tables, clock, seal }: CertificateContextsDeps): CertificateContexts {
  const contexts = new LRUCache<string, LoadedCertificate>({ max: MAX_CONTEXTS });

  function use(host: string, { key, chain }: IssuedCertificate, notAfter: number): LoadedCertificate {
    const loaded = { context: createSecureContext({ key, cert: chain }), notAfter };
    contexts.set(host, loaded);
    return loaded;
  }

  function load(host: string): LoadedCertificate | null {
    const row = tables.certificates.get(host);
    if (row === null || row.chain === null || row.private_key === null || row.not_after === null) return null;
    const key = seal.open(row.private_key, sealContext(host)).toString();
    return use(host, { key, chain: row.chain }, row.not_after);
  }

  const ifValid = (known: LoadedCertificate | null) =>
    known !== null && known.notAfter > clock.now() ? known.context : null;

  return {
    current: (host) => ifValid(contexts.get(host) ?? load(host)),
    cached: (host) => ifValid(contexts.get(host) ?? null),
    use: (host, issued, notAfter) => void use(host, issued, notAfter),
    delete: (host) => void contexts.delete(host),
  };
}

/** Binds a sealed key to its host. */
export function sealContext(host: string): string {
  return `certificate:${host}`;
}
