// Preloaded into the program with `node --require`: kills the process when it is about to make the commit with the number
// that DIE_AT_COMMIT names.
const Sqlite = require('better-sqlite3');

const dieAt = Number(process.env.DIE_AT_COMMIT);
let commits = 0;
const { prepare } = Sqlite.prototype;
Sqlite.prototype.prepare = function prepareAndCount(sql) {
  const statement = prepare.call(this, sql);
  if (sql !== 'COMMIT') return statement;
  const run = statement.run.bind(statement);
  statement.run = () => {
    commits++;
    if (commits === dieAt) process.kill(process.pid, 'SIGKILL');
    return run();
  };
  return statement;
};
