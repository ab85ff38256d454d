import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { duplexPair } from 'node:stream';
import { connect, createSecureContext, TLSSocket } from 'node:tls';
import { errorText } from './errors.ts';
import { fileFault, OperatorFault } from './operator-fault.ts';

/** A certificate with its chain, and its private key: PEM. */
export interface TlsPair {
  cert: string;
  key: string;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Rejects unless a server can use the pair: both are complete, the key is that of the certificate, and a handshake succeeds.
 * createSecureContext alone accepts an empty key, with which every handshake fails. Whether the certificate has expired, and
 * who trusts it, is not examined.
 */
export async function verifyTlsPair({ cert, key }: TlsPair): Promise<void> {
  requireCertificates(cert, 'the certificate file');
  requireBlocks(key, 'the key file');
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('the key is not that of the certificate');
  await handshake(createSecureContext({ cert, key }));
}

/** Throws unless the text consists of at least one complete certificate in PEM. */
function requireCertificates(pem: string, name: string): void {
  for (const block of requireBlocks(pem, name))
    if (block.includes('CERTIFICATE-----')) void new X509Certificate(block);
}

/** Reads a file of certificates in PEM. Throws an `OperatorFault` that names the setting when it cannot be used. */
export function readCertificatesFile(setting: string, file: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFault(setting, file, error);
  }
  try {
    requireCertificates(pem, 'the file');
  } catch (error) {
    throw new OperatorFault(`${setting}: ${file} cannot be used: ${errorText(error)}`, { cause: error });
  }
  return pem;
}

/** Returns the blocks of a PEM file. Throws when it is empty or a block is not complete. */
function requireBlocks(pem: string, name: string): string[] {
  if (pem.trim() === '') throw new Error(`${name} is empty`);
  const blocks = pem.match(/-----BEGIN [A-Z0-9 ]+-----[^-]*-----END [A-Z0-9 ]+-----/g) ?? [];
  if (blocks.length === 0 || blocks.length !== pem.split('-----BEGIN').length - 1)
    throw new Error(`${name} is incomplete`);
  return blocks;
}

async function handshake(secureContext: ReturnType<typeof createSecureContext>): Promise<void> {
  const [serverSide, clientSide] = duplexPair();
  const server = new TLSSocket(serverSide, { isServer: true, secureContext });
  const client = connect({ socket: clientSide, rejectUnauthorized: false });
  try {
    const failed = new Promise<never>((_resolve, reject) => {
      for (const socket of [server, client]) socket.on('error', reject);
    });
    const signal = AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS);
    await Promise.race([once(client, 'secureConnect', { signal }), failed]);
  } catch (error) {
    throw new Error('a handshake with them fails', { cause: error });
  } finally {
    client.destroy();
    server.destroy();
  }
}
