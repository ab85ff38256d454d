import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.ts';
import { fileFault } from '../core/operator-fault.ts';
import type { Resolver } from '../dns/resolver.ts';
import { createAuthority } from './authority.ts';
import { createKeeper, type Keeper, type KeeperHouse } from './keeper.ts';

/** The room as a whole: the keeper, the authority it asks, and what that comes to look for meanwhile. */
export interface Certificates extends Keeper {
  /** What stands under a challenge's token while its order is open (RFC 8555 §8.3); null: nothing. */
  challengeAnswer(token: string): string | null;
}

export interface CertificatesHouse extends Omit<KeeperHouse, 'authority'> {
  config: Config['public']['tls'];
  resolver: Resolver;
  userAgent: string;
}

const ACCOUNT_KEY = 'acme-account-key';

/** Throws when `directoryCaFile` cannot be read. */
export function createCertificates(house: CertificatesHouse): Certificates {
  const { config, resolver, userAgent, writer, seal } = house;
  const answers = new Map<string, string>();

  /** Made once: whoever has it has the account, and its right to certificates for our names. */
  async function accountKey(): Promise<string> {
    const kept = await writer.run((all) => {
      const before = all.settings.get(ACCOUNT_KEY);
      if (before !== null) return before;
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
      const sealed = seal.seal(Buffer.from(pem), ACCOUNT_KEY).toString('base64');
      all.settings.put(ACCOUNT_KEY, sealed);
      return sealed;
    });
    return seal.open(Buffer.from(kept, 'base64'), ACCOUNT_KEY).toString();
  }

  const authority = createAuthority({
    directory: config.directory,
    email: config.email ?? null,
    trusted: config.directoryCaFile === undefined ? null : readAuthorityFile(config.directoryCaFile),
    userAgent,
    resolver,
    accountKey,
    offer: (token, answer) => void answers.set(token, answer),
    withdraw: (token) => void answers.delete(token),
  });
  return {
    ...createKeeper({ ...house, authority }),
    challengeAnswer: (token) => answers.get(token) ?? null,
  };
}

function readAuthorityFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFault('public.tls.directoryCaFile', file, error);
  }
}
