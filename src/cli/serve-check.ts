import { openFilesLimit, requireOpenFiles } from '../core/open-files.ts';
import { openForDoctor } from '../doctor/open-database.ts';
import { examineStart } from '../doctor/start.ts';
import { daemonProcess } from '../store/daemon-process.ts';
import { type CliContext, FAILED, refuseMovedData } from './context.ts';

/**
 * `postrider serve --check`: reports each obstacle of a start, and what this user may not find out as a note. Starts,
 * writes and sends nothing. Throws an OperatorFault for an invalid configuration.
 */
export async function checkStart(context: CliContext): Promise<void> {
  const config = context.config();
  refuseMovedData(config);
  requireOpenFiles(openFilesLimit());
  // Where the kernel does not list its locks, the ports show whether a daemon runs.
  const pid = await daemonProcess(config.data.dir).catch(() => null);
  if (pid !== null) {
    context.print(
      `The daemon of ${config.data.dir} is running${pid === 0 ? '' : ` (process ${pid})`}: its ports are in use, and a start was not examined`,
    );
    return;
  }
  const { database, close } = openForDoctor(config.data.dir);
  try {
    const results = await examineStart(config, database);
    for (const { status, reason } of results) {
      const text = reason.replace(/\.$/, '');
      if (status === 'failure') context.report(text, FAILED);
      else context.note(text);
    }
    if (results.every(({ status }) => status !== 'failure'))
      context.print('The daemon can start: its database, master key, certificates and ports are usable');
  } finally {
    close();
  }
}
