import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Clock } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';

/** One SNTP request (RFC 4330 §5, §8). */
export interface SntpOptions {
  address: string;
  port: number;
  timeoutMs: number;
  signal: AbortSignal;
  clock: Clock;
  /** For the round-trip time: the clock may be set meanwhile. */
  monotonic: Clock;
}

const MESSAGE_BYTES = 48;
/** Leap indicator 0, version 4, mode 3 (client). */
const CLIENT_V4 = 0x23;
const MODE_BITS = 0x07;
const SERVER_MODE = 4;
/** Leap indicator 3: the server's own clock is not synchronized. */
const UNSYNCHRONIZED = 3;
const TRANSMIT_AT = 40;
const RECEIVE_AT = 32;
const ORIGINATE_AT = 24;
/** Seconds from 1900 to 1970. */
const NTP_EPOCH = 2_208_988_800;

/**
 * How many ms the clock is ahead of the server (negative: behind), with half the round trip as the error; null when the
 * server does not answer or its own clock is not synchronized. Never rejects.
 */
export function clockOffset(options: SntpOptions): Promise<{ offsetMs: number; errorMs: number } | null> {
  const { address, port, timeoutMs, signal, clock, monotonic } = options;
  const limit = abortAfter(timeoutMs, signal);
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    const finish = (result: { offsetMs: number; errorMs: number } | null) => {
      limit.removeEventListener('abort', stop);
      socket.removeAllListeners('message');
      socket.close();
      resolve(result);
      finished = true;
    };
    let finished = false;
    const stop = () => {
      if (!finished) finish(null);
    };
    limit.addEventListener('abort', stop, { once: true });
    const request = Buffer.alloc(MESSAGE_BYTES);
    request[0] = CLIENT_V4;
    socket.on('error', stop);
    socket.connect(port, address, () => {
      if (finished) return;
      const sentAt = clock.now();
      const sentMonotonic = monotonic.now();
      writeTimestamp(request, sentAt, TRANSMIT_AT);
      socket.on('message', (response) => {
        // The server repeats our timestamp: a response to another request is ignored.
        if (finished || !isAnswerTo(request, response)) return;
        const roundTrip = monotonic.now() - sentMonotonic;
        const received = readTimestamp(response, RECEIVE_AT);
        const transmitted = readTimestamp(response, TRANSMIT_AT);
        const isUsable = response.readUInt8(0) >> 6 !== UNSYNCHRONIZED && response.readUInt8(1) !== 0;
        if (!isUsable) return finish(null);
        const offsetMs = (sentAt - received + (sentAt + roundTrip - transmitted)) / 2;
        finish({ offsetMs, errorMs: roundTrip / 2 });
      });
      socket.send(request);
    });
  });
}

function isAnswerTo(request: Buffer, response: Buffer): boolean {
  return (
    response.length >= MESSAGE_BYTES &&
    (response.readUInt8(0) & MODE_BITS) === SERVER_MODE &&
    response.subarray(ORIGINATE_AT, RECEIVE_AT).equals(request.subarray(TRANSMIT_AT, MESSAGE_BYTES))
  );
}

function writeTimestamp(message: Buffer, epochMs: number, at: number): void {
  const seconds = Math.floor(epochMs / 1000);
  message.writeUInt32BE((seconds + NTP_EPOCH) >>> 0, at);
  message.writeUInt32BE(Math.floor(((epochMs - seconds * 1000) / 1000) * 2 ** 32), at + 4);
}

/** Epoch ms. The 32 bits of seconds end in 2036; values below 2^31 are of the next era (RFC 4330 §3). */
function readTimestamp(message: Buffer, at: number): number {
  const seconds = message.readUInt32BE(at);
  const era = seconds < 2 ** 31 ? 2 ** 32 : 0;
  return (seconds + era - NTP_EPOCH) * 1000 + (message.readUInt32BE(at + 4) / 2 ** 32) * 1000;
}
