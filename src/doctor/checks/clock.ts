import { SECOND } from '../../core/clock.ts';
import { addressesOf } from '../../dns/dns-view.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, unknown, warning } from '../finding.ts';
import { clockOffset } from '../probes/sntp.ts';

const NTP_PORT = 123;
const TIMEOUT_MS = 3 * SECOND;
const WARNING_MS = 2 * SECOND;
/** DKIM signatures, certificates, tokens and the expiry of messages depend on the time. */
const FAILURE_MS = 60 * SECOND;

const FIX = 'timedatectl set-ntp true; timedatectl timesync-status';

/**
 * A difference of 2 s or more is a warning, one of 60 s or more a failure; the uncertainty of the measurement is
 * subtracted first. Unknown when no time server answered.
 */
export async function examineClock(context: DoctorContext): Promise<Result> {
  const servers = context.config.doctor.timeServers;
  for (const server of servers) {
    const measured = await measure(server, context);
    if (measured === null) continue;
    const { offsetMs, errorMs } = measured;
    const size = Math.max(0, Math.abs(offsetMs) - errorMs);
    const difference = `The clock is ${(Math.abs(offsetMs) / SECOND).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} ${server}`;
    if (size >= FAILURE_MS)
      return failure(
        'clock',
        `${difference}: receivers reject signatures from the future, and messages expire too early or too late.`,
        FIX,
      );
    if (size >= WARNING_MS) return warning('clock', `${difference}.`, FIX);
    return ok('clock', `Differs from ${server} by less than ${WARNING_MS / SECOND} s.`);
  }
  const asked = servers.length === 0 ? 'doctor.timeServers is empty' : `no answer from ${servers.join(', ')}`;
  return unknown('clock', `The time could not be compared: ${asked}.`, 'timedatectl status');
}

async function measure(server: string, { view, clock, monotonic, signal }: DoctorContext) {
  const [host = '', port = NTP_PORT] = server.split(':');
  const found = await addressesOf(view, host);
  const [address] = found.kind === 'records' ? found.records : [];
  if (address === undefined) return null;
  return clockOffset({ address, port: Number(port), timeoutMs: TIMEOUT_MS, signal, clock, monotonic });
}
