import { SECOND } from '../core/clock.ts';
import { abortAfter, unlessAborted } from '../core/concurrency/abort.ts';
import { createGate } from '../core/concurrency/gate.ts';
import { errorCode } from '../core/errors.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { isPublic } from '../dns/address-kinds.ts';
import {
  type ConnectorOptions,
  createConnector,
  ForbiddenAddress,
  ResponseTooLarge,
} from '../dns/connector.ts';
import { DnsError } from '../dns/dns-error.ts';
import { createHttpClient, fieldOf, type HttpReply, isTimeout } from '../dns/http-client.ts';
import { lookupsOf } from '../dns/resolver.ts';
import { MEDIA_TYPE } from '../mail/content.ts';
import { fileAddress, MAX_ATTACHMENT_BYTES, type ParsedSend, tooLarge } from './request.ts';

/*
 * Fetches the attachments that a send names by their address, before it is accepted. Accounts choose the addresses: only
 * public ones are connected to, by https, also behind redirects.
 */

/** The time for all files of a message. */
export const FETCH_SECONDS = 10;
const MAX_REDIRECTS = 3;
/** Bytes of a response that are no content. */
const MAX_OTHER_BYTES = 32 * 1024;
/**
 * Messages whose files are fetched or stored at the same time, which bounds the files in memory: 2 MiB each, and their base64.
 * An account has at most a third of what is free. The items of a batch that are in progress together may wait.
 */
const MESSAGES = {
  concurrency: 16,
  perKey: (free: number) => Math.min(4, Math.max(1, Math.floor(free / 3))),
  maxWaiting: 256,
  maxWaitingPerKey: 32,
};
/** Those of web sites: a send must not examine the ports of others. */
const PORTS: ReadonlySet<string> = new Set(['', '8443']);

/** From where files are fetched. */
export interface FileSources extends Pick<ConnectorOptions, 'trusted'> {
  /** Default: public addresses alone. */
  mayConnect?: (address: string) => boolean;
  /** As in a URL, '' for 443. Default: those of web sites. */
  ports?: ReadonlySet<string>;
}

export interface AttachmentFilesOptions extends FileSources, Pick<ConnectorOptions, 'resolver'> {
  userAgent: string;
  /** For all files of a message, with the time that it waits for others. Default: 10 s. */
  timeoutMs?: number;
}

/** Why a file cannot be attached, as a clause. */
class Unfit extends Error {}

class TooLarge extends Error {}

const STOPPING = refuse('UNAVAILABLE', 'The service is shutting down', { retryAfter: 1 });
const TOO_MANY = refuse(
  'RATE_LIMITED',
  'Attachments of too many messages are being fetched at the same time',
  { retryAfter: 1 },
);

/** Opens no connection until `use`. `close` ends the fetches in progress. */
export function createAttachmentFiles(options: AttachmentFilesOptions) {
  const { userAgent, mayConnect = isPublic, ports = PORTS, timeoutMs = FETCH_SECONDS * SECOND } = options;
  const closing = new AbortController();
  const gate = createGate(MESSAGES);

  // Each account has its share of the resolver's queries.
  const clientOf = (accountId: string) =>
    createHttpClient({
      connect: createConnector({
        ...options,
        resolver: lookupsOf(options.resolver, `attachments ${accountId}`),
        mayConnect,
        timeoutMs,
        maxResponseBytes: MAX_ATTACHMENT_BYTES + MAX_OTHER_BYTES,
      }),
      timeoutMs,
      maxBodyBytes: MAX_ATTACHMENT_BYTES,
      userAgent,
    });

  /** Throws `Unfit`, `ResponseTooLarge`, or what the connection failed with. */
  async function fetchFile(
    client: ReturnType<typeof clientOf>,
    address: URL,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<{ bytes: Buffer; contentType: string }> {
    let url = address;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      if (!ports.has(url.port)) throw new Unfit('must have the port 443 or 8443');
      const headers = { accept: '*/*', 'accept-encoding': 'identity' };
      const found = await client.request(url, { signal, headers }, async (reply) => {
        const location = fieldOf(reply, 'location');
        if (reply.statusCode >= 300 && reply.statusCode < 400 && location !== '') return location;
        if (reply.statusCode !== 200)
          throw new Unfit(`responds with status ${reply.statusCode} instead of 200`);
        if (!/^(?:identity)?$/i.test(fieldOf(reply, 'content-encoding').trim()))
          throw new Unfit('responds with compressed content');
        return { bytes: await contentOf(reply, maxBytes), contentType: contentTypeOf(reply) };
      });
      if (typeof found !== 'string') return found;
      const next = fileAddress(found, url);
      if (typeof next === 'string') throw new Unfit(`redirects to an address that ${next}`);
      url = next;
    }
    throw new Unfit(`has more than ${MAX_REDIRECTS} redirects`);
  }

  /** The files one after the other, so that a message has one of them in transit. */
  async function complete(
    accountId: string,
    send: ParsedSend,
    signal: AbortSignal,
  ): Promise<ParsedSend | Refusal> {
    const attachments = [...send.attachments];
    let left = send.linked.maxBytes;
    const client = clientOf(accountId);
    try {
      for (const file of send.linked.files) {
        const attachment = attachments[file.index];
        if (attachment === undefined) throw new Error('a linked file belongs to no attachment');
        const fetched = await fetchFile(client, file.url, left, signal).catch((error: unknown) =>
          refusalOf(file.index, error),
        );
        if (isRefusal(fetched)) return fetched;
        const { bytes, contentType } = fetched;
        left -= bytes.length;
        attachments[file.index] = {
          ...attachment,
          ...(file.takesType ? { contentType } : {}),
          content: bytes.toString('base64'),
        };
      }
      return { ...send, attachments };
    } finally {
      await client.close();
    }
  }

  return {
    /**
     * Fetches the linked files of a send, and returns what `work` returns for the send with their content. Refused are a file
     * that cannot be fetched in time (ATTACHMENT_NOT_FETCHED), that is too large (ATTACHMENTS_TOO_LARGE), and too many
     * messages of the account (RATE_LIMITED). The files count as in memory until `work` has ended.
     */
    use: async <Result>(
      accountId: string,
      send: ParsedSend,
      work: (send: ParsedSend) => Promise<Result>,
    ): Promise<Result | Refusal> => {
      let begin = () => {};
      const begun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      const leave = gate.enter(accountId, begin);
      if (leave === null) return TOO_MANY;
      try {
        const signal = abortAfter(timeoutMs, closing.signal);
        const isLate = await unlessAborted(begun, signal).then(
          () => false,
          () => true,
        );
        if (closing.signal.aborted) return STOPPING;
        if (isLate) return TOO_MANY;
        const completed = await complete(accountId, send, signal);
        if (!isRefusal(completed)) return await work(completed);
        return closing.signal.aborted ? STOPPING : completed;
      } finally {
        leave();
      }
    },
    close: (): void => closing.abort(),
  };
}

export type AttachmentFiles = ReturnType<typeof createAttachmentFiles>;

/** One buffer that grows: a host may send chunks of single bytes, which need many times their size. */
async function contentOf({ body }: HttpReply, maxBytes: number): Promise<Buffer> {
  let content = Buffer.alloc(64 * 1024);
  let size = 0;
  for await (const chunk of body) {
    const bytes: Uint8Array = chunk;
    const end = size + bytes.length;
    if (end > maxBytes) throw new TooLarge();
    if (end > content.length) content = Buffer.concat([content], Math.max(end, content.length * 2));
    content.set(bytes, size);
    size = end;
  }
  return content.subarray(0, size);
}

function refusalOf(index: number, error: unknown): Refusal {
  const field = `attachments[${index}].url`;
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const isTooLarge =
    cause instanceof TooLarge ||
    cause instanceof ResponseTooLarge ||
    errorCode(cause) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE';
  if (isTooLarge) return tooLarge(field, `; those up to ${field} have more`);
  const message = clauseOf(cause);
  return refuse('ATTACHMENT_NOT_FETCHED', `${field}: ${message}`, { details: [{ field, message }] });
}

/** A private address and a name that does not exist have the same clause: an account must not learn which one it is. */
function clauseOf(cause: unknown): string {
  if (cause instanceof Unfit) return cause.message;
  if (cause instanceof ForbiddenAddress || cause instanceof DnsError) return 'has no public address';
  if (isTimeout(cause))
    return `was not sent in time: the files of a message have ${FETCH_SECONDS} s together`;
  return 'cannot be fetched: there is no HTTPS connection with a valid certificate';
}

/** Without parameters. Messages and multiparts cannot be attached as base64 (RFC 2046 §5). */
function contentTypeOf(reply: HttpReply): string {
  const [first = ''] = fieldOf(reply, 'content-type').toLowerCase().split(';', 1);
  const type = first.trim();
  return MEDIA_TYPE.test(type) && !/^(?:multipart|message)\//.test(type) ? type : 'application/octet-stream';
}
