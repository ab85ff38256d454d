import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Clears the unused space of a database, and kills itself in the middle of its n-th write to the file. */
const [file = '', killedAt = ''] = process.argv.slice(2);

const { writeSync } = fs;
let writes = 0;
// Of the overloads, only the one that writes pages is called.
const writePage = (fd: number, pages: Buffer, at: number, length: number, position: number): number => {
  writes++;
  if (writes < Number(killedAt)) return writeSync(fd, pages, at, length, position);
  writeSync(fd, pages, at, length / 2, position);
  process.kill(process.pid, 'SIGKILL');
  throw new Error('the process was not killed');
};
Object.assign(fs, { writeSync: writePage });
syncBuiltinESMExports();

const { runSlackPass } = await import('../../../src/store/maintenance/slack-pass.ts');
await runSlackPass(file);
