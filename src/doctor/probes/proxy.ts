import { connect } from 'node:net';
import { EgressError } from '../../delivery/worker/errors.ts';
import type { JobProxy } from '../../delivery/worker/protocol.ts';
import { createTunnel } from '../../delivery/worker/socks.ts';

/** How a SOCKS5 proxy answers the request to connect to a mail server. */
export type ProxyAnswer =
  /** `from`: the source address that the proxy reports; null: none. */
  | { kind: 'connected'; from: string | null }
  /** The proxy works, and could not reach the mail server. */
  | { kind: 'target-failed'; reason: string }
  | { kind: 'proxy-failed'; reason: string };

export interface ProxyProbeOptions {
  proxy: JobProxy;
  target: { host: string; port: number };
  /** For everything together. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** Connects to the target through the proxy and ends the connection. Never rejects. */
export function probeProxy({ proxy, target, timeoutMs, signal }: ProxyProbeOptions): Promise<ProxyAnswer> {
  return new Promise((resolve) => {
    const tunnel = createTunnel(proxy);
    const socket = connect({ host: proxy.host, port: proxy.port });
    const finish = (answer: ProxyAnswer) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      socket.destroy();
      resolve(answer);
    };
    const failed = (error: Error | null) =>
      finish(
        error instanceof EgressError
          ? { kind: 'proxy-failed', reason: error.message }
          : { kind: 'target-failed', reason: error?.message ?? 'the connection was closed' },
      );
    const stop = () => failed(tunnel.failure('connect', 'no answer (timeout)'));
    const timer = setTimeout(stop, timeoutMs);
    signal.addEventListener('abort', stop, { once: true });
    socket.on('error', (error) => failed(tunnel.failure('connect', error.message)));
    socket.on('connect', () => {
      if (socket.listenerCount('data') > 0) return;
      tunnel.open(socket, target, timeoutMs).then(
        (from) => finish({ kind: 'connected', from }),
        (error: Error) => failed(tunnel.rejection('connect', error)),
      );
    });
    if (signal.aborted) stop();
  });
}
