import type * as z from 'zod';
import type { webhook } from '../../../http/api/webhook-schemas.ts';
import { Chip } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

const KINDS = { active: 'ok', failing: 'bad', inactive: 'idle' } as const;

/** Whether a webhook is active and its endpoint accepts calls. */
export function WebhookStatus({
  of: { isActive, failingSince },
}: {
  of: Pick<z.output<typeof webhook>, 'isActive' | 'failingSince'>;
}) {
  const { t } = useTexts();
  const status = !isActive ? 'inactive' : failingSince === undefined ? 'active' : 'failing';
  return <Chip kind={KINDS[status]}>{t(`webhooks.${status}`)}</Chip>;
}
