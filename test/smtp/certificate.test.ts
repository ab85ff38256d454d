import { X509Certificate } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { OperatorFault } from '../../src/core/operator-fault.ts';
import { generateSelfSignedCertificate } from '../../src/core/x509.ts';
import { createCertificateSource, verifyCertificateFiles } from '../../src/smtp/certificate.ts';
import { MX_COMMAND_RATES } from '../../src/smtp/command-limits.ts';
import { createSmtpListener, type ListenerOptions } from '../../src/smtp/listener.ts';
import { createAuthority } from '../support/certificates.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { heldClock, temporaryDir } from '../support/store.ts';
import { HOST, startMx } from './mx/setup.ts';

const RUNTIME = {
  config: { hostname: HOST },
  monotonic: heldClock(),
  log: createLog({ level: 'silent', hashAddresses: false }),
};
const LISTENER: Omit<ListenerOptions, 'certificate'> = {
  section: 'mx',
  settings: { listen: '127.0.0.1:0', proxyProtocol: [], connections: 100, connectionsPerAddress: 100 },
  mailBytes: 10_000,
  commandLength: 2048,
  commandRates: MX_COMMAND_RATES,
  budget: { mails: 1, holderShare: 1, networkShare: 1, reserve: 0 },
  uploader: () => ({ holder: '', network: null, isProven: false }),
  options: {},
  onRecipient: () => null,
  onData: async () => 'OK',
  onClosed: async () => {},
};

describe('the self-signed certificate', () => {
  it('is valid for the host for ten years and signed with its own key', () => {
    const now = Date.UTC(2026, 0, 15);
    const { cert } = generateSelfSignedCertificate(HOST, now);
    const read = new X509Certificate(cert);
    expect(read.subject).toBe(`CN=${HOST}`);
    expect(read.checkHost(HOST)).toBe(HOST);
    expect(read.verify(read.publicKey)).toBe(true);
    expect(Date.parse(read.validFrom)).toBe(Date.UTC(2026, 0, 14));
    expect(Date.parse(read.validTo)).toBe(now + 3650 * 86_400_000);
  });

  it.each([Date.UTC(2026, 5, 1), Date.UTC(2045, 5, 1), Date.UTC(2055, 5, 1)])(
    'encodes dates before and after 2050 (%d)',
    (now) => {
      expect(Date.parse(new X509Certificate(generateSelfSignedCertificate(HOST, now).cert).validFrom)).toBe(
        now - 86_400_000,
      );
    },
  );

  it('is used when no certificate is configured', async () => {
    const setup = await startMx();
    const client = await setup.client();
    const socket = await client.startTls();
    expect(socket.getPeerCertificate().subject.CN).toBe(HOST);
    expect(socket.getProtocol()).toBe('TLSv1.3');
    expect(await client.say('EHLO mta.example')).not.toContain('STARTTLS');
    expect(await client.mail('', `postmaster@${HOST}`, 'Subject: hello\r\n\r\nhello')).toMatch(/^250 /);
  });
});

describe('the configured certificate', () => {
  const authority = createAuthority();

  function files() {
    const dir = temporaryDir();
    const tls = { certificateFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem'), section: 'mx.tls' };
    /** As renewal tools do: replaces each file atomically, but not both together. */
    const put = (file: string, text: string) => {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    };
    return { tls, put };
  }

  it('is reloaded after both files have changed', async () => {
    const { tls, put } = files();
    const [first, second] = [authority.issue([HOST]), authority.issue([HOST])];
    put(tls.certificateFile, first.cert);
    put(tls.keyFile, first.key);
    const faults: unknown[] = [];
    const log = createLog(
      { level: 'error', hashAddresses: false },
      { write: (line) => void faults.push(JSON.parse(line)) },
    );
    const source = createCertificateSource({ clock: heldClock(), log }, HOST, () => tls, 20);
    expect(await source.load()).toEqual(first);
    const seen: unknown[] = [];
    onTestFinished(source.watch((pair) => void seen.push(pair)));

    put(tls.certificateFile, second.cert);
    await expect.poll(() => faults).toHaveLength(1);
    expect(seen).toEqual([]);
    put(tls.keyFile, second.key);
    await expect.poll(() => seen).toEqual([second]);
    expect(faults).toHaveLength(1);
  });

  it('is replaced for new connections and not for open ones', async () => {
    const { tls, put } = files();
    const [first, second] = [authority.issue([HOST]), authority.issue([HOST])];
    put(tls.certificateFile, first.cert);
    put(tls.keyFile, first.key);
    const { log } = RUNTIME;
    const certificate = createCertificateSource({ clock: heldClock(), log }, HOST, () => tls, 20);
    const listener = await createSmtpListener(RUNTIME, { ...LISTENER, certificate });
    onTestFinished(() => listener.close(0));
    await listener.listen();
    const connect = async () => {
      const client = await smtpClient(listener.address()?.port ?? 0);
      onTestFinished(() => client.destroy());
      await client.say('EHLO mta.example');
      const socket = await client.startTls({ ca: authority.cert, servername: HOST });
      return { client, serial: socket.getPeerCertificate().serialNumber };
    };
    const old = await connect();
    expect(old.serial).toBe(new X509Certificate(first.cert).serialNumber);
    put(tls.keyFile, second.key);
    put(tls.certificateFile, second.cert);
    await expect
      .poll(async () => (await connect()).serial, { interval: 200 })
      .toBe(new X509Certificate(second.cert).serialNumber);
    expect(await old.client.say('NOOP')).toMatch(/^250 /);
  });

  it('that is missing with its key is named first, every time', async () => {
    const { tls } = files();
    for (let round = 0; round < 200; round += 1) {
      await expect(verifyCertificateFiles({ ...tls, section: 'mx.tls' })).rejects.toThrow(
        /^mx\.tls\.certificateFile: \/.* does not exist/,
      );
    }
  });

  it.each([
    [
      'cannot be read',
      (text: string) => text,
      'missing.pem',
      /^mx\.tls\.certificateFile: \/.*missing\.pem does not exist\. Create the file or correct the path, or remove/,
    ],
    [
      'is not a certificate',
      () => 'not a certificate',
      null,
      /^mx\.tls: the certificate in \/.* and the key in \/.* cannot be used for TLS: /,
    ],
  ])(
    'that %s fails the start with the file, the configuration key and the remedy',
    async (_, change, name, message) => {
      const { tls, put } = files();
      const pair = authority.issue([HOST]);
      put(tls.certificateFile, change(pair.cert));
      put(tls.keyFile, pair.key);
      const wrong = name === null ? tls : { ...tls, certificateFile: `${tls.certificateFile}.${name}` };
      const fault: unknown = await startMx({ mx: { tls: wrong } }).catch((error: unknown) => error);
      expect(fault).toBeInstanceOf(OperatorFault);
      expect(fault).toMatchObject({ message: expect.stringMatching(message) });
      expect(String(fault)).not.toContain('\n');
    },
  );
});
