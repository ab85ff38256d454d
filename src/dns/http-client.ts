import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { abortAfter } from '../core/concurrency/abort.ts';

export interface HttpClientOptions {
  /** Decides which addresses may be called (connector.ts). */
  connect: buildConnector.connector;
  /** For a whole request, until `read` has ended. */
  timeoutMs: number;
  /** Bytes of the content of a response. Default: the connector alone limits it. */
  maxBodyBytes?: number;
  userAgent?: string | undefined;
  /** Whether connections stay open for the next request. Default: false. */
  keepsConnections?: boolean;
}

export interface HttpRequest {
  /** Default: GET. */
  method?: 'GET' | 'HEAD' | 'POST';
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer | null;
  signal?: AbortSignal | undefined;
}

export type HttpReply = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

const MAX_HEADER_BYTES = 16 * 1024;

/**
 * Requests to hosts that others choose: policies, reports, webhooks, providers. Follows no redirect: its target would not be
 * that of the caller. A request has one deadline. `close` ends the requests in progress, which reject.
 */
export function createHttpClient(options: HttpClientOptions) {
  const { connect, timeoutMs, maxBodyBytes = -1, userAgent, keepsConnections = false } = options;
  const closing = new AbortController();
  const agent = new Agent({
    connect,
    maxHeaderSize: MAX_HEADER_BYTES,
    maxResponseSize: maxBodyBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(keepsConnections ? {} : { pipelining: 0, keepAliveTimeout: 1 }),
  });
  return {
    /** Returns what `read` returns for the response; content that it leaves is not read. */
    request: async <Result>(
      url: string | URL,
      { method = 'GET', headers = {}, body = null, signal = closing.signal }: HttpRequest,
      read: (reply: HttpReply) => Promise<Result> | Result,
    ): Promise<Result> => {
      const { origin, pathname, search } = new URL(url);
      const deadline = abortAfter(timeoutMs, signal);
      try {
        const reply = await agent.request({
          origin,
          path: pathname + search,
          method,
          headers: { ...(userAgent === undefined ? {} : { 'user-agent': userAgent }), ...headers },
          body,
          signal: deadline,
        });
        try {
          return await read(reply);
        } finally {
          reply.body.on('error', () => {
            // The rest of the response is not read.
          });
          reply.body.destroy();
        }
      } catch (error) {
        throw deadline.aborted ? deadline.reason : error;
      }
    },
    /** Ends when the requests in progress have ended; none may follow. */
    end: (): Promise<void> => agent.close(),
    close: async (): Promise<void> => {
      closing.abort();
      await agent.destroy();
    },
  };
}

export type HttpClient = ReturnType<typeof createHttpClient>;

/** Whether a request failed because its time was over. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

/** The first value of a field of a response; '' without one. */
export function fieldOf({ headers }: HttpReply, name: string): string {
  return [headers[name]].flat()[0] ?? '';
}
