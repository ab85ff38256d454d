import type { ReaderPool } from './pool.ts';

/**
 * The write-ahead log begins anew only when a checkpoint finds no reader in it. Long reads that overlap would let it
 * grow without end: so after a checkpoint that was incomplete, no further read starts until those under way have ended
 * and another checkpoint has run. Returns what to call after an incomplete one.
 */
export function createLogRelief(deps: {
  pool: Pick<ReaderPool, 'pause'>;
  /** Of the writer. */
  checkpoint(): Promise<void>;
}): () => void {
  let isRelieving = false;

  async function relieve(): Promise<void> {
    const { resume } = await deps.pool.pause();
    try {
      await deps.checkpoint();
    } finally {
      resume();
      isRelieving = false;
    }
  }

  return () => {
    if (isRelieving) return;
    isRelieving = true;
    void relieve();
  };
}
