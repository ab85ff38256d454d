import { request } from 'undici';
import * as z from 'zod';
import { SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import type { Instance } from '../store/backup/identity.ts';
import { Superseded } from '../store/database/failure.ts';

export interface StandbyOptions {
  /** Base URLs of the APIs of the peers. */
  peers: readonly string[];
  log: Log;
  /** Pause between two checks. */
  intervalMs?: number;
}

const INTERVAL_MS = 5 * SECOND;
const TIMEOUT_MS = 3 * SECOND;
const MAX_RESPONSE_BYTES = 4096;

const responseSchema = z.object({
  data: z.object({ instanceId: z.string(), generation: z.int() }),
});

/**
 * Prevents two daemons from sending the same mail: an original that starts again after a copy of its database was restored
 * elsewhere. Each asks its peers (`standby.peers`) at `GET /instance` for their instance id and generation. Of the
 * daemons of one instance, all but the one with the highest generation stop. A peer that does not respond does not
 * count: it is down, or cannot be reached.
 *
 * Sends no request yet. Each check asks all peers at the same time, for 3 s at most, and logs a peer once when it stops
 * responding. `watch` starts a loop, except without peers; `stop` ends it.
 */
export function createStandby({ peers, log, intervalMs = INTERVAL_MS }: StandbyOptions) {
  /** Peers whose last request failed: each failure is logged once. */
  const unreachable = new Set<string>();

  async function ask(peer: string): Promise<Instance | null> {
    try {
      const { data } = responseSchema.parse(JSON.parse(await get(new URL('/instance', peer))));
      if (unreachable.delete(peer)) log.info({ peer }, 'standby peer responds again');
      return data;
    } catch (error) {
      if (!unreachable.has(peer)) log.warn({ peer, err: error }, 'standby peer does not respond');
      unreachable.add(peer);
      return null;
    }
  }

  /** Rejects with Superseded when a peer of the instance has a higher generation. */
  async function check({ instanceId, generation }: Instance): Promise<void> {
    const found = await Promise.all(peers.map(async (peer) => ({ peer, instance: await ask(peer) })));
    for (const { peer, instance } of found) {
      if (instance === null || instance.instanceId !== instanceId || instance.generation <= generation)
        continue;
      throw new Superseded(
        `${peer} has taken over from this daemon (its generation is ${instance.generation}, that of this daemon ${generation}). Both would send the same mail. To make this daemon the primary again, stop the other one and start this one with --force-new-generation`,
      );
    }
  }

  let loop: ReturnType<typeof createLoop> | null = null;
  return {
    /** The highest generation of all peers of any instance; 0: none responded. */
    highestGeneration: async (): Promise<number> => {
      const found = await Promise.all(peers.map(ask));
      return Math.max(0, ...found.map((instance) => instance?.generation ?? 0));
    },
    check,
    /** Checks every few seconds; calls `onSuperseded` when it finds such a peer. */
    watch: (own: Instance, onSuperseded: (error: Superseded) => void): void => {
      if (peers.length === 0) return;
      loop = createLoop({
        name: 'standby-peers',
        intervalMs,
        firstMs: intervalMs,
        log,
        run: async () => {
          try {
            await check(own);
          } catch (error) {
            if (!(error instanceof Superseded)) throw error;
            onSuperseded(error);
          }
        },
      });
      loop.start();
    },
    stop: async (): Promise<void> => loop?.stop(),
  };
}

/** The body of a response with status 200, of limited size. */
async function get(url: URL): Promise<string> {
  const { statusCode, body } = await request(url, {
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`the response of ${url.href} is too long`);
    chunks.push(chunk);
  }
  if (statusCode !== 200) throw new Error(`${url.href} responded with status ${statusCode}`);
  return Buffer.concat(chunks).toString();
}
