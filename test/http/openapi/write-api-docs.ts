import { mkdirSync, writeFileSync } from 'node:fs';
import type { OpenApiDocument } from '../../../src/http/openapi/document.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { API_DOCS, markdownReference } from './markdown.ts';

/** Writes `docs/api/` from the OpenAPI document that a daemon serves. */
const daemon = await startInProcess();
const response = await fetch(`${daemon.url}/openapi.json`);
const document = (await response.json()) as OpenApiDocument;
await daemon.stop();
mkdirSync(API_DOCS, { recursive: true });
for (const [name, text] of markdownReference(document)) writeFileSync(new URL(name, API_DOCS), text);
