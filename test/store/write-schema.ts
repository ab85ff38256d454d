import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DATABASE_FILE, openDatabase } from '../../src/store/database/database.ts';
import { schemaOf } from '../support/schema.ts';

/** `npm run schema`: writes the schema of a new database to schema.sql, for readers and for database.test.ts. */
const dir = mkdtempSync(join(tmpdir(), 'postrider-schema-'));
openDatabase(dir).close();
writeFileSync(new URL('schema.sql', import.meta.url), schemaOf(join(dir, DATABASE_FILE)));
rmSync(dir, { recursive: true });
