import type { Config } from '../../config/schema.ts';
import { readCertificatesFile } from '../../core/tls-pair.ts';

/** The certificates in `delivery.tls.caFile`, PEM. Throws an `OperatorFault` when it cannot be used. */
export function configuredAuthorities({ delivery: { tls } }: Pick<Config, 'delivery'>): string[] {
  return tls.caFile === undefined ? [] : [readCertificatesFile('delivery.tls.caFile', tls.caFile)];
}
