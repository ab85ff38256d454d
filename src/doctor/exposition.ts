/** One sample of the Prometheus text format: https://prometheus.io/docs/instrumenting/exposition_formats/. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** The samples of one scrape by the names of their metrics. */
export type Samples = ReadonlyMap<string, readonly [Sample, ...Sample[]]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/;
const LABEL = /(?<!\w)([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', '\\': '\\', '"': '"' };

/** Parses the response of `/metrics`. Comments and lines that are not samples are skipped. */
export function parseExposition(text: string): Samples {
  const samples = new Map<string, [Sample, ...Sample[]]>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, labelText = '', number] = LINE.exec(line) ?? [];
    if (name === undefined || number === undefined) continue;
    const labels = Object.fromEntries(
      Array.from(labelText.matchAll(LABEL), ([, key = '', value = '']) => [key, unescaped(value)]),
    );
    const sample = { labels, value: parseNumber(number) };
    const known = samples.get(name);
    if (known === undefined) samples.set(name, [sample]);
    else known.push(sample);
  }
  return samples;
}

function unescaped(value: string): string {
  return value.replaceAll(/\\(.)/g, (_, char: string) => ESCAPES[char] ?? char);
}

function parseNumber(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}
