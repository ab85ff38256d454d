import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import { type DoctorSetup, HOST, NOW } from '../setup.ts';
import { describeBroken } from './rows.ts';

const YEAR_MS = 365 * DAY;

/** Writes a certificate and its key for `mx.tls` of the setup. */
function useCertificate(setup: DoctorSetup, pem: { cert: string; key: string }, chain = ''): void {
  const certificateFile = join(setup.dir, 'mx.pem');
  const keyFile = join(setup.dir, 'mx.key');
  writeFileSync(certificateFile, pem.cert + chain);
  writeFileSync(keyFile, pem.key, { mode: 0o600 });
  setup.config.mx.tls = { certificateFile, keyFile };
}

describeBroken(
  'broken certificates',
  ['certificates'],
  [
    {
      title: 'expired certificate of the MX listener',
      check: 'certificates',
      break: (setup) => useCertificate(setup, setup.authority.issue([HOST], new Date(NOW - DAY))),
      status: 'failure',
      subject: /^mx\.tls /,
      reason: /expired on 2026-11-21/,
      fix: /certbot renew/,
    },
    {
      title: 'certificate of the MX listener that expires soon',
      check: 'certificates',
      break: (setup) => useCertificate(setup, setup.authority.issue([HOST], new Date(NOW + 5 * DAY))),
      status: 'warning',
      reason: /expires on 2026-11-27/,
    },
    {
      title: 'certificate of the MX listener for another name',
      check: 'certificates',
      break: (setup) => useCertificate(setup, setup.authority.issue(['other.test'], new Date(NOW + YEAR_MS))),
      status: 'failure',
      reason: /not valid for mail\.example\.net/,
    },
    {
      title: 'private key of another certificate',
      check: 'certificates',
      break: (setup) => {
        const until = new Date(NOW + YEAR_MS);
        const { cert } = setup.authority.issue([HOST], until);
        useCertificate(setup, { cert, key: setup.authority.issue([HOST], until).key });
      },
      status: 'failure',
      reason: /does not belong to the certificate/,
    },
    {
      title: 'certificate without its chain',
      check: 'certificates',
      break: (setup) => useCertificate(setup, setup.authority.issue([HOST], new Date(NOW + YEAR_MS))),
      status: 'warning',
      reason: /no intermediate certificate/,
      fix: /fullchain\.pem/,
    },
    {
      title: 'submission without a certificate',
      check: 'certificates',
      break: ({ config }) => {
        config.file = '/etc/postrider-shop/postrider.toml';
        config.submission.listen = '127.0.0.1:587';
        config.mx.tls = {};
      },
      status: 'warning',
      reason: /generated certificate/,
      fix: /"\/etc\/postrider-shop\/fullchain\.pem"/,
    },
    {
      title: 'missing certificate file',
      check: 'certificates',
      break: ({ config, dir }) =>
        void (config.mx.tls = { certificateFile: join(dir, 'none.pem'), keyFile: join(dir, 'none.key') }),
      status: 'failure',
      reason: /ENOENT/,
    },
    {
      title: 'certificate of a link host that is not renewed',
      check: 'certificates',
      break: ({ config, tables }) => {
        config.public.tls.listen = '0.0.0.0:443';
        const times = { not_after: NOW + 9 * DAY, due_at: NOW - 20 * DAY, tried_at: NOW - HOUR };
        tables.certificates.put({
          host: 'link.example.com',
          private_key: Buffer.alloc(1),
          chain: 'pem',
          ...times,
          failures: 7,
          last_error: 'the challenge was not answered',
        });
      },
      status: 'warning',
      subject: 'link.example.com',
      reason: /expires on 2026-12-01 and was not renewed.*the challenge was not answered/,
    },
  ],
);
