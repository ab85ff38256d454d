import type * as z from 'zod';
import type { backgroundImport } from '../../../http/api/contacts/background-imports.ts';
import { Status } from '../../parts.tsx';

export type BackgroundImport = z.output<typeof backgroundImport>;

/** The status of an import in a word. */
export function ImportStatus({ name }: { name: BackgroundImport['status'] }) {
  return <Status name={name} prefix="contacts.import.status" />;
}
