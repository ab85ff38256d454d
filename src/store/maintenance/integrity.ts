import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { builtProgram } from '../../core/built-program.ts';
import type { IntegrityLine } from './integrity-process.ts';

/** The result of an integrity check of the database. */
export interface IntegrityResult {
  /** incomplete: the check was ended early. failed: the check did not run; `problems` has the reason. */
  outcome: 'intact' | 'damaged' | 'incomplete' | 'failed';
  /** Tables of the database, and those that were examined. */
  tables: number;
  examined: number;
  /** `table: problem`, at most `MAX_PROBLEMS`. */
  problems: string[];
}

export interface IntegrityOptions {
  /** Time after which the process is ended. */
  timeoutMs: number;
  signal: AbortSignal;
  /** The program of the process; default: the compiled one. */
  script?: URL | undefined;
}

const MAX_PROBLEMS = 10;
const HEAP_MB = 64;

/** Checks the tables and indexes of the database `file` in a separate process. Never rejects: a failure is an outcome. */
export function checkIntegrity(file: string, options: IntegrityOptions): Promise<IntegrityResult> {
  const script = options.script ?? builtProgram('store/maintenance/integrity-process');
  const result: IntegrityResult = { outcome: 'incomplete', tables: 0, examined: 0, problems: [] };
  return new Promise((resolve) => {
    const args = [
      `--max-old-space-size=${HEAP_MB}`,
      '--input-type=module',
      '--eval',
      `await import(${JSON.stringify(script.href)})`,
      file,
    ];
    const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const end = () => void child.kill('SIGKILL');
    const timer = setTimeout(end, options.timeoutMs);
    options.signal.addEventListener('abort', end, { once: true });
    if (options.signal.aborted) end();
    const finish = (code: number | null) => {
      clearTimeout(timer);
      options.signal.removeEventListener('abort', end);
      resolve(conclude(result, code));
    };
    child.on('error', (error) => {
      add(result, { kind: 'failed', code: '', message: error.message });
      finish(null);
    });
    child.on('close', finish);
    // Without descriptors for its pipes the process has none, and `error` follows.
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const parsed = parseLine(line);
        if (parsed !== null) add(result, parsed);
      });
  });
}

/** Null: the process ended while it was writing the line. */
function parseLine(line: string): IntegrityLine | null {
  try {
    const parsed: IntegrityLine = JSON.parse(line); // written by integrity-process.ts
    return parsed;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function add(result: IntegrityResult, line: IntegrityLine): void {
  if (line.kind === 'tables') result.tables = line.count;
  else if (line.kind === 'table') {
    result.examined++;
    for (const problem of line.problems) {
      result.outcome = 'damaged';
      if (result.problems.length < MAX_PROBLEMS) result.problems.push(`${line.name}: ${problem}`);
    }
  } else {
    const isDamage = /^SQLITE_(?:CORRUPT|NOTADB)/.test(line.code);
    if (result.outcome !== 'damaged') result.outcome = isDamage ? 'damaged' : 'failed';
    result.problems.push(line.code === '' ? line.message : `${line.code}: ${line.message}`);
  }
}

/** `code`: the exit status of the process; null: it was ended by a signal. */
function conclude(result: IntegrityResult, code: number | null): IntegrityResult {
  const isComplete = result.tables > 0 && result.examined === result.tables;
  if (result.outcome !== 'incomplete') return result;
  if (isComplete) return { ...result, outcome: 'intact' };
  if (code === null || code === 0) return result;
  return { ...result, outcome: 'failed', problems: [`the process of the check ended with status ${code}`] };
}
