import { tmpdir } from 'node:os';
import { startInProcess } from '../support/in-process-daemon.ts';

/** A metric as `/metrics` describes it. */
export interface DescribedMetric {
  name: string;
  type: string;
  help: string;
}

/** The metrics of a daemon with a name server and scheduled backups that has just started, except those of prom-client about the process. */
export async function readMetricDescriptions(): Promise<DescribedMetric[]> {
  const daemon = await startInProcess({
    'dns.server.listen': '127.0.0.1:0',
    'dns.server.addresses': ['192.0.2.25'],
    'backup.schedule': '0 0 1 1 *',
    'backup.dir': tmpdir(),
  });
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
