import type * as z from 'zod';
import type { backgroundImport } from '../../../http/api/contacts/background-imports.ts';
import { Badge } from '../../parts/badge.tsx';
import { useTexts } from '../../texts.ts';

export type BackgroundImport = z.output<typeof backgroundImport>;

const KINDS = {
  waiting: 'open',
  running: 'open',
  completed: 'good',
  failed: 'bad',
  cancelled: 'bad',
} as const satisfies Record<BackgroundImport['status'], 'good' | 'bad' | 'open'>;

/** The status of an import in a word. */
export function ImportStatus({ name }: { name: BackgroundImport['status'] }) {
  const { t } = useTexts();
  return <Badge kind={KINDS[name]}>{t(`contacts.import.status.${name}`)}</Badge>;
}
