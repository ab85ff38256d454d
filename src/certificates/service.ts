import { generateKeyPairSync } from 'node:crypto';
import type { Config } from '../config/schema.ts';
import { readCertificatesFile } from '../core/tls-pair.ts';
import type { Resolver } from '../dns/resolver.ts';
import { createCertificateAuthority } from './authority.ts';
import { type CertificateKeeper, createKeeper, type KeeperDeps } from './keeper.ts';

/** The certificates of the public pages, with the challenges of orders in progress. */
export interface Certificates extends CertificateKeeper {
  /** The content at a challenge's token while its order is open (RFC 8555 §8.3); null: none. */
  challengeAnswer(token: string): string | null;
}

export interface CertificatesDeps extends Omit<KeeperDeps, 'authority'> {
  config: Config['public']['tls'];
  resolver: Resolver;
  userAgent: string;
}

const ACCOUNT_KEY = 'acme-account-key';

/** Throws when `directoryCaFile` cannot be used. */
export function createCertificates(deps: CertificatesDeps): Certificates {
  const { config, resolver, userAgent, writer, seal } = deps;
  /** Key authorizations by token, for the orders in progress. */
  const challenges = new Map<string, string>();

  /** Generated once, because the key is the account, with its authorizations for our names. */
  async function accountKey(): Promise<string> {
    const sealed = await writer.run((tables) => {
      const existing = tables.settings.get(ACCOUNT_KEY);
      if (existing !== null) return existing;
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
      const created = seal.seal(Buffer.from(pem), ACCOUNT_KEY).toString('base64');
      tables.settings.put(ACCOUNT_KEY, created);
      return created;
    });
    return seal.open(Buffer.from(sealed, 'base64'), ACCOUNT_KEY).toString();
  }

  const authority = createCertificateAuthority({
    directory: config.directory,
    email: config.email ?? null,
    trusted:
      config.directoryCaFile === undefined
        ? null
        : readCertificatesFile('public.tls.directoryCaFile', config.directoryCaFile),
    userAgent,
    resolver,
    accountKey,
    publish: (token, keyAuthorization) => void challenges.set(token, keyAuthorization),
    withdraw: (token) => void challenges.delete(token),
  });
  return {
    ...createKeeper({ ...deps, authority }),
    challengeAnswer: (token) => challenges.get(token) ?? null,
  };
}
