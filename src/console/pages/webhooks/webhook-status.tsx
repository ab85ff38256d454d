import type { DataOf } from '../../operations.ts';
import { Chip } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

const KINDS = { active: 'ok', failing: 'bad', inactive: 'idle' } as const;

/** Whether a webhook is active and its endpoint accepts calls. */
export function WebhookStatus({
  of: { isActive, failingSince },
}: {
  of: Pick<DataOf<'/web-setup/webhooks'>['webhooks'][number], 'isActive' | 'failingSince'>;
}) {
  const { t } = useTexts();
  const status = !isActive ? 'inactive' : failingSince === undefined ? 'active' : 'failing';
  return <Chip kind={KINDS[status]}>{t(`webhooks.${status}`)}</Chip>;
}
