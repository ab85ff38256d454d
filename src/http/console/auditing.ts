import { LRUCache } from 'lru-cache';
import { MINUTE } from '../../core/clock.ts';
import type { Runtime } from '../../core/runtime.ts';
import { emailIdentifier } from '../../mail/identifier.ts';
import type { Audit, AuditInput } from '../../people/audit.ts';
import type { HttpResponse } from '../route.ts';
import type { Handler, RoutedRequest } from '../router.ts';
import type { ConsoleAccess } from './access.ts';

export type Auditing = ReturnType<typeof createAuditing>;

const REPEATED_MS = MINUTE;
const MAX_REPEATED = 5000;

/**
 * Writes the audit records of requests. Keeps the times of up to 5000 different failures in memory, by person (or address),
 * operation and account. Successful changes are always recorded, before the response is sent.
 */
export function createAuditing(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  { audit, access }: { audit: Audit; access: Pick<ConsoleAccess, 'identityOfRequest'> },
) {
  const lastFailure = new LRUCache<string, number>({ max: MAX_REPEATED });

  /** Whether the same failure of the same person was recorded within the last minute. */
  function isRepeated({ outcome, personId, address, operation, accountId }: AuditInput): boolean {
    if (outcome === 'done') return false;
    const key = JSON.stringify([outcome, personId ?? address, operation, accountId]);
    const now = clock.now();
    const last = lastFailure.get(key);
    if (last !== undefined && now - last < REPEATED_MS) return true;
    lastFailure.set(key, now);
    return false;
  }

  /** A record without a request of an operation. A failure is logged. */
  async function record(input: AuditInput): Promise<void> {
    if (isRepeated(input)) return;
    try {
      await audit.record(input);
    } catch (error) {
      // The operation has been performed: its response must report it.
      log.error({ err: error, operation: input.operation }, 'audit record not written');
    }
  }

  function inputOf(incoming: RoutedRequest, operation: string, reply: HttpResponse | null): AuditInput {
    const identity = access.identityOfRequest(incoming.req);
    return {
      personId: identity?.session?.person.id ?? null,
      email: identity?.session?.person.email ?? '',
      accountId: identity?.accountId ?? null,
      operation,
      target: targetOf(incoming.params),
      outcome: outcomeOf(reply),
      detail: reply === null ? 'the client disconnected' : detailOf(reply),
      address: incoming.from().address,
    };
  }

  /** The handler with a record of each request that was denied or, for a change, of each. */
  function wrap(operation: string, isChange: boolean, handler: Handler): Handler {
    return async (incoming) => {
      let reply: HttpResponse | null = null;
      try {
        reply = await handler(incoming);
      } catch (error) {
        if (isChange)
          await record({
            ...inputOf(incoming, operation, null),
            outcome: 'failed',
            detail: 'INTERNAL_ERROR',
          });
        throw error;
      }
      const isKnown = (access.identityOfRequest(incoming.req)?.session ?? null) !== null;
      if (isKnown && (isChange || reply?.status === 403)) await record(inputOf(incoming, operation, reply));
      return reply;
    };
  }

  return { record, wrap };
}

/** Path parameters; addresses are replaced by their identifiers, which erasure does not need to clear. */
function targetOf(params: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      value.includes('@') ? emailIdentifier(value) : value,
    ]),
  );
}

function outcomeOf(reply: HttpResponse | null): AuditInput['outcome'] {
  if (reply === null || reply.status >= 500) return 'failed';
  if (reply.status === 401 || reply.status === 403) return 'denied';
  return reply.status >= 400 ? 'refused' : 'done';
}

/** The code of a refusal (messages can contain addresses of recipients), or what the operation states about a success. */
function detailOf({ status, body, auditDetail = '' }: HttpResponse): string {
  if (status < 400 || typeof body !== 'string') return auditDetail;
  return /"reasonCode":"([A-Z_]+)"/.exec(body)?.[1] ?? '';
}
