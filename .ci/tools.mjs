// The libraries of .ci/tools, which are large and which only the checks need: installed when a check first runs.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const TOOLS = join(import.meta.dirname, 'tools');
if (!existsSync(join(TOOLS, 'node_modules'))) execFileSync('npm', ['ci'], { cwd: TOOLS, stdio: 'inherit' });

export const { cruise, check } = await import('./tools/libraries.mjs');
