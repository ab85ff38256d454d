import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { findProgram, requirementsOf } from '../support/required-programs.ts';
import { alertRules, dashboardQueries, promtool } from './monitoring-files.ts';
import { type DescribedMetric, readMetricDescriptions } from './registry.ts';

const DOCS = new URL('../../docs/monitoring.md', import.meta.url);
const TABLE = /(?<=<!-- metrics: npm run docs:metrics -->\n)[\s\S]*(?=<!-- end of metrics -->)/;

let metrics: DescribedMetric[];
beforeAll(async () => {
  metrics = await readMetricDescriptions();
});

function tableOf(described: readonly DescribedMetric[]): string {
  const rows = described.map(
    ({ name, type, help }) => `| \`${name}\` | ${type} | ${help.replaceAll('|', '\\|')} |`,
  );
  return ['', '| metric | type | meaning |', '|---|---|---|', ...rows, '', ''].join('\n');
}

/** The names of metrics in a query, without the suffixes of histograms. */
function metricsIn(query: string): string[] {
  return Array.from(query.matchAll(/\b(?:postrider|process|nodejs)_\w+/g), ([name]) =>
    name.replace(/_(?:bucket|sum|count)$/, ''),
  );
}

describe('the metrics', () => {
  it('are those that docs/monitoring.md lists (npm run docs:metrics writes the list)', () => {
    const docs = readFileSync(DOCS, 'utf8');
    const table = tableOf(metrics);
    if (process.env['UPDATE_DOCS'] === '1')
      writeFileSync(
        DOCS,
        docs.replace(TABLE, () => table),
      );
    else expect(TABLE.exec(docs)?.[0]).toBe(table);
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

  it('have for each alert a severity, what happened, what to do, a test, and a section in docs/monitoring.md', () => {
    const rules = alertRules();
    const docs = readFileSync(DOCS, 'utf8');
    const tests = readFileSync(new URL('../../config/monitoring/alerts.test.yml', import.meta.url), 'utf8');
    expect(rules.length).toBeGreaterThan(15);
    for (const { alert, text } of rules) {
      for (const part of ['severity', 'summary', 'description', 'action'])
        expect(text).toMatch(new RegExp(`^ +${part}: \\S`, 'm'));
      expect(tests).toContain(`- name: ${alert} fires`);
      expect(docs).toContain(`| \`${alert}\` |`);
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
