import { startChild } from './child.ts';
import { PYTHON } from './required-programs.ts';

/**
 * Runs a program on a pseudo terminal and types one answer for each question, which is output that ends with ": ".
 * Prints what the terminal shows, and exits with the status of the program.
 */
const DRIVER = `
import json, os, pty, re, sys
answers = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown, since = "", ""
while True:
    try:
        chunk = os.read(terminal, 4096).decode("utf8", "replace")
    except OSError:
        break
    if not chunk:
        break
    shown += chunk
    since += re.sub("\\x1b\\\\[[0-9;?]*[a-zA-Z]", "", chunk)
    if since.endswith(": ") and answers:
        answer = answers.pop(0)
        since = ""
        os.write(terminal, answer.encode() if answer in ("\\x03", "\\x04") else (answer + "\\r").encode())
sys.stdout.write(shown)
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128)
`;

export const CTRL_C = '\u0003';
export const CTRL_D = '\u0004';

/** Resolves with what the terminal showed and the exit status. */
export async function runOnTerminal(
  command: readonly string[],
  answers: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<{ status: number | null; shown: string }> {
  const child = startChild(PYTHON, ['-c', DRIVER, JSON.stringify(answers), ...command], options);
  const { code } = await child.exited;
  return { status: code, shown: child.output };
}
