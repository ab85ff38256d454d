import { writeFileSync } from 'node:fs';
import openapiTypeScript, { type OpenAPI3 } from 'openapi-typescript';
import { startInProcess } from '../../support/in-process-daemon.ts';

/** Writes the types of all operations for the console and the clients, from the OpenAPI document that a daemon serves. */
const FILES = ['src/console/api-types.d.ts', 'clients/node/src/api-types.ts'];

const daemon = await startInProcess();
const document = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as OpenAPI3;
await daemon.stop();
const types = await openapiTypeScript(document);
for (const file of FILES) writeFileSync(new URL(`../../../${file}`, import.meta.url), types);
