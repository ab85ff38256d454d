import { createHash, timingSafeEqual } from 'node:crypto';
import { Counter, Histogram, type Registry } from 'prom-client';
import { refuse } from '../core/refusal.ts';
import { isLocal } from './caller-address.ts';
import type { OpenRequest, OpenRoute } from './route.ts';

/** Metrics of the HTTP module, and `/metrics` with all metrics of the daemon. No metric is registered globally. */
export interface HttpMetrics {
  /** `operationId`: '' for a request without a matching operation. */
  observe(operationId: string, status: number, seconds: number): void;
}

/**
 * Registers `postrider_http_requests_total` and `postrider_http_request_seconds` in `registry`; throws when it has them
 * already.
 */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const requests = new Counter({
    name: 'postrider_http_requests_total',
    help: 'Requests with a response, by operation and status.',
    labelNames: ['operation', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'postrider_http_request_seconds',
    help: 'Time from request to response, by operation.',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
    registers: [registry],
  });
  return {
    observe: (operationId, status, seconds) => {
      const operation = operationId === '' ? 'none' : operationId;
      requests.labels(operation, String(status)).inc();
      duration.labels(operation).observe(seconds);
    },
  };
}

/** `/metrics`: requires `metricsKey` as a bearer token; without a key only clients on this machine may read it. */
export function metricsRoute(registry: Registry, metricsKey: () => string | undefined): OpenRoute {
  return {
    path: '/metrics',
    operationId: 'getMetrics',
    tag: 'Operations',
    summary: 'Get metrics in the Prometheus text format',
    description:
      'If `api.metricsKeyFile` is configured, send its key: `Authorization: Bearer <key>`. Otherwise only clients on the same machine may read metrics, without a proxy.',
    responses: { 200: { description: 'All metrics.', contentType: 'text/plain' } },
    refusals: ['UNAUTHENTICATED'],
    handle: async (request) => {
      if (!mayReadMetrics(request, metricsKey())) {
        return refuse('UNAUTHENTICATED', 'Metrics require the bearer token in api.metricsKeyFile');
      }
      return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

/** Whether the client may read the internal state of the daemon. */
export function mayReadMetrics(request: OpenRequest, metricsKey: string | undefined): boolean {
  return metricsKey === undefined ? isLocal(request.from) : hasToken(request, metricsKey);
}

function hasToken(request: OpenRequest, metricsKey: string): boolean {
  const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  return token !== undefined && timingSafeEqual(digest(token), digest(metricsKey));
}

/** Digests have equal lengths, as `timingSafeEqual` requires. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
