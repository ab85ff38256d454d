import { parentPort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { withoutPause } from '../../core/concurrency/slices.ts';
import { findMissingComplianceInSteps, missingInText, type RequiredVariable } from '../../mail/compliance.ts';
import { type LiquidPart, parseLiquid, renderLiquid } from '../../mail/liquid.ts';
import { parseTemplate, SERVICE_VARIABLES } from '../../mail/template.ts';
import { joinPart } from '../liquid.ts';
import type {
  FieldFault,
  LiquidCopy,
  LiquidCopyInput,
  LiquidField,
  LiquidProblem,
  LiquidRead,
  LiquidSource,
  TemplateAnswer,
  TemplateJob,
} from './jobs.ts';

/*
 * The program of the threads that run templates of accounts: Liquid and MJML. A thread may be terminated at any time. It answers
 * jobs in their order.
 */

/** Bytes of parsed contents in memory, as estimated: a third of the heap of a thread (threads.ts). */
const MAX_CACHED_BYTES = 64 * 1024 * 1024;

type Parsed = { parts: LiquidPart[] } | { faults: FieldFault[] };

const parsedContents = new LRUCache<string, Parsed>({
  maxSize: MAX_CACHED_BYTES,
  sizeCalculation: (parsed, key) =>
    2 * key.length + ('parts' in parsed ? parsed.parts.reduce((sum, { bytes }) => sum + bytes, 0) : 0),
});

function parse(source: LiquidSource): Parsed {
  const key = JSON.stringify(source);
  const known = parsedContents.get(key);
  if (known !== undefined) return known;
  const { subject, html, text, partials } = source;
  const sources: [LiquidField, string | null][] = [
    ['subject', subject],
    ['html', html === '' ? null : html],
    ['text', text],
  ];
  const parts: LiquidPart[] = [];
  const faults: FieldFault[] = [];
  for (const [field, body] of sources) {
    if (body === null) continue;
    const part = parseLiquid(body, field, partials);
    if ('nodes' in part) parts.push(part);
    else faults.push({ field, ...part });
  }
  const parsed = faults.length > 0 ? { faults } : { parts };
  parsedContents.set(key, parsed);
  return parsed;
}

function read(source: LiquidSource): LiquidRead | { faults: FieldFault[] } {
  const parsed = parse(source);
  if ('faults' in parsed) return parsed;
  const { parts } = parsed;
  return {
    texts: Object.fromEntries(parts.map(({ kind, texts }) => [kind, texts])),
    names: [...new Set(parts.flatMap(({ names }) => names))],
    service: Object.fromEntries(parts.map(({ kind, service }) => [kind, service])),
  };
}

/** Null: it exceeded a limit, which a thread with more time may not. */
function renderCopy(
  parts: readonly LiquidPart[],
  { variables, optional }: LiquidCopyInput,
  { limitMs, whole }: Extract<TemplateJob, { kind: 'render' }>,
): LiquidCopy | null {
  const values: Partial<Record<LiquidField, string[]>> = {};
  const problems: LiquidProblem[] = [];
  const options = { limitMs, optional, service: SERVICE_VARIABLES };
  for (const part of parts) {
    const rendered = renderLiquid(part, variables, options);
    if ('values' in rendered)
      values[part.kind] = whole ? [joinPart(part.texts, rendered.values)] : rendered.values;
    else if ('fault' in rendered && rendered.fault.isLimit) return null;
    else problems.push({ field: part.kind, ...rendered });
  }
  if (problems.length > 0) return { problems };
  return { values, missing: whole ? [] : missingIn(parts, values) };
}

/** The required variables that the finished html, or the text of a message without, does not show. */
function missingIn(
  parts: readonly LiquidPart[],
  values: Partial<Record<LiquidField, string[]>>,
): RequiredVariable[] {
  const finished = (field: LiquidField) => {
    const part = parts.find(({ kind }) => kind === field);
    return part === undefined ? null : joinPart(part.texts, values[field] ?? []);
  };
  const html = finished('html');
  if (html === null) return missingInText(parseTemplate(finished('text') ?? '', 'marks'));
  return withoutPause(findMissingComplianceInSteps(html, parseTemplate(html, 'marks')));
}

function render(
  job: Extract<TemplateJob, { kind: 'render' }>,
  answer: (answer: TemplateAnswer) => void,
): void {
  const parsed = parse(job.source);
  const endAt = performance.now() + job.budgetMs;
  for (const copy of job.copies) {
    const rendered =
      'faults' in parsed
        ? { problems: parsed.faults.map(({ field, ...fault }): LiquidProblem => ({ field, fault })) }
        : renderCopy(parsed.parts, copy, job);
    if (rendered === null) return answer({ kind: 'end', slow: true });
    answer({ kind: 'copy', copy: rendered });
    if (performance.now() > endAt) break;
  }
  answer({ kind: 'end', slow: false });
}

const port = parentPort;
if (port !== null) {
  const answer = (one: TemplateAnswer) => port.postMessage(one);
  let last = Promise.resolve();
  const run = async (job: TemplateJob) => {
    if (job.kind === 'read') return answer({ kind: 'read', read: read(job.source) });
    if (job.kind === 'render') return render(job, answer);
    // Loaded for the first source: the compiler has a megabyte.
    const { compileMjml } = await import('./mjml-compiler.ts');
    answer({ kind: 'mjml', compiled: compileMjml(job.source) });
  };
  // A rejection ends the thread, as an exception does.
  port.on('message', (job: TemplateJob) => {
    last = last.then(() => run(job));
  });
  answer({ kind: 'ready' });
}
