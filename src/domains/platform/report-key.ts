import { createPrivateKey, createPublicKey } from 'node:crypto';
import { type DkimSigner, publicKeyRecordValue } from '../../mail/dkim.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import type { GenerateKey } from '../key-queue.ts';
import { type DkimKeyName, keyRecordName } from '../keys.ts';

/*
 * The DKIM key of the platform that signs TLS reports. Its record has the service type `tlsrpt` (RFC 8460 §3).
 */
const SELECTOR = 'tlsrpt';
/** The setting with the sealed key, in base64, and the context with which it is sealed. */
export const REPORT_KEY = 'tlsrpt-dkim-key';
const PUBLIC_KEY = 'tlsrpt-dkim-public-key';

/**
 * The signer of TLS reports. Generates the key at the first call. Rejects with the reason of the signal, which the stop of
 * the daemon aborts, when that is aborted before the key is stored: generating cannot be cancelled, and nothing waits for it.
 */
export async function reportSigner(
  { tables, writer, seal }: Pick<Context, 'tables' | 'writer' | 'seal'>,
  { hostname, generateKey, signal }: { hostname: string; generateKey: GenerateKey; signal: AbortSignal },
): Promise<DkimSigner> {
  let sealed = tables.settings.get(REPORT_KEY);
  if (sealed === null) {
    const key = await generateKey();
    signal.throwIfAborted();
    const der = key.export({ type: 'pkcs8', format: 'der' });
    const secret = seal.seal(der, REPORT_KEY).toString('base64');
    const record = publicKeyRecordValue(createPublicKey(key)).replace('; p=', '; s=tlsrpt; p=');
    await writer.run((tx) => {
      tx.settings.put(REPORT_KEY, secret);
      tx.settings.put(PUBLIC_KEY, record);
    });
    sealed = secret;
  }
  const secret = seal.open(Buffer.from(sealed, 'base64'), REPORT_KEY);
  const key = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' });
  return { domain: hostname, selector: SELECTOR, key };
}

/** The TXT record of the key for the platform's zone; null: there is no key yet. */
export function reportKeyRecord(
  { settings }: Pick<Tables, 'settings'>,
  hostname: string,
): { name: string; value: string } | null {
  // Earlier versions stored it with the service type `email` as well.
  const value = settings.get(PUBLIC_KEY)?.replace('; s=email:tlsrpt;', '; s=tlsrpt;') ?? null;
  const key: DkimKeyName = { domain: hostname, selector: SELECTOR };
  return value === null ? null : { name: keyRecordName(key), value };
}
