import { Readable } from 'node:stream';
import type { Context as KoaContext, Middleware } from 'koa';
import { findSegment } from '../../audience/segments/segments.ts';
import { eventLoopTurns } from '../../core/concurrency/slices.ts';
import type { Log } from '../../core/log.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { Audit } from '../../people/audit.ts';
import type { Session } from '../../people/sessions.ts';
import type { Context } from '../../store/context.ts';
import { whenClosed } from '../call-signals.ts';
import { respond } from '../front.ts';
import { refusalResponse } from '../responses.ts';
import type { OperationGroup, RequestState, RoutedRequest } from '../router.ts';
import type { AccessRule, ConsoleAccess, Identity } from './access.ts';
import { exportedRecords } from './audit-routes.ts';
import type { Auditing } from './auditing.ts';
import { contactExportQuery, exportedContacts } from './contact-export.ts';
import {
  type EventStreams,
  MAX_STREAMS_OF_ACCOUNT,
  MAX_STREAMS_OF_PERSON,
  MAX_STREAMS_OF_SESSION,
  type StreamShortage,
} from './event-stream.ts';
import { createSharedPool, type Holder, type Shortage } from './shared-pool.ts';

/*
 * Operations whose responses are streamed: the event stream and the exports. The browser sends their requests without
 * headers of the application, so the query parameter `account` names the account.
 */

export interface StreamedServices {
  access: ConsoleAccess;
  auditing: Auditing;
  audit: Audit;
  streams: EventStreams;
}

interface StreamedOperation {
  /** Whether each use is recorded in the audit log. */
  isAudited: boolean;
  /** As in the audit log, with its English name. */
  operation: string;
  summary: string;
  rule: AccessRule;
  /** Starts the response, or refuses. `isAllowed`: whether the request would be permitted now. */
  handle(
    ctx: KoaContext,
    identity: Identity & { session: Session },
    isAllowed: () => boolean,
  ): Refusal | null;
}

/** Exports that may run at the same time. */
const EXPORTS = { total: 16, ofPerson: 2, ofAccount: 4, forOperators: 4 };

/**
 * Middleware for `/console/stream`, `/console/audit/export` and `/console/exports/contacts`; other paths are passed on.
 * At most 16 exports run, 4 of them for operators only: 2 of a person, 4 of the members of an account.
 */
export function streamedOperations(
  { log, reader, tables }: Pick<Context, 'log' | 'reader' | 'tables'>,
  services: StreamedServices,
): OperationGroup {
  const { access, auditing } = services;
  const download = createDownloads(log);
  const operations = new Map<string, StreamedOperation>([
    ['/console/stream', streamOperation(services)],
    ['/console/audit/export', auditExport(services, download)],
    ['/console/exports/contacts', contactExport({ reader, tables }, download)],
  ]);
  const middleware: Middleware = async (ctx: KoaContext, next) => {
    const operation = ctx.method === 'GET' ? operations.get(ctx.path) : undefined;
    if (operation === undefined) return next();
    const state: RequestState = ctx.state;
    const incoming: RoutedRequest = {
      req: ctx.req,
      res: ctx.res,
      requestId: state.requestId,
      params: {},
      search: ctx.querystring,
      from: state.from,
    };
    const authenticate = () => access.authenticate(incoming, operation.rule);
    const caller = authenticate();
    const result = isRefusal(caller)
      ? caller
      : startOf(operation, ctx, access.identityOf(caller), () => !isRefusal(authenticate()));
    const { session = null, accountId = null } = access.identityOfRequest(ctx.req) ?? {};
    if (session !== null && (operation.isAudited || result?.status === 403))
      await auditing.record({
        personId: session.person.id,
        email: session.person.email,
        accountId,
        operation: operation.operation,
        target: {},
        outcome: result === null ? 'done' : result.status === 403 ? 'denied' : 'refused',
        detail: result?.code ?? '',
        address: state.from().address,
      });
    if (result !== null) respond(ctx, refusalResponse(result, state.requestId));
    return undefined;
  };
  return {
    operations: [...operations].map(([path, { operation, summary }]) => ({
      method: 'GET',
      path,
      operationId: operation,
      summary,
    })),
    middleware,
  };
}

function startOf(
  { handle }: StreamedOperation,
  ctx: KoaContext,
  { session, ...identity }: Identity,
  isAllowed: () => boolean,
): Refusal | null {
  return session === null
    ? refuse('UNAUTHENTICATED', 'Sign in to the console: there is no valid session')
    : handle(ctx, { ...identity, session }, isAllowed);
}

function streamOperation({ streams }: StreamedServices): StreamedOperation {
  return {
    operation: 'console.stream',
    summary: 'Follow events',
    isAudited: false,
    rule: { access: 'read', accountInQuery: true, passive: true },
    handle: (ctx, { session, accountId }, isAllowed) => {
      const shortage = streams.open({
        accountId: accountId ?? '',
        personId: session.person.id,
        operator: session.person.operator,
        sessionId: session.id,
        response: ctx.res,
        isAllowed,
      });
      if (shortage === null) ctx.respond = false;
      return shortage === null ? null : tooManyStreams(shortage);
    },
  };
}

function tooManyStreams(shortage: StreamShortage): Refusal {
  const [code, message] = STREAM_SHORTAGES[shortage];
  return refuse(code, message, { retryAfter: 60 });
}

const STREAM_SHORTAGES = {
  session: [
    'RATE_LIMITED',
    `This browser has ${MAX_STREAMS_OF_SESSION} event streams, as many as one may have: close a tab`,
  ],
  person: [
    'RATE_LIMITED',
    `Your browsers have ${MAX_STREAMS_OF_PERSON} event streams, as many as a person may have: close one`,
  ],
  account: [
    'RATE_LIMITED',
    `The members of this account have ${MAX_STREAMS_OF_ACCOUNT} event streams, as many as an account may have`,
  ],
  pool: ['UNAVAILABLE', 'All event streams of the installation are in use'],
  stopped: ['UNAVAILABLE', 'The daemon is stopping'],
} as const satisfies Record<StreamShortage, readonly [RefusalCode, string]>;

interface Download {
  holder: Holder;
  fileName: string;
  type: string;
  lines: AsyncIterable<string>;
  /** Log message for lines that end with an error. */
  failure: string;
}

/** Returns a function that starts a download, or refuses it while too many others run. */
function createDownloads(log: Log): (ctx: KoaContext, download: Download) => Refusal | null {
  const running = createSharedPool(EXPORTS);
  return (ctx, { holder, fileName, type, lines, failure }) => {
    const release = running.take(holder);
    if (typeof release === 'string') return tooManyExports(release);
    whenClosed(ctx.res, release);
    ctx.status = 200;
    ctx.res.setHeader('Cache-Control', 'no-store');
    ctx.res.setHeader('Content-Disposition', `attachment; filename="${fileName}"`);
    ctx.type = `${type}; charset=utf-8`;
    ctx.body = Readable.from(withLog(lines, log, failure), { objectMode: false });
    return null;
  };
}

function tooManyExports(shortage: Shortage): Refusal {
  const [code, message] = EXPORT_SHORTAGES[shortage];
  return refuse(code, message, { retryAfter: 10 });
}

const EXPORT_SHORTAGES = {
  person: ['RATE_LIMITED', 'Two of your exports are running: wait until one has ended'],
  account: ['RATE_LIMITED', 'Four exports of this account are running: wait until one has ended'],
  pool: ['UNAVAILABLE', 'Too many exports are running'],
} as const satisfies Record<Shortage, readonly [RefusalCode, string]>;

type StartDownload = ReturnType<typeof createDownloads>;

function auditExport({ audit }: StreamedServices, download: StartDownload): StreamedOperation {
  return {
    operation: 'console.exportAuditRecords',
    summary: 'Export the audit log',
    isAudited: true,
    rule: { access: 'people', accountOptional: true, accountInQuery: true },
    handle: (ctx, { accountId, session }, isAllowed) => {
      const format = new URLSearchParams(ctx.querystring).get('format') ?? 'csv';
      if (format !== 'csv' && format !== 'ndjson') return invalid('format', 'must be csv or ndjson');
      const filter = accountId === null ? {} : { accountId };
      return download(ctx, {
        holder: holderOf(session, accountId),
        fileName: `audit-log.${format}`,
        type: format === 'csv' ? 'text/csv' : 'application/x-ndjson',
        lines: exportedRecords(audit, filter, format, turnsOf(session, isAllowed)),
        failure: 'export of the audit log failed',
      });
    },
  };
}

function contactExport(
  { reader, tables }: Pick<Context, 'reader' | 'tables'>,
  download: StartDownload,
): StreamedOperation {
  return {
    operation: 'console.exportContacts',
    summary: 'Export contacts',
    isAudited: true,
    rule: { access: 'export', accountInQuery: true },
    handle: (ctx, { accountId, session }, isAllowed) => {
      const query = contactExportQuery.safeParse(Object.fromEntries(new URLSearchParams(ctx.querystring)));
      if (!query.success)
        return invalid(String(query.error.issues[0]?.path[0]), 'is not a valid filter of contacts');
      const { segmentId } = query.data;
      const segment = segmentId === undefined ? null : findSegment(tables, accountId ?? '', segmentId);
      if (isRefusal(segment)) return segment;
      return download(ctx, {
        holder: holderOf(session, accountId),
        fileName: 'contacts.csv',
        type: 'text/csv',
        lines: exportedContacts(reader, accountId ?? '', query.data, turnsOf(session, isAllowed)),
        failure: 'export of contacts failed',
      });
    },
  };
}

function holderOf({ person }: Session, accountId: string | null): Holder {
  return { personId: person.id, accountId, operator: person.operator };
}

/** Waits for a turn of the person before each part of an export. Throws when the person may no longer export. */
function turnsOf({ person }: Session, isAllowed: () => boolean): () => Promise<void> {
  return async () => {
    await eventLoopTurns.next(person.id);
    if (!isAllowed()) throw new Error('the session has ended, or its person may no longer export');
  };
}

/** Logs the error that ends the lines; the client then receives an incomplete response. */
async function* withLog(lines: AsyncIterable<string>, log: Log, failure: string): AsyncGenerator<string> {
  try {
    yield* lines;
  } catch (error) {
    log.error({ err: error }, failure);
    throw error;
  }
}
