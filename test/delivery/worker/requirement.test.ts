import { expect, it } from 'vitest';
import type { TlsMode, TlsRecord } from '../../../src/delivery/worker/protocol.ts';
import { requirementOf, satisfies } from '../../../src/delivery/worker/tls.ts';

const TLS: TlsRecord = {
  protocol: 'TLSv1.3',
  cipher: 'TLS_AES_256_GCM_SHA384',
  verified: true,
  policy: 'opportunistic',
  requiredBy: 'default',
  verification: 'webpki',
};

it.each<[protocol: string, mode: TlsMode, expected: boolean]>([
  ['TLSv1', 'opportunistic', true],
  ['TLSv1', 'required', false],
  ['TLSv1', 'verified', false],
  ['TLSv1.1', 'required', false],
  ['TLSv1.2', 'required', true],
  ['TLSv1.3', 'verified', true],
])('an open connection with %s carries mail in mode %s: %s', (protocol, mode, expected) => {
  const opened = {
    tls: { ...TLS, protocol },
    requirement: { mode: 'opportunistic', key: 'opportunistic' },
  } as const;
  const needed = requirementOf({ tls: mode, tlsSource: 'profile' }, { name: 'mx.example', addresses: [] });
  expect(satisfies(opened, needed)).toBe(expected);
});
