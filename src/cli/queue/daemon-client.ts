import { join } from 'node:path';
import { OPERATOR_SOCKET } from '../../config/data-files.ts';
import { SECOND } from '../../core/clock.ts';
import { RESPONSE_TIMEOUT_MS, requestDaemon } from '../../doctor/daemon-client.ts';

/** The response of the daemon to an operation of the operator. */
export type DaemonAnswer =
  | { kind: 'ok'; data: unknown }
  /** The daemon refused the operation: `message` is a sentence. */
  | { kind: 'refused'; code: string; message: string }
  /** No daemon responds; `reason`: a clause. */
  | { kind: 'absent'; reason: string };

/** Calls an operation with the scope `operator` over the socket in `dataDir`. Never rejects. */
export async function askDaemon(dataDir: string, path: string): Promise<DaemonAnswer> {
  let answer: unknown;
  try {
    const address = { origin: 'http://localhost', socketPath: join(dataDir, OPERATOR_SOCKET) };
    answer = JSON.parse((await requestDaemon(address, path)).text);
  } catch (error) {
    return { kind: 'absent', reason: reasonOf(error) };
  }
  if (!isRecord(answer)) return { kind: 'absent', reason: 'the response of the daemon is not an object' };
  if (answer['success'] === true) return { kind: 'ok', data: answer['data'] };
  const error = isRecord(answer['error']) ? answer['error'] : {};
  return { kind: 'refused', code: String(error['code']), message: String(error['message']) };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return 'it is not running';
  if (code === 'EACCES')
    return 'this user may not open its operator socket; run the command as the user of the service, or as root';
  if (error.name === 'AbortError' || error.name === 'TimeoutError')
    return `it did not respond within ${RESPONSE_TIMEOUT_MS / SECOND} s`;
  return error.message;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
