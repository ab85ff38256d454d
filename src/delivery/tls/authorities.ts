import { readFileSync } from 'node:fs';
import type { Config } from '../../config/schema.ts';
import { fileFault } from '../../core/operator-fault.ts';

/** The certificates in `delivery.tls.caFile`, PEM. Throws an `OperatorFault` when it cannot be read. */
export function configuredAuthorities({ delivery: { tls } }: Pick<Config, 'delivery'>): string[] {
  if (tls.caFile === undefined) return [];
  try {
    return [readFileSync(tls.caFile, 'utf8')];
  } catch (error) {
    throw fileFault('delivery.tls.caFile', tls.caFile, error);
  }
}
