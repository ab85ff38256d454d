import { SECOND } from '../../core/clock.ts';
import { addressesOf } from '../../dns/dns-view.ts';
import { check } from '../context.ts';
import { failure, ok, type Result, unknown, warning } from '../finding.ts';
import { clockOffset } from '../probes/sntp.ts';

interface ClockFacts {
  servers: readonly string[];
  /** The first server that answered; null: none did. */
  measured: { server: string; offsetMs: number; errorMs: number } | null;
}

const NTP_PORT = 123;
const TIMEOUT_MS = 3 * SECOND;
const WARNING_MS = 2 * SECOND;
/** DKIM signatures, certificates, tokens and the expiry of messages depend on the time. */
const FAILURE_MS = 60 * SECOND;

export const clockCheck = check<ClockFacts>({
  id: 'clock',
  title: 'Clock',
  group: 'Machine',
  gather: async ({ config, view, clock, monotonic, signal }) => {
    const servers = config.doctor.timeServers;
    for (const server of servers) {
      const [host = '', port = NTP_PORT] = server.split(':');
      const found = await addressesOf(view, host);
      const [address] = found.kind === 'records' ? found.records : [];
      if (address === undefined) continue;
      const offset = await clockOffset({
        address,
        port: Number(port),
        timeoutMs: TIMEOUT_MS,
        signal,
        clock,
        monotonic,
      });
      if (offset !== null) return { servers, measured: { server, ...offset } };
    }
    return { servers, measured: null };
  },
  judge: judgeClock,
});

const FIX = 'timedatectl set-ntp true; timedatectl timesync-status';

/**
 * A difference of 2 s or more is a warning, one of 60 s or more a failure; the uncertainty of the measurement is
 * subtracted first. Unknown when no time server answered.
 */
export function judgeClock({ servers, measured }: ClockFacts): Result[] {
  if (measured === null) {
    const asked =
      servers.length === 0 ? 'doctor.timeServers is empty' : `no answer from ${servers.join(', ')}`;
    return [unknown('clock', `The time could not be compared: ${asked}.`, 'timedatectl status')];
  }
  const { server, offsetMs, errorMs } = measured;
  const size = Math.max(0, Math.abs(offsetMs) - errorMs);
  const direction = offsetMs > 0 ? 'ahead of' : 'behind';
  const seconds = (Math.abs(offsetMs) / SECOND).toFixed(1);
  if (size >= FAILURE_MS)
    return [
      failure(
        'clock',
        `The clock is ${seconds} s ${direction} ${server}: receivers reject signatures from the future, and messages expire too early or too late.`,
        FIX,
      ),
    ];
  if (size >= WARNING_MS) return [warning('clock', `The clock is ${seconds} s ${direction} ${server}.`, FIX)];
  return [ok('clock', `Differs from ${server} by less than ${WARNING_MS / SECOND} s.`)];
}
