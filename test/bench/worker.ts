import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { htmlOf } from './message.ts';
import { readOptions } from './options.ts';
import { startReceiver } from './receiver.ts';
import type { Measurement, MeasurementRequest } from './worker/measurement.ts';

/*
 * Processor time of a delivery worker for one message, by step and by size:
 *
 *     npm run bench:worker -- --compare ../other-clone
 *
 * Each kind of mail is measured in a separate process that contains nothing else of the daemon; the sinks are other
 * processes. With `--compare` the sources of another clone are measured in turns with this one, and the messages that both
 * compose must be the same. Times are those of the best round: other load on the machine only adds to them.
 */
const values = readOptions({
  command: 'npm run bench:worker',
  summary: `Processor time of a delivery worker for one message, by step: reading the content, deriving the text part,
encoding, signing, sending. Exits with 1 when two versions compose different messages.`,
  options: {
    rounds: { integer: 5, help: 'rounds; the best one counts' },
    'round-ms': { integer: 100, help: 'CPU time of each step in a round' },
    sizes: { text: 'KB,KB', help: 'sizes of the HTML (default: 1,10,100,1024)' },
    kinds: { text: 'KIND,KIND', help: 'of derived, given, tracked, newsletter (default: all)' },
    compare: { text: 'DIR', help: 'another clone, to compare with' },
    only: { text: 'STEP', help: 'measures one step alone' },
    profile: { text: 'DIR', help: 'writes a CPU profile of each process' },
    json: { flag: 'print the result as JSON' },
  },
});

const KB = 1024;
const ROOT = resolve(import.meta.dirname, '../..');
const GIVEN_TEXT = 'Your order was shipped. It will reach you within three days.\n';
const NEWSLETTER = readFileSync(join(ROOT, 'test/mail/newsletter/newsletter.html'), 'utf8');

interface Kind {
  html(bytes: number): string;
  text(bytes: number): string | null;
  tracked: boolean;
}
const derived = () => null;
const KINDS: Record<string, Kind> = {
  derived: { html: htmlOf, text: derived, tracked: false },
  given: {
    html: htmlOf,
    text: (bytes) => GIVEN_TEXT.repeat(Math.ceil(bytes / 8 / GIVEN_TEXT.length)),
    tracked: false,
  },
  tracked: { html: htmlOf, text: derived, tracked: true },
  newsletter: {
    // Other text, links and letters than ASCII: quoted-printable.
    html: (bytes) => NEWSLETTER.repeat(Math.ceil(bytes / NEWSLETTER.length)).slice(0, bytes),
    text: derived,
    tracked: true,
  },
};

const sizes = listOf(values.sizes, '1,10,100,1024').map(Number);
const kinds = listOf(values.kinds, Object.keys(KINDS).join());
const versions = [ROOT, ...(values.compare === '' ? [] : [resolve(values.compare)])];
const folder = mkdtempSync(join(tmpdir(), 'bench-worker-'));
const plain = await startReceiver({ hosts: ['127.0.0.1'] });
const tls = await startReceiver({ hosts: ['127.0.0.1'], tls: true });
const results: { kind: string; kb: number; measured: Measurement[] }[] = [];
try {
  for (const [index, version] of versions.entries()) await bundle(version, programOf(index));
  for (const kind of kinds) {
    const of = KINDS[kind];
    if (of === undefined) throw new Error(`--kinds: ${kind} is not one of ${Object.keys(KINDS).join(', ')}`);
    for (const kb of sizes) {
      const bytes = kb * KB;
      const request = { html: of.html(bytes), text: of.text(bytes), tracked: of.tracked };
      const measured = await measure(request);
      results.push({ kind, kb, measured });
      if (!values.json) print(kind, kb, measured);
      const [first, ...others] = measured;
      if (others.some(({ digest }) => digest !== first?.digest)) {
        console.error('The versions compose different messages.');
        process.exitCode = 1;
      }
    }
  }
} finally {
  await Promise.all([plain.stop(), tls.stop()]);
  rmSync(folder, { recursive: true });
}
if (values.json) console.log(JSON.stringify(results, null, 2));

/** One measurement for each version; rounds of the versions alternate. */
async function measure(
  request: Pick<MeasurementRequest, 'html' | 'text' | 'tracked'>,
): Promise<Measurement[]> {
  const best: (Measurement | null)[] = versions.map(() => null);
  const turns = versions.length > 1 ? values.rounds : 1;
  for (let turn = 0; turn < turns; turn++) {
    for (const index of versions.keys()) {
      const measured = await run(programOf(index), {
        ...request,
        ports: { plain: plain.port, tls: tls.port },
        keyPem: RSA_KEY.export({ type: 'pkcs8', format: 'pem' }).toString(),
        roundMs: values['round-ms'],
        rounds: versions.length > 1 ? 1 : values.rounds,
        only: values.only,
      });
      best[index] = better(best[index] ?? null, measured);
    }
  }
  return best.filter((each) => each !== null);
}

function better(a: Measurement | null, b: Measurement): Measurement {
  if (a === null) return b;
  const cpuMs = Object.fromEntries(
    Object.entries(b.cpuMs).map(([step, ms]) => [
      step,
      Math.min(ms, a.cpuMs[step] ?? Number.POSITIVE_INFINITY),
    ]),
  );
  return { ...b, cpuMs };
}

async function run(program: string, request: MeasurementRequest): Promise<Measurement> {
  const profile = values.profile === '' ? [] : ['--cpu-prof', '--cpu-prof-dir', resolve(values.profile)];
  const file = join(folder, 'request.json');
  writeFileSync(file, JSON.stringify(request));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--enable-source-maps', ...profile, program, file],
    { maxBuffer: 1024 * KB },
  );
  // Sound: measured.ts prints this type.
  return JSON.parse(stdout) as Measurement;
}

/** Bundles the program with the sources of a clone, without the names that tsx adds to functions at run time. */
async function bundle(root: string, outfile: string): Promise<void> {
  const source = join(ROOT, 'src');
  await build({
    entryPoints: [join(import.meta.dirname, 'worker/measured.ts')],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: 'inline',
    outfile,
    absWorkingDir: ROOT,
    nodePaths: [join(ROOT, 'node_modules')],
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as $r } from 'node:module'; const require = $r(import.meta.url);",
    },
    plugins: [
      {
        name: 'sources of the clone',
        setup: ({ onResolve }) =>
          onResolve({ filter: /\.ts$/ }, ({ path, resolveDir }) => {
            const file = isAbsolute(path) ? path : resolve(resolveDir, path);
            return file.startsWith(`${source}/`) ? { path: join(root, file.slice(ROOT.length)) } : undefined;
          }),
      },
    ],
  });
}

function programOf(index: number): string {
  return join(folder, `measured-${index}.mjs`);
}

function listOf(given: string, standard: string): string[] {
  return (given === '' ? standard : given).split(',');
}

function print(kind: string, kb: number, measured: readonly Measurement[]): void {
  console.log(`\n${kind}, ${kb} KB of HTML, ${measured[0]?.bytes} bytes`);
  for (const step of Object.keys(measured[0]?.cpuMs ?? {})) {
    const times = measured.map(({ cpuMs }) => (cpuMs[step] ?? Number.NaN).toFixed(3).padStart(9));
    console.log(`  ${step.padEnd(26)}${times.join('')}`);
  }
}
