import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { written } from '../config/reference-pages.ts';
import { findProgram, requirementsOf } from '../support/required-programs.ts';
import { alertRules, dashboardQueries, promtool } from './monitoring-files.ts';
import { type DescribedMetric, readMetricDescriptions } from './registry.ts';

const REFERENCE = new URL('../../docs/reference/', import.meta.url);

let metrics: DescribedMetric[];
beforeAll(async () => {
  metrics = await readMetricDescriptions();
});

function metricsPage(): string {
  const rows = metrics.map(
    ({ name, type, help }) => `| \`${name}\` | ${type} | ${help.replaceAll('|', '\\|')} |`,
  );
  return `# Metrics

What \`/metrics\` serves. [monitoring.md](../monitoring.md) describes how to read it with Prometheus.

- Metrics by account, provider and site have series for those with the most messages, and \`other\` for the rest.
- Counters begin at 0 with each start of the daemon.
- Metrics with the prefixes \`process_\` and \`nodejs_\` are those of [prom-client](https://github.com/siimon/prom-client).

${written('docs:metrics')}

| metric | type | meaning |
|---|---|---|
${rows.join('\n')}
`;
}

function alertsPage(): string {
  const rows = alertRules().map(({ alert, text }) => {
    const [severity, summary, action] = ['severity', 'summary', 'action'].map((part) =>
      annotationOf(text, part),
    );
    return `| \`${alert}\` | ${severity} | ${summary} | ${action} |`;
  });
  return `# Alerts

The alerts of \`alerts.yml\`. \`critical\` means: act now. [monitoring.md](../monitoring.md) describes how to load them.

${written('docs:metrics')}

| alert | severity | what happened | what to do |
|---|---|---|---|
${rows.join('\n')}
`;
}

/** An annotation or a label of a rule, with templates such as {{ $labels.instance }} replaced by the name of the label. */
function annotationOf(rule: string, part: string): string {
  const value = new RegExp(`^ +${part}: '?(.*?)'?$`, 'm').exec(rule)?.[1] ?? '';
  return value
    .replaceAll("''", "'")
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '<$1>')
    .replaceAll('<', '&lt;');
}

/** The names of metrics in a query, without the suffixes of histograms. */
function metricsIn(query: string): string[] {
  return Array.from(query.matchAll(/\b(?:postrider|process|nodejs)_\w+/g), ([name]) =>
    name.replace(/_(?:bucket|sum|count)$/, ''),
  );
}

describe('the metrics', () => {
  it.each([
    ['metrics', metricsPage],
    ['alerts', alertsPage],
  ])('and alerts are those of docs/reference/%s.md (write it with: npm run docs:metrics)', (name, page) => {
    const document = new URL(`${name}.md`, REFERENCE);
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(document, page());
    else expect(readFileSync(document, 'utf8')).toBe(page());
  });

  it('have names with base units, and counters end with _total', () => {
    const wrong = metrics.filter(
      ({ name, type }) =>
        (type === 'counter') !== name.endsWith('_total') ||
        /_(?:ms|milliseconds|kb|mb|percent)(?:_|$)/.test(name) ||
        (type === 'histogram' && !name.endsWith('_seconds')),
    );
    expect(wrong).toEqual([]);
  });

  it('have a sentence as their description', () => {
    expect(metrics.filter(({ help }) => !/^(?:[A-Z0-9]).*\.$/.test(help))).toEqual([]);
  });
});

describe('alerts and dashboard', () => {
  const known = () => new Set(metrics.map(({ name }) => name));

  it('use metrics that exist', () => {
    const queries = [...alertRules().map(({ expr }) => expr), ...dashboardQueries()];
    expect(queries.length).toBeGreaterThan(40);
    const unknown = queries
      .flatMap(metricsIn)
      .filter((name) => name.startsWith('postrider_') && !known().has(name));
    expect(unknown).toEqual([]);
  });

  it('have for each alert a severity, what happened, what to do, and a test', () => {
    const rules = alertRules();
    const tests = readFileSync(new URL('../../config/monitoring/alerts.test.yml', import.meta.url), 'utf8');
    expect(rules.length).toBeGreaterThan(15);
    for (const { alert, text } of rules) {
      for (const part of ['severity', 'summary', 'description', 'action'])
        expect(text).toMatch(new RegExp(`^ +${part}: \\S`, 'm'));
      expect(tests).toContain(`- name: ${alert} fires`);
    }
  });
});

const required = requirementsOf(
  findProgram('promtool') === null ? ['promtool (package prometheus) is not installed'] : [],
);

describe.skipIf(required.missing)(`promtool${required.reason}`, () => {
  it('accepts the rules and the example configuration', async () => {
    expect(await promtool('check', 'rules', 'alerts.yml')).toContain('SUCCESS');
    expect(await promtool('check', 'config', 'prometheus.yml')).toContain('SUCCESS');
  });

  it('finds that each alert fires when it should, and none for a healthy daemon', async () => {
    expect(await promtool('test', 'rules', 'alerts.test.yml')).toContain('SUCCESS');
  });

  it('accepts the queries of the dashboard', async () => {
    const rules = dashboardQueries()
      .map((query) => query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'))
      .map((query, n) => `      - record: query:${n}\n        expr: ${JSON.stringify(query)}`);
    const text = `groups:\n  - name: dashboard\n    rules:\n${rules.join('\n')}\n`;
    expect(await promtool.checkText(text)).toContain(`${rules.length} rules found`);
  });
});
