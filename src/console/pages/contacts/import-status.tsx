import type { DataOf } from '../../operations.ts';
import { Status } from '../../parts.tsx';

export type BackgroundImport = DataOf<'/web-setup/contacts/imports'>['imports'][number];

/** The status of an import in a word. */
export function ImportStatus({ name }: { name: BackgroundImport['status'] }) {
  return <Status name={name} prefix="contacts.import.status" />;
}
