import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as z from 'zod';
import { findProgram } from '../support/required-programs.ts';

const FOLDER = new URL('../../config/monitoring/', import.meta.url);

/** The rules of alerts.yml, which has one form: `expr` is a single-quoted YAML string. */
export function alertRules(): { alert: string; expr: string; text: string }[] {
  const file = readFileSync(new URL('alerts.yml', FOLDER), 'utf8');
  return file
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((text) => ({
      alert: /^\w+/.exec(text)?.[0] ?? '',
      expr: (/^ +expr: '(.*)'$/m.exec(text)?.[1] ?? '').replaceAll("''", "'"),
      text,
    }));
}

/** The parts of a Grafana dashboard that are examined (schema version 38). */
const PANEL = z.object({
  id: z.int(),
  type: z.enum(['row', 'timeseries']),
  title: z.string().min(1),
  gridPos: z.object({
    x: z.int().min(0).max(23),
    y: z.int().min(0),
    w: z.int().min(1).max(24),
    h: z.int().min(1),
  }),
  targets: z
    .array(z.object({ refId: z.string(), expr: z.string().min(1), legendFormat: z.string() }))
    .optional(),
});
const DASHBOARD = z.object({
  title: z.string(),
  uid: z.string(),
  schemaVersion: z.literal(38),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(PANEL),
});

/** The queries of the Grafana dashboard. Throws when the file is no valid dashboard, or two panels have one id. */
export function dashboardQueries(): string[] {
  const file = readFileSync(new URL('grafana-dashboard.json', FOLDER), 'utf8');
  const { panels } = DASHBOARD.parse(JSON.parse(file));
  if (new Set(panels.map(({ id }) => id)).size !== panels.length) throw new Error('two panels have one id');
  for (const { type, title, targets } of panels)
    if (type !== 'row' && (targets ?? []).length === 0) throw new Error(`panel ${title} has no query`);
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

async function run(...args: string[]): Promise<string> {
  const program = findProgram('promtool') ?? 'promtool';
  const { stdout, stderr } = await promisify(execFile)(program, args, { cwd: fileURLToPath(FOLDER) });
  return stdout + stderr;
}

/** Checks rules that are no file. */
async function checkText(rules: string): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-rules-'));
  try {
    const file = join(dir, 'rules.yml');
    writeFileSync(file, rules);
    return await run('check', 'rules', file);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Runs promtool in config/monitoring; returns its output, throws with it when promtool reports a fault. */
export const promtool = Object.assign(run, { checkText });
