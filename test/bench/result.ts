import type { SinkCounts } from './sink.ts';

/** What one run came to. Rates are messages a second. */
export interface RunResult {
  name: string;
  messages: number;
  /** From the first request to the last answer. */
  acceptedPerSecond: number;
  /** From the first request to the sink's last 250. */
  deliveredPerSecond: number;
  /** From the first request to the sink's last 250, in seconds. */
  seconds: number;
  /** Of a message at the sink, in octets. */
  octets: number;
  /** Connections that the sink took in the run. */
  connections: number;
  /** CPU in ms for each message: the server, and our own two ends. */
  cpuMs: { server: number; mainThread: number | null; load: number; sink: number };
  /** Of the server, in MiB, since its start. */
  peakMiB: number | null;
  /** Of an accepting answer, in ms. */
  answerMs: { p50: number; p99: number } | null;
  /** Accepted, but not at the sink. */
  lost: number;
  /** At the sink more than once. */
  duplicates: number;
  /** At the sink without a DKIM signature. */
  unsigned: number;
  /** Answers other than 200, by status. */
  refused: Record<string, number>;
}

/** The figures that both contenders are measured by, from the same clocks. */
export function measured(
  accepted: number,
  { startedAt, acceptedAt }: { startedAt: number; acceptedAt: number },
  sink: SinkCounts,
) {
  const seconds = (sink.lastAt - startedAt) / 1000;
  return {
    messages: accepted,
    acceptedPerSecond: accepted / ((acceptedAt - startedAt) / 1000),
    deliveredPerSecond: sink.recipients / seconds,
    seconds,
    octets: sink.octets / Math.max(1, sink.messages),
    connections: sink.connections,
    lost: accepted - sink.recipients,
    duplicates: sink.messages - sink.recipients,
    unsigned: sink.messages - sink.signed,
    refused: {},
  };
}

/** What was wrong with a run, in words; none: its figures count. */
export function faultsOf({ lost, duplicates, unsigned, refused }: RunResult): string[] {
  return [
    ...(lost > 0 ? [`${lost} accepted messages never came to the sink`] : []),
    ...(duplicates > 0 ? [`${duplicates} messages came more than once`] : []),
    ...(unsigned > 0 ? [`${unsigned} messages came unsigned`] : []),
    ...Object.entries(refused).map(([status, count]) => `${count} requests were answered ${status}`),
  ];
}
