import { startChild } from './child.ts';

/** The sink of smtp-sink-process.ts: it continues when the sender dies. */
export interface SinkProcess {
  host: string;
  port: number;
  counts(): Promise<SinkCounts>;
  stop(): Promise<void>;
}

export interface SinkCounts {
  messages: number;
  /** Distinct X-Postrider-Id fields. */
  ids: number;
  /** Messages with the id of an earlier one. */
  duplicates: number;
  recipients: number;
  /** Open connections, and their maximum so far. */
  open: number;
  peak: number;
}

const SCRIPT = new URL('smtp-sink-process.ts', import.meta.url).pathname;

export async function startSinkProcess(options: { delayMs?: number } = {}): Promise<SinkProcess> {
  const { delayMs = 0 } = options;
  const host = '127.0.0.1';
  const args = ['--import', 'tsx', SCRIPT, '--host', host, '--delay', String(delayMs)];
  const child = startChild(process.execPath, args);
  const waiting: ((line: string) => void)[] = [];
  child.onLine((line) => waiting.shift()?.(line));
  const nextLine = async () => {
    const line = new Promise<string>((resolve) => waiting.push(resolve));
    const ended = child.exited.then(() => Promise.reject(new Error(`the sink ended: ${child.output}`)));
    return Promise.race([line, ended]);
  };
  const { port }: { port: number } = JSON.parse(await nextLine());
  return {
    host,
    port,
    counts: async () => {
      const line = nextLine();
      child.stdin.write('counts\n');
      return JSON.parse(await line);
    },
    stop: async () => {
      await child.kill('SIGTERM');
    },
  };
}
