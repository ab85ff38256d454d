import { readFileSync, writeFileSync } from 'node:fs';
import { exampleToml } from '../../src/config/example.ts';
import { withSettingsTable } from './settings-table.ts';

/* Writes what is generated from the schema of the configuration: the example file and the table of settings. */
const example = new URL('../../config/postrider.example.toml', import.meta.url);
const document = new URL('../../docs/configuration.md', import.meta.url);

writeFileSync(example, exampleToml());
writeFileSync(document, withSettingsTable(readFileSync(document, 'utf8')));
