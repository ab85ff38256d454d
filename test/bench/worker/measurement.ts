import { createSecretKey } from 'node:crypto';
import type { ClickSigner } from '../../../src/mail/tokens.ts';

/** What `worker.ts` passes to `measured.ts`, and what it returns. */
export interface MeasurementRequest {
  html: string;
  /** Null: derived from the HTML. */
  text: string | null;
  /** Links are replaced. */
  tracked: boolean;
  /** Of sinks on loopback. */
  ports: { plain: number; tls: number };
  /** RSA private key, PKCS #8. */
  keyPem: string;
  /** Processor time of each step in each round. */
  roundMs: number;
  rounds: number;
  /** The name of one step, for a profile; '': all. */
  only: string;
}

export interface Measurement {
  /** Size of the message without signature. */
  bytes: number;
  /** SHA-256 of the message without signature, in hex: versions are comparable only when it is the same. */
  digest: string;
  /** Processor time of each step in the best round, ms, by its name. Other load on the machine only adds to it. */
  cpuMs: Record<string, number>;
}

export function clickKey(): ClickSigner {
  return { key: createSecretKey(Buffer.alloc(32, 7)), head: Buffer.from('a2abcdefabcd', 'hex') };
}
