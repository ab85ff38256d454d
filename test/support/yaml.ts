import { execFileSync } from 'node:child_process';
import { PYTHON } from './required-programs.ts';

const CONVERT = 'import json, sys, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))';

/** The documents of a YAML file, without empty ones. Needs Debian's python3-yaml. */
export function parseYaml<Document>(text: string): Document[] {
  return JSON.parse(execFileSync(PYTHON, ['-c', CONVERT], { input: text, encoding: 'utf8' }));
}
