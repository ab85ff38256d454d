import { isIP } from 'node:net';
import { type Answer, AUTHORITATIVE_ANSWER, encode } from 'dns-packet';
import { SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { errorText } from '../../core/errors.ts';
import type { Runtime } from '../../core/runtime.ts';
import { formatServer, queryUdp, type ServerAddress } from '../transport.ts';
import { RCODE } from '../wire.ts';

const OPCODE_NOTIFY = 4 << 11;
const OPCODE_BITS = 0x7800;
/** RFC 1996 §3.6: at most five repetitions; each waits longer than the one before. */
const TIMEOUTS_MS = [2, 5, 15, 30, 60].map((seconds) => seconds * SECOND);

/**
 * Notifies the secondary name servers that the zone has changed (NOTIFY, RFC 1996), so that they need not wait for refresh.
 * Sends nothing until `notify`. Each server is notified over UDP until it responds, at most five times within two
 * minutes; what a restart interrupts is not continued.
 */
export function createZoneNotifier(
  { random, log }: Pick<Runtime, 'random' | 'log'>,
  observe: (result: 'acknowledged' | 'failed') => void,
) {
  const running = new Set<Promise<void>>();
  /** Ends the notifications in progress. */
  let current = new AbortController();

  async function notifyServer(
    server: ServerAddress,
    soa: Answer,
    source: string | undefined,
    ended: AbortSignal,
  ): Promise<void> {
    const serial = soa.type === 'SOA' ? soa.data.serial : undefined;
    const fields = { server: formatServer(server), zone: soa.name, serial };
    let reason = '';
    for (const timeoutMs of TIMEOUTS_MS) {
      const id = random.bytes(2).readUInt16BE(0);
      const limit = abortAfter(timeoutMs, ended);
      try {
        const accept = (bytes: Buffer) => replyCode(bytes, id);
        const rcode = await queryUdp(server, notification(id, soa), accept, limit, source);
        if (rcode === RCODE.NOERROR) {
          observe('acknowledged');
          log.debug(fields, 'secondary name server notified');
        } else {
          observe('failed');
          log.warn(
            { ...fields, rcode },
            'secondary name server refused the notification: allow NOTIFY from this server there',
          );
        }
        return;
      } catch (error) {
        // No response, no server at the address, or no such source address: the next iteration repeats the notification.
        reason = errorText(error);
        await elapsed(limit);
        if (ended.aborted) return;
      }
    }
    observe('failed');
    log.warn(
      { ...fields, reason },
      'secondary name server did not answer the notification; it will see the change at its next refresh',
    );
  }

  return {
    /**
     * Notifies each server, from the first address of `sources` of its family. Replaces notifications of an earlier version
     * that are still being repeated.
     */
    notify: (servers: readonly ServerAddress[], soa: Answer, sources: readonly string[]): void => {
      current.abort();
      current = new AbortController();
      for (const server of servers) {
        const source = sources.find((address) => isIP(address) === isIP(server.address));
        const work = notifyServer(server, soa, source, current.signal).finally(() => running.delete(work));
        running.add(work);
      }
    },
    /** Ends all notifications; resolves when none is in progress. */
    stop: async (): Promise<void> => {
      current.abort();
      await Promise.all(running);
    },
  };
}

function notification(id: number, soa: Answer): Buffer {
  return encode({
    type: 'query',
    id,
    flags: OPCODE_NOTIFY | AUTHORITATIVE_ANSWER,
    questions: [{ type: 'SOA', name: soa.name }],
    answers: [soa],
  });
}

/** The response code; undefined when the message is not the response to this notification. */
function replyCode(bytes: Buffer, id: number): number | undefined {
  if (bytes.length < 12 || bytes.readUInt16BE(0) !== id) return undefined;
  const flags = bytes.readUInt16BE(2);
  const isResponse = (flags & 0x8000) !== 0 && (flags & OPCODE_BITS) === OPCODE_NOTIFY;
  return isResponse ? flags & 0x0f : undefined;
}

/** Resolves when the signal is aborted. */
function elapsed(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
