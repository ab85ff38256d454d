import { writeFileSync } from 'node:fs';
import { exampleToml } from '../../src/config/example.ts';
import { repliesPage, settingsPage } from './reference-pages.ts';

/* Writes what is generated from the schema of the configuration and the classifier: the example file and pages of docs/reference/. */
const write = (path: string, text: string) => writeFileSync(new URL(`../../${path}`, import.meta.url), text);

write('config/postrider.example.toml', exampleToml());
write('docs/reference/settings.md', settingsPage());
write('docs/reference/replies.md', repliesPage());
