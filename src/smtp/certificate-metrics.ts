import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Gauge, type Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import { certificateFilesOf } from './certificate.ts';

/**
 * Registers the gauge of the expiry of the certificate files of the SMTP listeners. The files are read at each scrape, as the listeners read them again when they change. A file that cannot be read has no value: the log of
 * the listener has the reason.
 */
export function registerListenerCertificates(
  registry: Registry,
  config: Pick<Config, 'mx' | 'submission'>,
): void {
  const expiry = new Gauge({
    name: 'postrider_listener_certificate_expiry_timestamp_seconds',
    help: 'Expiry of the certificate files of the SMTP listeners (mx, submission).',
    labelNames: ['listener'],
    registers: [],
    async collect() {
      this.reset();
      // Read at each scrape: a reload can add, change and remove the files.
      for (const { listener, files } of certificateFilesOf(config)) {
        const expiresAt = await expiryOf(files.certificateFile);
        if (expiresAt !== null) this.set({ listener }, expiresAt / 1000);
      }
    },
  });
  registry.registerMetric(expiry);
}

/** Epoch ms; null when the file has no readable certificate. */
async function expiryOf(file: string): Promise<number | null> {
  try {
    return Date.parse(new X509Certificate(await readFile(file)).validTo);
  } catch {
    // Between the writes of a renewal, or reported by the listener.
    return null;
  }
}
