import { writeFileSync } from 'node:fs';
import openapiTypeScript, { type OpenAPI3 } from 'openapi-typescript';
import { startInProcess } from '../../support/in-process-daemon.ts';

/** Writes the types of all operations for the console, from the OpenAPI document that a daemon serves. */
const daemon = await startInProcess();
const document = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as OpenAPI3;
await daemon.stop();
writeFileSync(
  new URL('../../../src/console/api-types.d.ts', import.meta.url),
  await openapiTypeScript(document),
);
