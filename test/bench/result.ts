import type { ReceiverCounts } from './sink.ts';

/** The result of one run. Rates are in messages per second. */
export interface RunResult {
  name: string;
  messages: number;
  /** From the first request to the last response. */
  acceptedPerSecond: number;
  /** From the first request to the sink's last 250. */
  deliveredPerSecond: number;
  /** From the first request to the sink's last 250, in seconds. */
  seconds: number;
  /** Mean size of a message at the sink. */
  bytes: number;
  /** Connections that the sink accepted in the run. */
  connections: number;
  /** CPU time per message in ms, of the server and of the benchmark's own processes. */
  cpuMs: { server: number; mainThread: number | null; load: number; sink: number };
  /** Peak memory of the server since its start, in MiB. */
  peakMiB: number | null;
  /** Response times of accepted requests, in ms. */
  responseMs: { p50: number; p99: number } | null;
  /** Messages that were accepted, but did not arrive at the sink. */
  lost: number;
  /** Messages that arrived more than once. */
  duplicates: number;
  /** Messages that arrived without a DKIM signature. */
  unsigned: number;
  /** Number of responses other than 200, by status. */
  failed: Record<string, number>;
}

/** The part of the result that is computed in the same manner for Postrider and for the reference. */
export function deliveryResult(
  accepted: number,
  { startedAt, acceptedAt }: { startedAt: number; acceptedAt: number },
  sink: ReceiverCounts,
) {
  const seconds = (sink.lastAt - startedAt) / 1000;
  return {
    messages: accepted,
    acceptedPerSecond: accepted / ((acceptedAt - startedAt) / 1000),
    deliveredPerSecond: sink.recipients / seconds,
    seconds,
    bytes: sink.bytes / Math.max(1, sink.messages),
    connections: sink.connections,
    lost: accepted - sink.recipients,
    duplicates: sink.messages - sink.recipients,
    unsigned: sink.messages - sink.signed,
    failed: {},
  };
}

/** Faults that invalidate a run. */
export function faultsOf({ lost, duplicates, unsigned, failed }: RunResult): string[] {
  return [
    ...(lost > 0 ? [`${lost} accepted messages did not arrive at the sink`] : []),
    ...(duplicates > 0 ? [`${duplicates} messages arrived more than once`] : []),
    ...(unsigned > 0 ? [`${unsigned} messages arrived without a signature`] : []),
    ...Object.entries(failed).map(([status, count]) => `${count} requests were answered ${status}`),
  ];
}

/** Adds the counts of `more` to `total`. */
export function addCounts(total: Record<string, number>, more: Record<string, number>): void {
  for (const [key, count] of Object.entries(more)) total[key] = (total[key] ?? 0) + count;
}

/** `sorted` ascending; 0 when it is empty. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** 0 for no numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (percentile(sorted, 0.5) + (sorted[Math.ceil(sorted.length / 2) - 1] ?? 0)) / 2;
}
