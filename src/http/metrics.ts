import { createHash, timingSafeEqual } from 'node:crypto';
import { Counter, Histogram, type Registry } from 'prom-client';
import { refuse } from '../core/refusal.ts';
import { isLocal } from './caller-address.ts';
import type { OpenRoute, Visit } from './route.ts';

/**
 * What the HTTP room counts, and the page on which a collector reads everything that the daemon counts. The
 * registry is handed in; nothing here registers itself globally.
 */
export interface HttpMetrics {
  /** `operationId` '' for a request that found no operation. */
  observe(operationId: string, status: number, seconds: number): void;
}

export function createHttpMetrics(registry: Registry): HttpMetrics {
  const requests = new Counter({
    name: 'postrider_http_requests_total',
    help: 'Requests answered, by operation and status.',
    labelNames: ['operation', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'postrider_http_request_seconds',
    help: 'Time from request to answer, by operation.',
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

/** `/metrics`: with `metricsKey` for those who send it as bearer token, without for callers on this machine. */
export function metricsRoute(registry: Registry, metricsKey: string | undefined): OpenRoute {
  return {
    path: '/metrics',
    operationId: 'getMetrics',
    tag: 'Operations',
    summary: 'Metrics in the Prometheus text format',
    description:
      'With `api.metricsKey` configured, every caller sends `Authorization: Bearer <api.metricsKey>`. Without it, only callers on the machine itself are answered; a request that a proxy passed on is not one of them.',
    answers: { 200: { description: 'All metrics.', contentType: 'text/plain' } },
    visit: async (visit) => {
      if (!mayReadMetrics(visit, metricsKey)) {
        return refuse('UNAUTHENTICATED', 'metrics need the bearer token of api.metricsKey');
      }
      return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

/** Whether the caller may see the inner state of the daemon. */
export function mayReadMetrics(visit: Visit, metricsKey: string | undefined): boolean {
  return metricsKey === undefined ? isLocal(visit.from) : hasToken(visit, metricsKey);
}

function hasToken(visit: Visit, metricsKey: string): boolean {
  const token = /^Bearer (\S+)$/i.exec(visit.headers.authorization ?? '')?.[1];
  return token !== undefined && timingSafeEqual(digest(token), digest(metricsKey));
}

/** Equal lengths, as the comparison needs them. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
