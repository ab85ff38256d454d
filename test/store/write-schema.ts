import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DATABASE_FILE, openDatabase } from '../../src/store/database.ts';
import { schemaOf } from '../support/schema.ts';

/** `npm run schema`: writes down the schema that the migrations make, for the eye and for the test beside this. */
const dir = mkdtempSync(join(tmpdir(), 'postrider-schema-'));
openDatabase(dir).close();
writeFileSync(new URL('schema.sql', import.meta.url), schemaOf(join(dir, DATABASE_FILE)));
rmSync(dir, { recursive: true });
