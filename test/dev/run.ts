import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { createServer, type InlineConfig } from 'vite';
import { startInstallation } from '../bench/large/installation.ts';
import { startReceiver } from '../bench/receiver.ts';
import { freePort } from '../support/free-port.ts';
import { sampleInstallation } from './sample.ts';

/*
 * `npm run dev`: the daemon with sample data, and its console by Vite.
 *
 *   browser ──▶ Vite: src/console, each change is shown immediately
 *                 └── /console/api, /console/session, … ──▶ daemon: dist/, built and restarted after a change of src/
 *                                                            └──▶ a receiver that accepts all mail
 *
 * The data stays in data/dev: delete the directory to begin again.
 */
const ROOT = join(import.meta.dirname, '../..');
const DATA = join(ROOT, 'data/dev');
const CONSOLE = join(ROOT, 'src/console');
/** The first port of Vite that is tried. */
const PORT = 5173;
/** Editors write several files, and a file in several steps. */
const SETTLE_MS = 300;

/** Whether Vite has the path below `/console/`; the daemon has the others. */
function isFile(path: string): boolean {
  const [name = ''] = path.split('?', 1);
  return name === '' || (!name.startsWith('api/') && /^(?:@|node_modules\/)|\.\w+$/.test(name));
}

/** Runs a script of package.json; resolves with whether it succeeded. Its output is shown. */
async function runScript(name: string): Promise<boolean> {
  const child = spawn('npm', ['run', '--silent', name], { cwd: ROOT, stdio: 'inherit' });
  const [code]: unknown[] = await once(child, 'exit');
  return code === 0;
}

if (!(await runScript('build'))) process.exit(1);
if (!existsSync(DATA)) console.log('Creating sample data in data/dev …');
const dataDir = await sampleInstallation(DATA);
const receiver = await startReceiver();
const consolePort = await freePort();
const running = await startInstallation(dataDir, receiver.port, {
  'console.listen': `127.0.0.1:${consolePort}`,
  'limits.eventDays': 400,
});
const { daemon, accounts } = running;

const { consoleOptions } = (await import(
  new URL('../../.packaging/build-console.mjs', import.meta.url).href
)) as { consoleOptions(source: string): InlineConfig };
const vite = await createServer({
  ...consoleOptions(CONSOLE),
  server: {
    port: PORT,
    fs: { allow: [ROOT] },
    proxy: {
      '/console/': {
        target: `http://127.0.0.1:${consolePort}`,
        // The daemon compares the host with the origin of the page.
        changeOrigin: false,
        bypass: ({ url = '' }) => (isFile(url.slice('/console/'.length)) ? url : undefined),
      },
    },
  },
});
await vite.listen();
const address = vite.resolvedUrls?.local[0] ?? '';

const created = await daemon.tryCli('operator', 'create', '--email', 'dev@example.com', '--json');
const { link }: { link: string } = JSON.parse(
  created.code === 0 ? created.stdout : await daemon.cli('operator', 'link', 'dev@example.com', '--json'),
);
const [first] = accounts;
console.log(`
Console: ${address}${new URL(link).hash}
API:     ${daemon.baseUrl}  (X-Id: ${first?.accountId}, X-Api-Key: ${first?.keys.setup})
Ctrl+C stops both.
`);

let settling: NodeJS.Timeout | undefined;
let isRestarting = false;
/** Builds and restarts the daemon; a build that fails leaves the daemon that runs. */
async function restart(): Promise<void> {
  if (isRestarting) return schedule();
  isRestarting = true;
  try {
    if (!(await runScript('build'))) return;
    // A stop may take as long as the deliveries in progress.
    await daemon.kill('SIGTERM');
    await daemon.restart();
    console.log('The daemon runs with the changes.');
  } finally {
    isRestarting = false;
  }
}
function schedule(): void {
  clearTimeout(settling);
  settling = setTimeout(() => void restart().catch((error: unknown) => console.error(error)), SETTLE_MS);
}
watch(join(ROOT, 'src'), { recursive: true }, (_, file) => {
  if (file !== null && !file.startsWith('console/') && !file.startsWith('console\\')) schedule();
});

process.once('SIGINT', () => {
  void (async () => {
    await vite.close();
    await running.stop();
    await receiver.stop();
    process.exit(0);
  })();
});
