// Deletes statements of better-sqlite3 in garbage collections during built-in functions, where no context is entered.
// Arguments: the path of better-sqlite3. Run with --max-semi-space-size=1, so that there are many collections.
const Database = require(process.argv[2]);

const database = new Database(':memory:');
const numbers = Array.from({ length: 50 }, (_, n) => n);
let length = 0;
for (let n = 0; n < 20_000; n++) {
  database.prepare('SELECT ?');
  for (let i = 0; i < 20; i++) length += numbers.slice(1).concat(numbers).map(String).join('').split('1').length;
}
console.log('survived', length);
