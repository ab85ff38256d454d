import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { registerListenerCertificates } from '../../src/smtp/certificate.ts';
import { createAuthority } from '../support/certificates.ts';
import { temporaryDir } from '../support/store.ts';

it('has the expiry of certificates that a reload adds, and none after it removed them', async () => {
  const { cert, key } = createAuthority().issue(['mx.postrider.example']);
  const tls = {
    certificateFile: join(temporaryDir(), 'cert.pem'),
    keyFile: join(temporaryDir(), 'key.pem'),
  };
  writeFileSync(tls.certificateFile, cert);
  writeFileSync(tls.keyFile, key);
  const config = loadConfig({ file: null, env: { POSTRIDER_SUBMISSION__LISTEN: '127.0.0.1:587' } });
  const registry = new Registry();
  registerListenerCertificates(registry, config);
  const values = async () =>
    [...(await registry.metrics()).matchAll(/^\w+\{listener="(\w+)"\} (\S+)$/gm)].map(([, name, value]) => [
      name,
      Number(value),
    ]);
  expect(await values()).toEqual([]);

  const expiry = Date.parse(new X509Certificate(cert).validTo) / 1000;
  Object.assign(config.mx.tls, tls);
  // Submission uses the files of mx.tls.
  expect(await values()).toEqual([
    ['mx', expiry],
    ['submission', expiry],
  ]);
  config.mx.listen = 'off';
  Object.assign(config.submission.tls, tls);
  expect(await values()).toEqual([['submission', expiry]]);
  Object.assign(config.submission.tls, { certificateFile: undefined, keyFile: undefined });
  Object.assign(config.mx.tls, { certificateFile: undefined, keyFile: undefined });
  expect(await values()).toEqual([]);
});
