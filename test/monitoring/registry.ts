import { startInProcess } from '../support/in-process-daemon.ts';

/** A metric as `/metrics` describes it. */
export interface DescribedMetric {
  name: string;
  type: string;
  help: string;
}

/** The metrics of a daemon that has just started, except those of prom-client about the process. */
export async function readMetricDescriptions(): Promise<DescribedMetric[]> {
  const daemon = await startInProcess();
  try {
    const text = await (await fetch(`${daemon.url}/metrics`)).text();
    const types = new Map(
      Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name, type]) => [name, type]),
    );
    return Array.from(text.matchAll(/^# HELP (\S+) (.*)$/gm), ([, name = '', help = '']) => ({
      name,
      help,
      type: types.get(name) ?? '',
    }))
      .filter(({ name }) => name.startsWith('postrider_'))
      .toSorted((a, b) => a.name.localeCompare(b.name));
  } finally {
    await daemon.stop();
  }
}
